package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"kuota.dev/kuota/governance"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LabelRevisionOf labels the ControllerRevisions of the console. Its value
// names the object; package revisions chooses it.
const LabelRevisionOf = "kuota.dev/revision-of"

const ownerIndex = "of"

// Revisions stores ControllerRevisions in the namespace of the console. It
// watches their metadata, so that listing them costs no API call. Their data is
// read from the API server one by one.
type Revisions struct {
	namespace string
	clients   kubernetes.Interface
	metadata  metadata.ResourceInterface
	informer  toolscache.SharedIndexInformer
}

func newRevisions(config *rest.Config, clients kubernetes.Interface, namespace string, counts *watches) (*Revisions, error) {
	direct, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch revisions: %w", err)
	}
	watching := rest.CopyConfig(config)
	watching.Wrap(func(next http.RoundTripper) http.RoundTripper { return redialer{next} })
	watched, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, fmt.Errorf("watch revisions: %w", err)
	}
	kind := appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	indexers := toolscache.Indexers{ownerIndex: func(object any) ([]string, error) {
		of := object.(*metav1.PartialObjectMetadata).Labels[LabelRevisionOf]
		return []string{of}, nil
	}}
	ours := watched.Resource(kind).Namespace(namespace)
	informer := counts.informer(&toolscache.ListWatch{ // without those of DaemonSets and StatefulSets
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = LabelRevisionOf
			return ours.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = LabelRevisionOf
			return ours.Watch(ctx, options)
		},
	}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"}}, 0, indexers)
	err = informer.SetTransform(func(object any) (any, error) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			o.ManagedFields = nil
		}
		return object, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch revisions: %w", err)
	}
	return &Revisions{namespace: namespace, clients: clients, metadata: direct.Resource(kind).Namespace(namespace), informer: informer}, nil
}

// run runs the watch until ctx ends, and notifies of changes.
func (r *Revisions) run(ctx context.Context, changes *Notifier, log *slog.Logger) {
	if _, err := r.informer.AddEventHandler(chainHandlers(log, nil, changes.Notify)); err != nil {
		log.Error("watching revisions", "error", err)
		return
	}
	r.informer.RunWithContext(ctx)
}

// Cached returns the revisions of an owner from the cache, in no order. They
// are shared: do not modify them. It returns governance.Unavailable until the
// cache has synced.
func (r *Revisions) Cached(of string) ([]*metav1.PartialObjectMetadata, error) {
	if !r.informer.HasSynced() {
		return nil, &governance.Error{Kind: governance.Unavailable, Op: "list revisions", Message: "The versions cannot be read yet. Try again in a moment."}
	}
	objects, err := r.informer.GetIndexer().ByIndex(ownerIndex, of)
	if err != nil {
		return nil, &governance.Error{Op: "list revisions", Message: "The versions cannot be read. See the console's log for the reason.", Err: err}
	}
	known := make([]*metav1.PartialObjectMetadata, 0, len(objects))
	for _, object := range objects {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			known = append(known, o)
		}
	}
	return known, nil
}

// Owners returns the values of LabelRevisionOf, in no order.
func (r *Revisions) Owners() []string {
	if !r.informer.HasSynced() {
		return nil
	}
	return r.informer.GetIndexer().ListIndexFuncValues(ownerIndex)
}

// List returns the revisions of an owner from the API server.
func (r *Revisions) List(ctx context.Context, of string) ([]*metav1.PartialObjectMetadata, error) {
	list, err := r.metadata.List(ctx, metav1.ListOptions{LabelSelector: LabelRevisionOf + "=" + of})
	if err != nil {
		return nil, Translate("list revisions", err)
	}
	live := make([]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		live[i] = &list.Items[i]
	}
	return live, nil
}

// Get returns one revision with its data.
func (r *Revisions) Get(ctx context.Context, name string) (*appsv1.ControllerRevision, error) {
	revision, err := r.clients.AppsV1().ControllerRevisions(r.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, Translate("read revision", err)
	}
	return revision, nil
}

// Create creates a revision. It returns false if the name is taken.
func (r *Revisions) Create(ctx context.Context, revision *appsv1.ControllerRevision) (bool, error) {
	revision.Namespace = r.namespace
	_, err := r.clients.AppsV1().ControllerRevisions(r.namespace).Create(ctx, revision, metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, Translate("keep revision", err)
}

// Delete deletes a revision if it exists.
func (r *Revisions) Delete(ctx context.Context, name string) error {
	err := r.clients.AppsV1().ControllerRevisions(r.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	return Translate("delete revision", client.IgnoreNotFound(err))
}
