package loopguard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Ends of a hold, as the metric has them.
const (
	byAdmission = "admitted"  // the preemptor has quota
	byEnd       = "ended"     // the preemptor finished or was deleted
	byLimit     = "expired"   // the limit of the hold
	byPolicy    = "policy"    // the policy is Warn now, or is deleted
	byRestart   = "restarted" // another process held it
	byPerson    = "person"    // a person stopped or resumed the Workload
)

// step is what Reconcile does with a Workload.
type step struct {
	do    action
	limit time.Duration // of a hold
	first bool          // the hold ends with the admission of the preemptor
	why   string        // end of a hold
	not   Reason        // why there is no hold
	after time.Duration // until the next check; 0 for none
}

type action int

const (
	wait action = iota
	hold
	release
	unhold // a person took it over
	warn
)

// Reconcile holds or releases one Workload, as its loop and its mark require. If
// this replica does not lead, it only takes in what the leader did.
func (g *Guard) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	led := g.Leader.Within(ctx, func(ctx context.Context) { result, err = g.lead(ctx, request) })
	if !led {
		err = g.follow(ctx, request)
	}
	return result, err
}

// lead reconciles one Workload as the leader.
func (g *Guard) lead(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if l := g.ofService(request.NamespacedName); l != nil { // never held
		g.announce(l, true)
		return ctrl.Result{}, nil
	}
	var w kueue.Workload
	if err := g.Client.Get(ctx, request.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	breaks, err := g.breaks(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	governed, err := g.governed(ctx, &w)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := g.Now()
	g.mu.Lock()
	l := g.loops[w.UID]
	if l != nil && l.unseen {
		delete(g.loops, w.UID)
		l = nil
	}
	s := g.next(l, &w, breaks, governed, now)
	g.mu.Unlock()

	g.announce(l, true)
	switch s.do {
	case hold:
		err = g.hold(ctx, l, &w, s)
	case release:
		err = g.release(ctx, l, &w, s.why)
	case unhold:
		err = g.unhold(ctx, l, &w)
	case warn:
		g.change(l, func() { l.wanted, l.NotHeld = false, s.not })
	case wait:
		return ctrl.Result{RequeueAfter: s.after}, nil
	}
	switch {
	case apierrors.IsConflict(err): // Kueue writes its status several times a second
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		g.Log.Warn("Workload of a preemption loop not changed", "workload", klog.KObj(&w), "error", err)
		if l != nil {
			g.change(l, func() { l.NotHeld = NotPermitted })
		}
		return ctrl.Result{RequeueAfter: tryAgain}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.after}, nil
}

// next decides what to do with a Workload. It is called with mu held.
func (g *Guard) next(l *loop, w *kueue.Workload, breaks, governed bool, now time.Time) step {
	mark, marked := MarkOf(w)
	holding := l != nil && l.State == Held
	switch {
	case marked && holding && mark == l.mark && active(w), !marked && holding && l.markSeen:
		return step{do: unhold}
	case marked && holding && mark == l.mark:
		return g.held(l, breaks, now)
	case marked && (active(w) || mark.Identity == g.Identity):
		return step{do: release} // it is released already; only the mark, or the cache, is behind
	case marked && g.found[w.UID]:
		return step{do: release, why: byRestart}
	case marked:
		if left := mark.Until.Add(strangers).Sub(now); left > 0 {
			return step{after: left}
		}
		return step{do: release, why: byLimit}
	case holding: // the cache does not have the mark yet
		return step{after: recheckInterval}
	case l == nil || !l.wanted || l.State != Looping:
		return step{}
	case !breaks:
		return step{do: warn, not: WarnOnly}
	case !governed:
		return step{do: warn, not: NotGoverned}
	case !slices.Contains(holdable, l.Victim.Kind):
		return step{do: warn, not: NotHoldable}
	case now.Before(l.overruled):
		return step{do: warn, not: Overruled}
	case !active(w) || g.detector.served(l.Preemptor.UID) || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished):
		l.wanted = false
		return step{}
	}
	rotation := g.detector.rotation(w.UID, now)
	if g.heldAround(l) || !g.last(w, rotation) {
		return step{do: warn, not: OtherHeld}
	}
	limit, first := l.holdFor(l.Preemptor.UID)
	return step{do: hold, limit: limit, first: first && len(rotation) == 0, after: recheckInterval}
}

// heldAround reports whether a hold of another Workload already breaks a loop: one
// for the sake of its victim, or one of its preemptor. In a loop of three each is
// the victim of the next, and one hold is enough.
func (g *Guard) heldAround(l *loop) bool {
	for _, other := range g.loops {
		if other.State == Held && (other.mark.Preemptor == l.Victim.UID || other.Victim.UID == l.Preemptor.UID) {
			return true
		}
	}
	return false
}

// last reports whether w comes last among the members of a rotation, by priority
// and then by age: that one is held. While another is, the rotation can go on
// without it. Members that cannot be held do not count.
func (g *Guard) last(w *kueue.Workload, rotation []types.UID) bool {
	for _, uid := range rotation {
		other := g.find(uid)
		if other == nil || !slices.Contains(holdable, kindOf(other)) {
			continue
		}
		a, b := ptr.Deref(w.Spec.Priority, 0), ptr.Deref(other.Spec.Priority, 0)
		if b < a || b == a && w.CreationTimestamp.Before(&other.CreationTimestamp) {
			return false
		}
	}
	return true
}

// held decides whether a hold ends.
func (g *Guard) held(l *loop, breaks bool, now time.Time) step {
	left := l.mark.Until.Sub(now)
	switch {
	case !breaks:
		return step{do: release, why: byPolicy}
	case g.detector.ended(l.mark.Preemptor):
		return step{do: release, why: byEnd}
	case l.first && g.detector.served(l.mark.Preemptor):
		return step{do: release, why: byAdmission}
	case left <= 0:
		return step{do: release, why: byLimit}
	}
	return step{after: min(recheckInterval, left)}
}

// breaks reports whether the policy has loops broken. Without a policy Kuota
// governs nothing yet.
func (g *Guard) breaks(ctx context.Context) (bool, error) {
	var policy v1alpha1.ClusterPolicy
	err := g.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil && policy.Spec.PreemptionLoops != v1alpha1.WarnOfLoops && (g.Paused == nil || !g.Paused()), err
}

// governed reports whether Kuota manages the ClusterQueue of a Workload.
func (g *Guard) governed(ctx context.Context, w *kueue.Workload) (bool, error) {
	var local kueue.LocalQueue
	if err := g.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}, &local, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	var queue kueue.ClusterQueue
	if err := g.Client.Get(ctx, client.ObjectKey{Name: string(local.Spec.ClusterQueue)}, &queue, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return queue.Labels[desired.LabelManagedBy] == desired.ManagedBy, nil
}

// hold keeps a victim out of admission: one patch deactivates and marks it, as
// long as nothing else changed in between.
func (g *Guard) hold(ctx context.Context, l *loop, cached *kueue.Workload, s step) error {
	var w kueue.Workload
	if err := g.Live.Get(ctx, client.ObjectKeyFromObject(cached), &w); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := g.Now()
	g.mu.Lock()
	existing, marked := MarkOf(&w)
	lost := marked && existing == l.mark // the answer to an earlier patch was
	stale := w.UID != cached.UID || marked && !lost || !marked && !active(&w) || g.detector.served(l.Preemptor.UID) || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	if !lost && !stale {
		since := now.UTC().Truncate(time.Second)
		l.mark, l.markSeen, l.first = Mark{Identity: g.Identity, Preemptor: l.Preemptor.UID, Since: since, Until: since.Add(s.limit)}, false, s.first
	}
	mark := l.mark
	g.mu.Unlock()
	if stale {
		return nil
	}
	if !lost {
		if err := g.write(ctx, &w, mark.String(), false); err != nil {
			return err
		}
	}
	now = g.Now()
	changed := g.change(l, func() { l.hold(now) })
	g.Watcher.Step(Step{What: WasHeld, At: mark.Since, Of: changed.Victim, Other: changed.Preemptor})
	return nil
}

// release lets a Workload be admitted again, if its mark is still the one that
// was seen. l is nil for a Workload of no known loop.
func (g *Guard) release(ctx context.Context, l *loop, cached *kueue.Workload, why string) error {
	var w kueue.Workload
	if err := g.Live.Get(ctx, client.ObjectKeyFromObject(cached), &w); err != nil {
		return client.IgnoreNotFound(err)
	}
	seen, _ := MarkOf(cached)
	mark, marked := MarkOf(&w)
	if marked && mark == seen {
		if err := g.write(ctx, &w, "", true); err != nil {
			return err
		}
	}
	now := g.Now()
	g.mu.Lock()
	delete(g.found, w.UID)
	ours := l != nil && l.State == Held && l.mark == seen
	g.mu.Unlock()
	if why == "" || !marked && !ours {
		return nil
	}
	holds.WithLabelValues(why).Inc()
	if ours {
		g.change(l, func() { l.enter(Released, now) })
	}
	g.Watcher.Step(Step{What: WasReleased, At: now.UTC().Truncate(time.Second), Of: partyOf(&w, ""), Other: Party{UID: seen.Preemptor}, Reason: why})
	return nil
}

// unhold takes in that a person stopped or resumed a victim during a hold: they
// win.
func (g *Guard) unhold(ctx context.Context, l *loop, w *kueue.Workload) error {
	if _, marked := MarkOf(w); marked {
		if err := g.release(ctx, nil, w, ""); err != nil {
			return err
		}
	}
	now := g.Now()
	changed := g.change(l, func() {
		l.enter(Released, now)
		l.wanted, l.overruled = false, now.Add(respect)
	})
	holds.WithLabelValues(byPerson).Inc()
	g.Watcher.Step(Step{What: WasTakenOver, At: now.UTC().Truncate(time.Second), Of: changed.Victim, Other: changed.Preemptor, Reason: byPerson})
	return nil
}

// write sets the mark of a Workload, or removes it where it is empty, and whether
// Kueue may admit it, in one patch that fails when the Workload changed since it
// was read.
func (g *Guard) write(ctx context.Context, w *kueue.Workload, mark string, activate bool) error {
	was, action := active(w), audit.Release
	if !activate {
		action = audit.Hold
	}
	err := g.Client.Patch(ctx, w, patchOf(w, mark, activate), client.FieldOwner(Name))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write Workload %s: %w", w.Name, err)
	}
	g.Audit.Record(audit.Change{
		User: governance.User{Name: Name}, Program: true, Action: action, Object: w,
		Old: map[string]any{"active": was}, New: map[string]any{"active": activate},
	})
	return nil
}

