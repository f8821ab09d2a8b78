package behavior_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// parallelScenarios is how many scenarios run in parallel. They mostly wait.
const parallelScenarios = 16

func TestMain(m *testing.M) {
	clustertest.MainWith(m, clustertest.Options{Parallel: parallelScenarios})
}

// watched reads Workloads, ClusterQueues and Jobs from a cache, because many
// scenarios poll them at a short interval.
var watched client.Reader

// started guards the start of Kuota's controllers and of the cache, which all
// tests share.
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
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	if err := detectVersion(c); err != nil {
		return err
	}
	return watch(c.Config)
}

// watch starts the cache that watched reads from.
func watch(config *rest.Config) error {
	ctx := context.Background()
	c, err := cache.New(config, cache.Options{Scheme: cluster.Scheme})
	if err != nil {
		return err
	}
	go func() { _ = c.Start(ctx) }()
	for _, kind := range []client.Object{&kueue.Workload{}, &kueue.ClusterQueue{}, &batchv1.Job{}} {
		if _, err := c.GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	watched = c
	return nil
}
