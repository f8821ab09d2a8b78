package shares_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

var current *clustertest.Cluster

// running starts Kuota's controllers, and what answers about tasks, once for all tests.
var running = sync.OnceValues(func() (*queries.Service, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(current.Console, cluster.Options{Log: log, NoSessions: true})
	if err != nil {
		return nil, err
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		return nil, err
	}
	service := queries.New(connection, &access.Service{Cluster: connection})
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return service, nil
})

func setup(t *testing.T) (*clustertest.Cluster, *queries.Service) {
	t.Helper()
	current = clustertest.Get(t)
	service, err := running()
	if err != nil {
		t.Fatal(err)
	}
	return current, service
}
