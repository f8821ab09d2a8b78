package e2e_test

import (
	"context"
	"log/slog"
	"testing"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/session/sessiontest"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestSessionsInKubernetes runs the tests of session stores on Secrets in a real
// cluster, with the permissions of the console's own account.
func TestSessionsInKubernetes(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	ctrl.SetLogger(logr.Discard())
	connection, err := cluster.New(c.Console, cluster.Options{Namespace: "kuota-system", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- connection.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-result)
	})
	sessiontest.TestStore(t, func(*testing.T) session.Store { return connection.Sessions })
}
