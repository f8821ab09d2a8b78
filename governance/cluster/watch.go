package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

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

// followInterval is how often a kind that is followed is looked for while the
// API server does not have it.
const discoveryRetry = 30 * time.Second

// Followed is a kind that there are many objects of, of which little is kept.
type WatchedResource struct {
	// Kind is its group and resource, in whatever version. Pods and batch Jobs are
	// read whole, of others only the metadata.
	Resource schema.GroupResource
	// Slim makes of each object what is kept and told of: a *corev1.Pod, a
	// *batchv1.Job or a *metav1.PartialObjectMetadata comes in, something with
	// metadata goes out. That may come in once more, and goes out as it is.
	Transform func(object any) (any, error)
	// Handler is told of every change.
	Handler toolscache.ResourceEventHandler
	// Synced is called once all objects were told of, or the API server turned out
	// not to have the kind. nil for nobody.
	OnSynced func()
}

// Follow has a kind followed, without waiting for it: where the console may not
// read it, what is told of stays empty. It is called before Run.
func (c *Cluster) WatchResource(f WatchedResource) { c.watched = append(c.watched, f) }

// follow follows a kind until ctx ends, from when there is one.
func (c *Cluster) watchResource(ctx context.Context, f WatchedResource) {
	told := false
	synced := func() {
		if !told && f.OnSynced != nil {
			told = true
			f.OnSynced()
		}
	}
	for {
		kind, err := c.Manager.GetRESTMapper().ResourceFor(f.Resource.WithVersion(""))
		if err == nil {
			c.runInformer(ctx, f, kind, synced)
			return
		}
		if meta.IsNoMatchError(err) {
			synced()
		}
		if sleep(ctx, discoveryRetry) != nil {
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
	if gvk, err := c.Manager.GetRESTMapper().KindFor(kind); err == nil {
		name = gvk.GroupKind().String()
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: c.watches.counted(name, list), ObjectType: object, Transform: f.Transform,
		Handler: chainHandlers(f.Handler, c.TaskChanges.Notify),
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

// listWatch reads a kind: whole where it is known here, else its metadata.
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
