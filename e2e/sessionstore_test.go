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

// Secrets in a real cluster do what every store of sessions must, with the
// rights of the console's own account.
func TestSessionsInKubernetes(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	ctrl.SetLogger(logr.Discard())
	connection, err := cluster.New(c.Console, cluster.Options{Namespace: "kuota-system", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connection.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	sessiontest.TestStore(t, func(*testing.T) session.Store { return connection.Sessions })
}
