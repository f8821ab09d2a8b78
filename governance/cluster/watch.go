package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"kuota.dev/kuota/governance"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
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
