package reconcile

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/revisions"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// revisionsRetry is when recording a revision is retried if the console has no
// namespace, or no permission.
const revisionsRetry = time.Minute

// revisionsGrace is how long a console that starts leaves the objects it found
// to a console that ran before. Only the other one may have seen changes in
// between, and a revision is never inserted before others.
const revisionsGrace = 3 * time.Second

// seriesLength is how many specs of one object are recorded before others have
// their turn.
const seriesLength = 20

// RevisionReconciler records every spec of policies and allocations. Unlike the
// other controllers it must process each change and not only the last one, so
// it queues the objects of watch events in their order.
type RevisionReconciler struct {
	client.Client // reads from the cache
	Store         revisions.Store
	Now           func() time.Time
	// RecordsUsers reports whether the API server records who changes a spec; nil
	// means that it does.
	RecordsUsers func() bool
	Activity     *activity.Log // of changes without the console; nil without history

	mu      sync.Mutex
	pending map[reconcile.Request][]observation
	logOnce sync.Once // logs a missing namespace or permission once
}

// followInterval is how often a replica that does not lead checks whether the
// leader recorded what it observed.
const followInterval = 2 * time.Second

// followLeader returns the reconciler of a replica: it records while the replica
// leads. Otherwise it queues what it observes until the leader has recorded it, so
// that a new leader records every change since its predecessor's last version.
func (r *RevisionReconciler) followLeader(options Options) reconcile.Reconciler {
	leading := options.Leader.Reconciler(r, options.ReadOnly)
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		if options.Leader == nil || options.Leader.State().Leads {
			return leading.Reconcile(ctx, request)
		}
		for {
			next, ok := r.first(request)
			if !ok || next.object == nil {
				return ctrl.Result{}, nil
			}
			if !revisions.Recorded(r.Store, next.object) {
				return ctrl.Result{RequeueAfter: followInterval}, nil
			}
			if !r.pop(request) {
				return ctrl.Result{}, nil
			}
		}
	})
}

// pendingRequests returns a handler of any event, which enqueues all objects with
// queued specs.
func (r *RevisionReconciler) pendingRequests() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) (all []reconcile.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for request, queued := range r.pending {
			if len(queued) > 0 {
				all = append(all, request)
			}
		}
		return all
	})
}

// observation is an object of a watch event.
type observation struct {
	object  client.Object // from the cache: read only
	at      time.Time
	initial bool // the object existed when the console started
}

// Names of kinds in requests, which have no other place for them.
const (
	requestPolicy     = "policy"
	requestAllocation = "allocation"
)

// Reconcile records the queued specs of one object, or its current spec if none
// was ever queued, as after a restart.
func (r *RevisionReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	series := &revisions.Series{Store: r.Store}
	for range seriesLength {
		next, ok := r.first(request)
		if !ok {
			return ctrl.Result{}, nil
		}
		if next.object == nil {
			object, err := r.readObject(ctx, request)
			if err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return r.result(ctx, r.record(ctx, series, object, r.Now()))
		}
		if wait := revisionsGrace - r.Now().Sub(next.at); next.initial && wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		if err := r.record(ctx, series, next.object, next.at); refused(err) {
			logf.FromContext(ctx).Error(err, "a version cannot be kept, and the next one counts it as missing", "generation", next.object.GetGeneration())
		} else if err != nil {
			return r.result(ctx, err)
		}
		if !r.pop(request) {
			return ctrl.Result{}, nil
		}
	}
	return ctrl.Result{RequeueAfter: time.Millisecond}, nil
}

// record records the spec of an object, with its user if the API server recorded
// that.
func (r *RevisionReconciler) record(ctx context.Context, series *revisions.Series, object client.Object, at time.Time) error {
	if r.RecordsUsers != nil && !r.RecordsUsers() {
		object = revisions.WithoutUser(object)
	}
	series.Recording = func(made revisions.Revision, before []byte) { r.Activity.Add(seenChange(object, made, before)) }
	return series.Record(ctx, object, at)
}

