package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of a policy or an allocation about the last change of its spec.
// The admission policy in deploy/rbac/changed-by.yaml sets all but the first on
// the API server, and reverts them if a request sets them.
const (
	// AnnotationReason is the user's reason for the change that it is sent with.
	AnnotationReason = "kuota.dev/change-reason"
	// AnnotationDeletedBy is the user who is about to delete the object. The API
	// server replaces its value with the name of the user who sets it.
	AnnotationDeletedBy = "kuota.dev/deleted-by"
	// AnnotationChangedBy is the user who made the last change.
	AnnotationChangedBy = "kuota.dev/changed-by"
	// AnnotationChangedBecause is the reason of that change.
	AnnotationChangedBecause = "kuota.dev/changed-because"
	// AnnotationChangedGeneration is the generation of that change. They do not
	// apply to another generation, such as a change without the admission policy.
	AnnotationChangedGeneration = "kuota.dev/changed-generation"
)

// AnnotationSubmittedBy is the user who created a task, or the CronJob that created it. An
// admission policy of the same file sets it on the API server in teams' namespaces, and
// reverts changes.
const AnnotationSubmittedBy = "kuota.dev/submitted-by"

// MaxReason is the maximum length of a reason, in characters. A longer one is
// truncated.
const MaxReason = 500

// SetReason sets the reason of a change; an empty one removes the annotation.
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

// AnnotationRelease on an allocation that is deleted keeps its objects: Kuota only
// removes its labels and annotations from them.
const AnnotationRelease = "kuota.dev/release"

// AnnotationTryAgain on a policy is when a person asked that what others changed back be
// changed again at once, in RFC 3339.
const AnnotationTryAgain = "kuota.dev/try-again"

// AnnotationDropClasses on a policy lists, separated by commas, the priority
// classes to delete although unfinished tasks use them.
const AnnotationDropClasses = "kuota.dev/drop-classes"

// AnnotationStoppedReplicas is on a Deployment, StatefulSet or LeaderWorkerSet that was
// stopped: how many replicas it had. Resuming it scales it to as many, and removes the
// annotation.
const AnnotationStoppedReplicas = "kuota.dev/stopped-replicas"
