package loopguard

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/cluster"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Setup adds the guard to a manager. It reads from the manager's cache and
// writes under its own name.
func (g *Guard) Setup(manager ctrl.Manager) error {
	config := rest.CopyConfig(manager.GetConfig())
	config.UserAgent = Name
	config.Wrap(g.Leader.Fence)
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("set up the loop guard: %w", err)
	}
	g.Client, err = client.New(config, client.Options{
		Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper(), HTTPClient: http,
		Cache: &client.CacheOptions{Reader: manager.GetCache()},
	})
	if err != nil {
		return fmt.Errorf("set up the loop guard: %w", err)
	}
	g.Live, g.Events = manager.GetAPIReader(), manager.GetEventRecorder(Name)
	g.Start()
	return ctrl.NewControllerManagedBy(manager).Named("loopguard").
		Watches(&kueue.Workload{}, g.handler()).
		WatchesRawSource(source.Channel(g.Leader.Events(), g.handler())).
		WithOptions(cluster.ControllerOptions(4, 5*time.Second)).
		Complete(g)
}

// handler passes every change of a Workload on, in order.
func (g *Guard) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queue, due []types.NamespacedName) {
		for _, key := range due {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	workload := func(o client.Object) *kueue.Workload {
		w, _ := o.(*kueue.Workload)
		return w
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if w := workload(e.Object); w != nil {
				enqueue(q, g.Observe(nil, w, e.IsInInitialList))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if before, after := workload(e.ObjectOld), workload(e.ObjectNew); before != nil && after != nil {
				enqueue(q, g.Observe(before, after, false))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if w := workload(e.Object); w != nil {
				enqueue(q, g.Observe(w, nil, false))
			}
		},
		// This replica leads now.
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { enqueue(q, g.pending()) },
	}
}

var (
	detected = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_preemption_loops_total", Help: "Preemption loops that were detected: Kueue preempted a workload again and again for one that it did not admit.",
	})
	holds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kuota_preemption_loop_holds_total", Help: "Holds of the loop guard that ended, by how: admitted (the preemptor got its quota), ended (the preemptor finished or was deleted), expired, policy, restarted, or person.",
	}, []string{"end"})
)

func init() {
	metrics.Registry.MustRegister(detected, holds)
	for _, end := range []string{byAdmission, byEnd, byLimit, byPolicy, byRestart, byPerson} { // 0 from the start, so that the first one is a change
		holds.WithLabelValues(end)
	}
}

var activeDesc = prometheus.NewDesc("kuota_preemption_loops", "Preemption loops that go on, by state: Looping or Held.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (g *Guard) Describe(to chan<- *prometheus.Desc) { to <- activeDesc }

// Collect implements prometheus.Collector.
func (g *Guard) Collect(to chan<- prometheus.Metric) {
	counts := map[State]int{}
	for _, l := range g.Loops() {
		counts[l.State]++
	}
	for _, state := range []State{Looping, Held} {
		to <- prometheus.MustNewConstMetric(activeDesc, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}
