package submit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifests keeps the manifests of tasks that may be deleted. Its implementation is the
// history database.
type Manifests interface {
	history.Asider
	KeepManifest(ctx context.Context, uid string, at time.Time, text string) error
	Manifest(ctx context.Context, uid string) (text string, ok bool, err error)
	WithManifest(ctx context.Context, uids []string) (map[string]bool, error)
	Tasks(ctx context.Context, q history.Query) ([]history.Task, error)
}

const (
	keepInterval = 5 * time.Second
	keepGap      = 20 * time.Millisecond // between two tasks, whose objects are read one by one
	keepTimeout  = 3 * time.Second
)

// Keeper keeps the manifests of the tasks that are submitted outside of the console, within
// seconds after they are created. It reads them with the console's own account, which may
// not read scripts. Only the leader does so.
type Keeper struct {
	Service *Service
	Leader  *leader.Leader // nil means that there is only one replica
	Log     *slog.Logger

	known map[string]bool // tasks that exist, by UID, and need no more work
}

// Run keeps manifests until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	k.Leader.Lead(ctx, func(ctx context.Context) {
		k.known = nil // another replica may have kept some meanwhile
		wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
			if err := k.keepNew(ctx); err != nil && ctx.Err() == nil {
				k.Log.Warn("manifests of new tasks are not kept yet", "error", err)
			}
		}, keepInterval)
	})
	return nil
}

// keepNew keeps the manifests of the tasks that appeared since the last time.
func (k *Keeper) keepNew(ctx context.Context) error {
	known, added := map[string]bool{}, []*tasks.Task{}
	var uids []string
	k.Service.Tasks.Index.Each(func(t *tasks.Task) {
		if k.known[t.UID] {
			known[t.UID] = true
		} else if _, ok := sourceKind(t.Kind); ok {
			added, uids = append(added, t), append(uids, t.UID)
		}
	})
	k.known = known
	if len(added) == 0 {
		return nil
	}
	kept, err := k.Service.Manifests.WithManifest(ctx, uids)
	if err != nil {
		return err
	}
	return k.keepEach(ctx, added, kept, k.keep)
}

// keepEach keeps the manifests of tasks, unless they are kept. Of a task that has none that
// can be kept, it logs the reason, once. An error is one that time mends. Other tasks of a
// kind whose API does not answer are left to the next time.
func (k *Keeper) keepEach(ctx context.Context, added []*tasks.Task, kept map[string]bool, keep func(context.Context, *tasks.Task) error) error {
	var failed []error
	hangs := map[string]bool{} // by kind
	for _, t := range added {
		if hangs[t.Kind] {
			continue
		}
		if !kept[t.UID] {
			switch err := governance.Recovered(func() error { return keep(ctx, t) }); {
			case err == nil:
			case history.Retryable(err) || governance.KindOf(err) == governance.Unavailable:
				failed, hangs[t.Kind] = append(failed, err), errors.Is(err, context.DeadlineExceeded)
				continue
			default:
				k.Log.Warn("the manifest of a task cannot be kept", "kind", t.Kind, "task", klog.KRef(t.Namespace, t.Name), "error", err)
			}
			if err := governance.Sleep(ctx, keepGap); err != nil {
				return err
			}
		}
		k.known[t.UID] = true
	}
	return errors.Join(failed...)
}

func (k *Keeper) keep(ctx context.Context, t *tasks.Task) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	reader := listReader{k.Service.Cluster.Manager.GetAPIReader()}
	object, err := k.Service.read(ctx, reader, t.Namespace, t.Kind, t.Name, t.UID)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err):
		return nil // it was deleted, or a kind that the console may not read
	case err != nil:
		return cluster.Translate("read "+t.Kind, err)
	}
	text, err := againText(object, "")
	if err != nil {
		return err
	}
	return history.WriteOrSetAside(ctx, k.Service.Manifests, "manifests", []string{text}, func(ctx context.Context, texts []string) error {
		return k.Service.Manifests.KeepManifest(ctx, t.UID, t.Submitted, texts[0])
	})
}

// listReader gets objects by listing those of one name: the console's account lists the
// kinds of tasks that it watches, and needs no other permission.
type listReader struct{ client.Reader }

func (r listReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	one, ok := object.(*unstructured.Unstructured)
	if !ok {
		return r.Reader.Get(ctx, key, object, options...)
	}
	kind := one.GroupVersionKind()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	*one = list.Items[0]
	return nil
}