// seenChange returns a version as activity. The console's own entry of the same change has the
// same id and replaces it, so that what remains was done without the console. before is the
// manifest of the version before; empty for none.
func seenChange(object client.Object, r revisions.Revision, before []byte) history.Activity {
	e := history.Activity{
		ID: history.ChangeID(r.UID, r.Generation), At: r.At.UTC(), Actor: r.By, Source: history.SourceOutside, Action: string(seenAction(object, before)),
		Kind: "ComputeAllocation", Name: object.GetName(), UID: r.UID, Team: object.GetName(), Reason: r.Reason, Outcome: history.Succeeded,
	}
	if _, ok := object.(*v1alpha1.ClusterPolicy); ok {
		e.Kind, e.Team = "ClusterPolicy", ""
	}
	switch {
	case r.IsDeletion():
		e.ID, e.Action = history.DeletionID(r.UID), string(audit.OfDeletion(object.GetAnnotations()))
	case r.Generation == 1:
		e.Action = string(audit.Create)
	}
	if r.Summary != "" && !r.IsDeletion() {
		e.Changes = []string{r.Summary}
	}
	if r.ByProgram { // a field manager is no person
		e.Actor, e.Changes = "", append(e.Changes, "by field manager "+r.By)
	}
	return e
}

// seenAction returns the action of a changed spec.
func seenAction(object client.Object, before []byte) audit.Action {
	var was v1alpha1.ComputeAllocation
	allocation, ok := object.(*v1alpha1.ComputeAllocation)
	if !ok || json.Unmarshal(before, &was) != nil {
		return audit.Update
	}
	return audit.OfActivation(was.Spec.Activation, allocation.Spec.Activation)
}

// result returns when to retry after err. A missing namespace or permission is
// no error, so that the other controllers continue.
func (r *RevisionReconciler) result(ctx context.Context, err error) (ctrl.Result, error) {
	switch governance.KindOf(err) {
	case governance.NotFound, governance.Forbidden:
		r.logOnce.Do(func() {
			logf.FromContext(ctx).Error(err, "versions cannot be kept: the console's namespace or its Role kuota-revisions is missing")
		})
		return ctrl.Result{RequeueAfter: revisionsRetry}, nil
	}
	return ctrl.Result{}, err
}

// refused reports whether the API server rejects this revision, and may accept the next one
// of the object.
func refused(err error) bool {
	return governance.KindOf(err) == governance.Invalid || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

func (r *RevisionReconciler) readObject(ctx context.Context, request ctrl.Request) (client.Object, error) {
	var object client.Object = &v1alpha1.ComputeAllocation{}
	if request.Namespace == requestPolicy {
		object = &v1alpha1.ClusterPolicy{}
	}
	return object, r.Get(ctx, client.ObjectKey{Name: request.Name}, object)
}

// eventHandler queues the objects of events.
func (r *RevisionReconciler) eventHandler(kind string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	note := func(object client.Object, found bool, q queue) {
		request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: kind, Name: object.GetName()}}
		r.mu.Lock()
		if r.pending == nil {
			r.pending = map[reconcile.Request][]observation{}
		}
		r.pending[request] = append(r.pending[request], observation{object, r.Now(), found})
		r.mu.Unlock()
		q.Add(request)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { note(e.Object, e.IsInInitialList, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { note(e.ObjectNew, false, q) },
	}
}

// first returns the oldest queued sighting of an object. It returns false if
// all were recorded, and an empty sighting if none was ever queued.
func (r *RevisionReconciler) first(request ctrl.Request) (observation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, ever := r.pending[request]
	switch {
	case len(seen) > 0:
		return seen[0], true
	case ever:
		return observation{}, false
	}
	return observation{}, true
}

// pop removes the oldest sighting, and reports whether there are more.
func (r *RevisionReconciler) pop(request ctrl.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[request] = r.pending[request][1:]
	if len(r.pending[request]) == 0 {
		r.pending[request] = nil
		return false
	}
	return true
}

// specChanged passes new objects and changed specs, also of an object that was
// deleted and created again between two events.
var specChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
