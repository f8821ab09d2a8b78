package revisions

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// next is the revision that follows newest, which is nil for the first: what it
// tells of the spec that an object has now, without its summary. now is when the
// change was seen.
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
		r.Skipped-- // that was the deletion
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
	// The time in the fields is right also for a change that was made while the
	// console was away, but taking a value out does not move it.
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

// deletedBy makes r the revision of a deletion: by whom and why the object says,
// where whoever deleted it said so.
func (r *Revision) setDeletion(object metav1.Object) {
	annotations := object.GetAnnotations()
	r.At, r.By, r.ByProgram, r.Reason = object.GetDeletionTimestamp().Time, annotations[v1alpha1.AnnotationDeletedBy], false, ""
	if r.By != "" {
		r.Reason = r.objectReason
	}
}

// specManager is the field manager that wrote into a spec last, and when.
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

// shorten cuts a text to at most so many characters.
func truncate(text string, most int) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	if characters := []rune(text); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return text
}
