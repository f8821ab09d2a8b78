package revisions

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nextRevision returns the revision of an object's current spec, without its
// summary. newest is the last revision; nil if there is none. now is when the
// change was observed.
func nextRevision(object metav1.Object, newest *Revision, now time.Time) Revision {
	r := Revision{Number: 1, UID: string(object.GetUID()), Generation: object.GetGeneration(), Skipped: object.GetGeneration() - 1}
	var before Revision
	if newest != nil {
		before = *newest
		r.Number = before.Number + 1
		if before.UID == r.UID {
			r.Skipped = r.Generation - before.Generation - 1
		}
	}
	if object.GetDeletionTimestamp() != nil && r.Skipped > 0 {
		r.Skipped-- // the deletion itself
	}
	changed, manager := specManager(object.GetManagedFields())
	annotations := object.GetAnnotations()
	r.objectReason = truncate(annotations[v1alpha1.AnnotationReason], v1alpha1.MaxReason)
	r.By = annotations[v1alpha1.AnnotationChangedBy]
	if r.By != "" && annotations[v1alpha1.AnnotationChangedGeneration] == strconv.FormatInt(r.Generation, 10) {
		r.Reason = truncate(annotations[v1alpha1.AnnotationChangedBecause], v1alpha1.MaxReason)
	} else {
		r.By, r.ByProgram = manager, manager != ""
		if r.objectReason != before.objectReason {
			r.Reason = r.objectReason
		}
	}
	// The time in managedFields is also correct for a change while the console was
	// not running, but removing a field does not update it.
	switch {
	case r.Generation == 1:
		r.At = object.GetCreationTimestamp().Time
	case changed.After(before.At) && changed.Before(now):
		r.At = changed
	default:
		r.At = now
	}
	return r
}

// WithoutUser returns a copy of object without the annotations with its user. They
// prove nothing if the API server does not set them: before Kubernetes 1.36 everyone
// who may change the object can set them. Revisions of the copy have the field
// manager, and the reason of the request.
func WithoutUser(object client.Object) client.Object {
	object = object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	for _, key := range []string{v1alpha1.AnnotationChangedBy, v1alpha1.AnnotationChangedBecause, v1alpha1.AnnotationChangedGeneration, v1alpha1.AnnotationDeletedBy} {
		delete(annotations, key)
	}
	object.SetAnnotations(annotations)
	return object
}

// setDeletion makes r the revision of a deletion, with the user and reason if
// the object has them.
func (r *Revision) setDeletion(object metav1.Object) {
	annotations := object.GetAnnotations()
	r.At, r.By, r.ByProgram, r.Reason = object.GetDeletionTimestamp().Time, annotations[v1alpha1.AnnotationDeletedBy], false, ""
	if r.By != "" {
		r.Reason = r.objectReason
	}
}

// specManager returns the field manager that last changed the spec, and when.
func specManager(fields []metav1.ManagedFieldsEntry) (at time.Time, manager string) {
	for _, entry := range fields {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]json.RawMessage
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil || owned["f:spec"] == nil {
			continue
		}
		when := time.Time{}
		if entry.Time != nil {
			when = entry.Time.Time
		}
		if manager == "" || when.After(at) {
			at, manager = when, entry.Manager
		}
	}
	return at, manager
}

// truncate shortens a text to at most most characters.
func truncate(text string, most int) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	if characters := []rune(text); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return text
}
