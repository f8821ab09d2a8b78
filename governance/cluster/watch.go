package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// discoveryRetry is how often the API server is asked for a watched resource
// that it does not serve.
const discoveryRetry = 30 * time.Second

// WatchedResource is a resource with many objects, of which only some fields
// are cached.
type WatchedResource struct {
	// Resource is the group and resource; any version. Pods and batch Jobs are read
	// as a whole, of all others only the metadata.
	Resource schema.GroupResource
	// Transform converts a *corev1.Pod, a *batchv1.Job or a
	// *metav1.PartialObjectMetadata to the object with metadata that is cached and
	// passed to Handler. It must return its own results unchanged.
	Transform func(object any) (any, error)
	// Handler receives every event.
	Handler toolscache.ResourceEventHandler
	// OnSynced is called once Handler received all objects, or the API server does
	// not serve the resource. It may be nil.
	OnSynced func()
}

// WatchResource watches a resource without waiting for it: if the console has
// no permission, Handler receives nothing. It must be called before Run.
func (c *Cluster) WatchResource(f WatchedResource) { c.watched = append(c.watched, f) }

// watchResource watches a resource until ctx ends, from when the API server
// serves it.
func (c *Cluster) watchResource(ctx context.Context, f WatchedResource) {
	called := false
	synced := func() {
		if !called && f.OnSynced != nil {
			called = true
			f.OnSynced()
		}
	}
	for {
		kind, err := c.mapper.ResourceFor(f.Resource.WithVersion(""))
		if err == nil {
			c.runInformer(ctx, f, kind, synced)
			return
		}
		if meta.IsNoMatchError(err) {
			synced()
		}
		if governance.Sleep(ctx, discoveryRetry) != nil {
			return
		}
	}
}

func (c *Cluster) runInformer(ctx context.Context, f WatchedResource, kind schema.GroupVersionResource, synced func()) {
	list, object, err := c.listWatch(kind)
	if err != nil {
		c.log.Error("following a kind", "kind", f.Resource, "error", err)
		return
	}
	name := f.Resource.String()
	if gvk, err := c.mapper.KindFor(kind); err == nil {
		name = gvk.GroupKind().String()
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: c.watches.counted(name, list), ObjectType: object, Transform: f.Transform,
		Handler: chainHandlers(c.log, f.Handler, c.TaskChanges.Notify),
	})
	c.watches.follow(name, informer.HasSynced)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			synced()
			c.TaskChanges.Notify()
		}
	}()
	informer.RunWithContext(ctx)
}

// listWatch returns a ListerWatcher of full objects for pods and jobs, else of
// metadata.
func (c *Cluster) listWatch(kind schema.GroupVersionResource) (toolscache.ListerWatcher, runtime.Object, error) {
	config := rest.CopyConfig(c.Manager.GetConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return redialer{next} })
	var reader toolscache.Getter
	var object runtime.Object
	switch kind.GroupResource() {
	case schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}:
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
		}
		reader, object = clients.CoreV1().RESTClient(), &corev1.Pod{}
		if kind.Group != "" {
			reader, object = clients.BatchV1().RESTClient(), &batchv1.Job{}
		}
		return toolscache.NewListWatchFromClient(reader, kind.Resource, metav1.NamespaceAll, fields.Everything()), object, nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	all := client.Resource(kind)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: all.Watch,
	}, &metav1.PartialObjectMetadata{}, nil
}

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
