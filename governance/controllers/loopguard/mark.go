package loopguard

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// MarkAnnotation is on a Workload that the loop guard holds, and on no other.
// Removing it takes the Workload over as it is: the guard does not activate it
// any more.
const MarkAnnotation = "kuota.dev/loop-guard-hold"

// Mark is the value of MarkAnnotation: why a Workload is held and until when.
type Mark struct {
	Identity  string    `json:"holder"`    // the process that holds it
	Preemptor types.UID `json:"preemptor"` // Workload that it is held for
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"` // released then at the latest
}

// String encodes m as the value of MarkAnnotation.
func (m Mark) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts and times of this century always encode
	}
	return string(text)
}

// MarkOf returns the mark of w and whether it has one. The mark of an annotation
// that cannot be read is the zero value, which has expired. w may be nil.
func MarkOf(w *kueue.Workload) (Mark, bool) {
	if w == nil {
		return Mark{}, false
	}
	text, marked := w.Annotations[MarkAnnotation]
	var m Mark
	if !marked || json.Unmarshal([]byte(text), &m) != nil {
		return Mark{}, marked
	}
	return m, true
}

// HoldOf returns the mark of w while the loop guard keeps it out of admission:
// it is marked and inactive. ok is false for any other Workload.
func HoldOf(w *kueue.Workload) (m Mark, ok bool) {
	m, marked := MarkOf(w)
	return m, marked && !active(w)
}

// ReleasePatch returns the patch that removes the mark of w and lets Kueue admit
// it again. It fails when w changed since it was read.
func ReleasePatch(w *kueue.Workload) client.Patch { return patchOf(w, "", true) }

// patchOf returns the patch that sets the mark of w, or removes it where it is
// empty, and whether Kueue may admit w.
func patchOf(w *kueue.Workload, mark string, activate bool) client.Patch {
	var value any // null removes the annotation
	if mark != "" {
		value = mark
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.UID, "resourceVersion": w.ResourceVersion, "annotations": map[string]any{MarkAnnotation: value}},
		"spec":     map[string]any{"active": activate},
	})
	if err != nil {
		panic(err) // texts and flags always encode
	}
	return client.RawPatch(types.MergePatchType, patch)
}

// active reports whether Kueue may admit w.
func active(w *kueue.Workload) bool { return w.Spec.Active == nil || *w.Spec.Active }

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
