package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// watches measures the console's watches, by kind.
type watches struct {
	open           *prometheus.GaugeVec
	starts, errors *prometheus.CounterVec

	mu     sync.Mutex
	synced map[string][]toolscache.InformerSynced
}

func newWatches() *watches {
	by := []string{"kind"}
	return &watches{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kuota_watch_open", Help: "Open watches by kind; 0 while the API server does not answer.",
		}, by),
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kuota_watch_starts_total", Help: "Watches opened, by kind. The API server closes a watch after some minutes, and the console opens it again.",
		}, by),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kuota_watch_errors_total", Help: "Failed attempts to list or watch, by kind.",
		}, by),
		synced: map[string][]toolscache.InformerSynced{},
	}
}

// informer creates an informer whose watch is measured. It is a NewInformer
// option of the caches.
func (w *watches) informer(list toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	kind := "unknown"
	if gvk, err := apiutil.GVKForObject(of, Scheme); err == nil {
		kind = gvk.GroupKind().String()
	}
	informer := toolscache.NewSharedIndexInformer(w.counted(kind, list), of, resync, indexers)
	w.follow(kind, informer.HasSynced)
	return informer
}

// follow adds an informer of a kind. The kind counts as synced once all its
// informers have.
func (w *watches) follow(kind string, synced toolscache.InformerSynced) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced[kind] = append(w.synced[kind], synced)
}

// counted wraps list so that its lists and watches are measured.
func (w *watches) counted(kind string, list toolscache.ListerWatcher) toolscache.ListerWatcher {
	open, starts, failed := w.open.WithLabelValues(kind), w.starts.WithLabelValues(kind), w.errors.WithLabelValues(kind)
	asked := toolscache.ToListerWatcherWithContext(list)
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			objects, err := asked.ListWithContext(ctx, options)
			if err != nil && ctx.Err() == nil {
				failed.Inc()
			}
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			opened, err := asked.WatchWithContext(ctx, options)
			if err != nil {
				if ctx.Err() == nil {
					failed.Inc()
				}
				return nil, err
			}
			starts.Inc()
			open.Inc()
			return &openWatch{Interface: opened, closed: sync.OnceFunc(open.Dec)}, nil
		},
	}, list)
}

// openWatch is a watch that calls closed once when it is stopped, which its
// reader does in every case.
type openWatch struct {
	watch.Interface
	closed func()
}

// Stop implements watch.Interface.
func (o *openWatch) Stop() {
	o.Interface.Stop()
	o.closed()
}

var syncedDesc = prometheus.NewDesc("kuota_watch_synced", "1 when the informer cache of a kind has synced since the console started, else 0.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (w *watches) Describe(to chan<- *prometheus.Desc) {
	to <- syncedDesc
	w.open.Describe(to)
	w.starts.Describe(to)
	w.errors.Describe(to)
}

// Collect implements prometheus.Collector.
func (w *watches) Collect(to chan<- prometheus.Metric) {
	w.open.Collect(to)
	w.starts.Collect(to)
	w.errors.Collect(to)
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, informers := range w.synced {
		value := 1.0
		for _, synced := range informers {
			if !synced() {
				value = 0
			}
		}
		to <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, value, kind)
	}
}
