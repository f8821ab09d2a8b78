package dependencies

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// recheckInterval is how often a task that waits for another one is looked at, and neverInterval
	// one that can never start.
	recheckInterval, neverInterval = 2 * time.Second, 10 * time.Minute
	// unknownFor is for how long a task is not taken for deleted: after its successor was created,
	// and after this process started.
	unknownFor = 30 * time.Second
)

// Ending is how a task ended.
type Ending string

// The endings.
const (
	NotEnded  Ending = ""
	Succeeded Ending = "Succeeded"
	Failed    Ending = "Failed"
	Deleted   Ending = "Deleted" // before it ended, or it is not known how
)

// Reconciler removes gates. It reads from a cache of Workloads, and writes to their jobs.
type Reconciler struct {
	Client client.Client
	// Ending returns how a task ended.
	Ending func(context.Context, tasks.Key) (Ending, error)
	Now    func() time.Time

	started sync.Once
	since   time.Time // of the first request
	mu      sync.Mutex
	known   map[tasks.Key]Ending // of deleted tasks, which stays as it is
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, lead *leader.Leader, paused func() bool) error {
	r.Client = manager.GetClient()
	return ctrl.NewControllerManagedBy(manager).Named("dependencies").
		Watches(&kueue.Workload{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			if after, _ := tasks.AfterOf(o); len(after) == 0 || !releasable(metav1.GetControllerOfNoCopy(o)) {
				return nil
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		})).
		WatchesRawSource(source.Channel(lead.Events(), handler.EnqueueRequestsFromMapFunc(r.all))).
		WithOptions(cluster.ControllerOptions(4, 5*time.Second)).
		Complete(lead.Reconciler(r, paused))
}

// all returns the Workloads that wait for tasks.
func (r *Reconciler) all(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	var list kueue.WorkloadList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the watch reports it
	}
	for i := range list.Items {
		if after, _ := tasks.AfterOf(&list.Items[i]); len(after) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile removes the gates of one Workload whose tasks have ended.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := r.Client.Get(ctx, request.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after, keep := tasks.AfterOf(&w)
	if len(after) == 0 || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
		return ctrl.Result{}, nil
	}
	kept, again := len(keep), neverInterval
	for _, a := range after {
		ending, err := r.ending(ctx, tasks.Key{Namespace: w.Namespace, UID: a.UID}, w.CreationTimestamp.Time)
		if err != nil {
			return ctrl.Result{}, err
		}
		if ending == NotEnded {
			again = recheckInterval
		}
		if ending == NotEnded || ending != Succeeded && !a.Any {
			keep = append(keep, a.Gate())
		}
	}
	if len(keep) == kept+len(after) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	if err := Release(ctx, r.Client, &w, keep); err != nil && !apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheckInterval}, nil
}

// maxKnown bounds the endings that are kept.
const maxKnown = 10_000

// ending returns how a task ended, whose successor was created at a time.
func (r *Reconciler) ending(ctx context.Context, key tasks.Key, created time.Time) (Ending, error) {
	now := r.Now()
	r.started.Do(func() { r.since = now })
	r.mu.Lock()
	ending, known := r.known[key]
	r.mu.Unlock()
	if known {
		return ending, nil
	}
	ending, err := r.Ending(ctx, key)
	switch {
	case err != nil || ending != Deleted:
		return ending, err
	case now.Sub(created) < unknownFor || now.Sub(r.since) < unknownFor:
		return NotEnded, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxKnown {
		r.known = map[tasks.Key]Ending{}
	}
	r.known[key] = ending
	return ending, nil
}
