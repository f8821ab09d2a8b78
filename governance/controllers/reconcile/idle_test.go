package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// writes records the write requests of controllers.
type writes struct {
	next http.RoundTripper
	n    atomic.Int64
	mu   sync.Mutex
	seen []string
}

func (w *writes) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.URL.Query().Get("dryRun") == "" { // a dry run writes nothing
		w.n.Add(1)
		w.mu.Lock()
		w.seen = append(w.seen, request.Method+" "+request.URL.Path)
		w.mu.Unlock()
	}
	return w.next.RoundTrip(request)
}

// others starts a second console's controllers and records their writes. They end
// with the test.
func others(t *testing.T, c *clustertest.Cluster) *writes {
	t.Helper()
	count := &writes{}
	config := rest.CopyConfig(c.Console)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if count.next == nil {
			count.next = next
			return count
		}
		return next
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	connection, err := cluster.New(config, cluster.Options{Namespace: "kuota-system", NoSessions: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall, Revisions: connection.Revisions}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connection.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return count
}

// quiet waits until nothing was written for the duration rest, and fails the test
// after limit: controllers that never stop writing revert each other.
func (w *writes) quiet(t *testing.T, rest, limit time.Duration) {
	t.Helper()
	before, since := w.n.Load(), time.Now()
	clustertest.Eventually(t, limit, func(context.Context) error {
		if n := w.n.Load(); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) < rest {
			w.mu.Lock()
			defer w.mu.Unlock()
			return fmt.Errorf("controllers still write: %s", strings.Join(w.seen[max(0, len(w.seen)-5):], ", "))
		}
		return nil
	})
}

// Several consoles on one cluster apply every change, correct none of each other's
// writes, and then write nothing while tasks are submitted and deleted.
func TestSeveralConsoles(t *testing.T) {
	c := setup(t)
	second := others(t, c)
	third := others(t, c)
	spec := ranking(class("pair", 10))
	spec.IdleCompute.ShareUnallocated = true
	setPolicy(t, c, spec)
	var teams []string
	for range 3 {
		team := clustertest.Name("pair")
		teams = append(teams, team)
		spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(1)})
		spec.Members, spec.NamespaceCeiling, spec.DefaultQueue = []v1alpha1.Member{{Kind: "User", Name: "mia@example.com"}}, true, true
		create(t, c, team, spec)
	}
	for n := int64(2); n <= 4; n++ {
		for _, team := range teams {
			setQuota(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(n)}))
		}
	}
	spec.PriorityClasses = []v1alpha1.PriorityClass{class("pair", 40)}
	setPolicy(t, c, spec)
	policyIs(t, c, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for _, team := range teams {
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { // Kueue may be restarting
			var allocation v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != allocation.Generation {
				return fmt.Errorf("%s is not ready: %+v", team, ready)
			}
			var queue kueue.ClusterQueue
			if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
				return err
			}
			if got := queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota; got.Value() != 4 {
				return fmt.Errorf("%s has %s GPUs, want 4", team, got.String())
			}
			return nil
		})
		fix := &v1alpha1.ComputeAllocation{}
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, fix); err != nil {
			t.Fatal(err)
		}
		if fix.Status.LastCorrection != nil {
			t.Errorf("a console corrected the write of another: %+v", fix.Status.LastCorrection)
		}
	}
	second.quiet(t, 3*time.Second, clustertest.Patience)
	third.quiet(t, 3*time.Second, clustertest.Patience)

	// Tasks and the queue status that Kueue writes trigger reconciliations.
	before := second.n.Load() + third.n.Load()
	for i := range 5 {
		submit(t, c, teams[0], fmt.Sprintf("task-%d", i))
		c.Kubectl(t, "", "delete", "job", fmt.Sprintf("task-%d", i), "-n", "hyperpod-ns-"+teams[0])
		admitted(t, c, teams[0], 0)
	}
	if n := second.n.Load() + third.n.Load() - before; n != 0 {
		t.Errorf("idle controllers wrote %d times: %v %v", n, second.seen[max(0, len(second.seen)-3):], third.seen[max(0, len(third.seen)-3):])
	}
}

// While Kueue is stopped, Ready reports that Kuota retries. Allocations become ready
// when Kueue is back.
func TestKueueStopped(t *testing.T) {
	c := setup(t)
	team, later := clustertest.Name("away"), clustertest.Name("away-later")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.Control(t, "stop", "kueue")
	back := sync.OnceFunc(func() { c.Control(t, "start", "kueue") })
	defer back()
	setQuota(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(2)}))
	create(t, c, later, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "retrying")
	conditionIs(t, c, later, v1alpha1.ConditionReady, metav1.ConditionFalse, "retrying")
	back()
	for _, name := range []string{team, later} {
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var allocation v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &allocation); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(allocation.Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("%s is not ready: %+v", name, allocation.Status.Conditions)
			}
			return nil
		})
	}
}
