package loopguard

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
