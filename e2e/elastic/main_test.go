package elastic_test

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// soon is how long a state may take to come. How long it does take is measured by make
// bench.
const soon = clustertest.Patience

var started = struct {
	sync.Once
	err error
}{}

// running is the controller of ElasticJobs that all tests use.
var running controller

// setup returns the cluster after starting the controllers if necessary.
func setup(t *testing.T) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Get(t)
	started.Do(func() {
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
		if started.err = startAllocations(c, log); started.err == nil {
			running, started.err = startController(c, log)
		}
	})
	if started.err != nil {
		t.Fatal(started.err)
	}
	return c
}

// startAllocations starts the controllers of allocations and the policy.
func startAllocations(c *clustertest.Cluster, log *slog.Logger) error {
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
	return nil
}

// controller is a controller of ElasticJobs with caches of its own, as a replica has. Of
// those that run, one leads.
type controller struct {
	stop    context.CancelFunc
	stopped chan error
	line    *clustertest.Line // counts what it writes
}

func startController(c *clustertest.Cluster, log *slog.Logger) (controller, error) {
	line := &clustertest.Line{}
	config := line.Over(c.Console)
	elected, err := leader.New(config, leader.Options{Namespace: "kuota-system", Identity: clustertest.Name("replica"), Log: log})
	if err != nil {
		return controller{}, err
	}
	connection, err := cluster.New(config, cluster.Options{Fence: elected.Fence, Log: log})
	if err != nil {
		return controller{}, err
	}
	tasks := queries.New(connection, &access.Service{Cluster: connection})
	if _, err := elastic.SetupWithManager(connection.Manager, elastic.Options{Rooms: tasks.Rooms, Claims: tasks.Claims, Sources: tasks.IdleSources, Leader: elected}); err != nil {
		return controller{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := controller{stop, make(chan error, 1), line}
	go func() {
		var group errgroup.Group
		group.Go(func() error { return connection.Run(ctx) })
		group.Go(func() error {
			select {
			case <-connection.Ready():
				return elected.Run(ctx)
			case <-ctx.Done():
				return nil
			}
		})
		r.stopped <- group.Wait()
	}()
	return r, nil
}

// end stops the controller and returns how it ended.
func (c controller) end() error {
	c.stop()
	return <-c.stopped
}
