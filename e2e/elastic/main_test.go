package elastic_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/elastic"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

var started = struct {
	sync.Once
	err error
}{}

// setup returns the cluster after starting the controllers if necessary.
func setup(t *testing.T) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Get(t)
	started.Do(func() { started.err = start(c) })
	if started.err != nil {
		t.Fatal(started.err)
	}
	return c
}

func start(c *clustertest.Cluster) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(c.Console, cluster.Options{Log: log})
	if err != nil {
		return err
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		return err
	}
	tasks := queries.New(connection, &access.Service{Cluster: connection})
	if _, err := elastic.SetupWithManager(connection.Manager, elastic.Options{Room: tasks.Room, Claims: tasks.Claims}); err != nil {
		return err
	}
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return nil
}
