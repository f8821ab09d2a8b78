package elastic

import (
	"context"
	"errors"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// blockedError is why a Job or the Service of an ElasticJob cannot be created, which a
// user can mend.
type blockedError struct{ reason, message string }

func (b *blockedError) Error() string { return b.message }

// asBlocked returns what is blocked in err, with all messages; nil if there is another
// error beside it, or none.
func asBlocked(err error) *blockedError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		var blocked *blockedError
		errors.As(err, &blocked)
		return blocked
	}
	var all *blockedError
	for _, each := range joined.Unwrap() {
		switch blocked := asBlocked(each); {
		case blocked == nil:
			return nil
		case all == nil:
			all = blocked
		default:
			all = &blockedError{all.reason, all.message + "; " + blocked.message}
		}
	}
	return all
}

// create creates an object of an ElasticJob unless it exists.
func (r *Reconciler) create(ctx context.Context, e *v1alpha1.ElasticJob, object client.Object) error {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	name := object.GetNamespace() + "/" + object.GetName()
	err := r.Create(ctx, object, fieldOwner)
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		if owned(e, object) {
			return nil
		}
		return &blockedError{v1alpha1.ReasonConflict, fmt.Sprintf("%s %s exists and does not belong to this ElasticJob: delete it, or use another name", kind, name)}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return &blockedError{v1alpha1.ReasonRejected, fmt.Sprintf("the API server rejects %s %s: %s", kind, name, err)}
	}
	return fmt.Errorf("create %s %s: %w", kind, name, err)
}

// owned reports whether an object was created for an ElasticJob.
func owned(e *v1alpha1.ElasticJob, object client.Object) bool {
	return object.GetLabels()[v1alpha1.LabelElasticJobUID] == string(e.UID)
}

// deleteService deletes the Service of an ElasticJob, and none that only has its name.
func (r *Reconciler) deleteService(ctx context.Context, e *v1alpha1.ElasticJob) error {
	var service corev1.Service
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: ServiceName(e.Name)}, &service)
	if err != nil || !owned(e, &service) {
		return client.IgnoreNotFound(err)
	}
	uid := service.UID
	return client.IgnoreNotFound(r.Delete(ctx, &service, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
}

// report writes the conditions of what is blocked, by type, if they differ. A job that was
// never blocked has none.
func (r *Reconciler) report(ctx context.Context, e *v1alpha1.ElasticJob, blocked map[string]*blockedError) error {
	before := e.DeepCopy()
	for condition, why := range blocked {
		if why == nil {
			meta.RemoveStatusCondition(&e.Status.Conditions, condition)
			continue
		}
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: why.reason, Message: why.message, ObservedGeneration: e.Generation,
		})
	}
	if equality.Semantic.DeepEqual(before.Status, e.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner))
}
