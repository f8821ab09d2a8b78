package reconcile_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// controllers starts Kuota's controllers, once, for all tests of the package.
var controllers = sync.OnceValue(func() error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(counter.over(clustertest.Current().Console), cluster.Options{Namespace: "kuota-system", NoSessions: true, Log: log})
	if err != nil {
		return err
	}
	all, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall, Revisions: connection.Revisions, RecordsUsers: connection.RecordsUsers})
	if err != nil {
		return err
	}
	all.Allocations.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	if record, err = newRecord(); err != nil {
		return err
	}
	all.Allocations.Activity, all.Cohort.Activity, all.Ranking.Activity, all.Budgets.Usage, all.Revisions.Activity = record.log, record.log, record.log, record.store, record.log
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return nil
})

// ahead is how far ahead of this machine the clock of windows is.
var ahead atomic.Int64

// record is the history of the controllers.
var record *recorded

// counter counts the API calls of the controllers.
var counter callCounter

// setup returns the cluster with the controllers running.
func setup(t *testing.T) *clustertest.Cluster {
	t.Helper()
	current := clustertest.Get(t)
	if err := controllers(); err != nil {
		t.Fatal(err)
	}
	return current
}
