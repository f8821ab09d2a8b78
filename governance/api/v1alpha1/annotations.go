package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of a policy or an allocation that tell of the last change of its
// spec. All but the first are written by the API server, by the admission
// policy in deploy/rbac/changed-by.yaml, and put back when a request sets them.
const (
	// AnnotationReason is why a change is made, as whoever makes it says. It
	// counts for the change that it is sent with.
	AnnotationReason = "kuota.dev/change-reason"
	// AnnotationDeletedBy is who is about to delete the object. The API server
	// writes the name of the user who sets it.
	AnnotationDeletedBy = "kuota.dev/deleted-by"
	// AnnotationChangedBy is who made the last change.
	AnnotationChangedBy = "kuota.dev/changed-by"
	// AnnotationChangedBecause is the reason that was sent with it.
	AnnotationChangedBecause = "kuota.dev/changed-because"
	// AnnotationChangedGeneration is the generation that the two are about. They
	// tell nothing of another, such as one that was made without the policy.
	AnnotationChangedGeneration = "kuota.dev/changed-generation"
)

// MaxReason is how long a reason may be, in characters. What is longer is cut.
const MaxReason = 500

// SetReason says why an object is changed, or that nobody said so.
func SetReason(object metav1.Object, reason string) {
	annotations := object.GetAnnotations()
	delete(annotations, AnnotationReason)
	if reason != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationReason] = reason
	}
	object.SetAnnotations(annotations)
}

// AnnotationDrain on an allocation that is deleted requeues its admitted tasks
// instead of waiting for them.
const AnnotationDrain = "kuota.dev/drain"

// AnnotationDropClasses on a policy lists, separated by commas, the priority
// classes to delete although unfinished tasks name them.
const AnnotationDropClasses = "kuota.dev/drop-classes"