// change changes a loop, passes it on, and returns it as it is then.
func (g *Guard) change(l *loop, apply func()) Loop {
	g.mu.Lock()
	apply()
	snapshot := l.Loop
	g.mu.Unlock()
	g.Watcher.Loop(snapshot)
	return snapshot
}

// announce reports a loop as it is, and a step in the life of both tasks when it is
// new. The leader also writes events beside both Workloads.
func (g *Guard) announce(l *loop, leads bool) {
	if l == nil {
		return
	}
	g.mu.Lock()
	snapshot, known := l.Loop, l.announced
	l.announced = true
	g.mu.Unlock()
	g.Watcher.Loop(snapshot)
	if known {
		return
	}
	if leads {
		g.Log.Warn("preemption loop", "victim", klog.KRef(snapshot.Victim.Namespace, snapshot.Victim.Name), "preemptor", klog.KRef(snapshot.Preemptor.Namespace, snapshot.Preemptor.Name),
			"preemptions", snapshot.Preemptions, "since", snapshot.Since)
	}
	cause := ""
	if snapshot.Rule == kueue.InCohortFairSharingReason {
		cause = ": a known defect of Kueue's fair sharing"
	}
	for _, side := range []struct {
		of, other Party
		format    string
	}{
		{snapshot.Victim, snapshot.Preemptor, "Kueue preempted this workload %d times in %s for a workload (UID: %s) of ClusterQueue %s that it does not admit, or only for a moment%s"},
		{snapshot.Preemptor, snapshot.Victim, "Kueue preempts for this workload again and again (%d times in %s) a workload (UID: %s) of ClusterQueue %s, and does not admit this one, or only for a moment%s"},
	} {
		g.Watcher.Step(Step{What: Detected, At: snapshot.Last, Of: side.of, Other: side.other})
		if side.of.Name == "" || !leads {
			continue
		}
		object := &kueue.Workload{}
		object.Namespace, object.Name, object.UID = side.of.Namespace, side.of.Name, side.of.UID
		g.Events.Eventf(object, nil, corev1.EventTypeWarning, "PreemptionLoop", "Detect", side.format,
			snapshot.Preemptions, snapshot.Last.Sub(snapshot.Since), side.other.UID, side.other.ClusterQueue, cause)
	}
}
