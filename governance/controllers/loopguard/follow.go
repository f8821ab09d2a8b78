package loopguard

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// follow takes in what the leader did with one Workload, by its mark, so that the
// pages of this replica show it, and this replica can continue as the leader.
func (g *Guard) follow(ctx context.Context, request ctrl.Request) error {
	if l := g.ofService(request.NamespacedName); l != nil { // never held
		g.announce(l, false)
		return nil
	}
	var w kueue.Workload
	if err := g.Client.Get(ctx, request.NamespacedName, &w, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := g.Now()
	mark, held := HoldOf(&w)
	g.mu.Lock()
	l := g.loops[w.UID]
	isNew := held && (l == nil || l.State != Held || l.mark != mark)
	switch {
	case isNew:
		if l == nil {
			l = &loop{holds: map[types.UID]int{}, announced: true, unseen: true, Loop: Loop{
				Victim: partyOf(&w, pathEnd(preempteePath, evictedMessage(&w))), Preemptor: Party{UID: mark.Preemptor}, Since: mark.Since, Last: mark.Since, Detected: mark.Since,
			}}
			if by := g.find(mark.Preemptor); by != nil {
				l.Preemptor = partyOf(by, "")
			}
			g.loops[w.UID] = l
		}
		// A rotation is not marked: its hold may end with the admission.
		l.mark, l.markSeen, l.first = mark, true, mark.Until.Sub(mark.Since) == firstHold
		l.hold(now)
	case !held && l != nil && l.State == Held:
		l.enter(Released, now)
	}
	var snapshot Loop
	if l != nil {
		snapshot = l.Loop
	}
	g.mu.Unlock()
	g.announce(l, false)
	if isNew {
		g.Watcher.Step(Step{What: WasHeld, At: mark.Since, Of: snapshot.Victim, Other: snapshot.Preemptor})
	}
	return nil
}

// pending returns the Workloads that a new leader checks: those in loops and those
// that were marked when this process began.
func (g *Guard) pending() (due []types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.loops {
		due = append(due, types.NamespacedName{Namespace: l.Victim.Namespace, Name: l.Victim.Name})
	}
	for uid := range g.found {
		if w := g.find(uid); w != nil {
			due = append(due, client.ObjectKeyFromObject(w))
		}
	}
	return due
}
