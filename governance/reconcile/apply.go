package reconcile

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// apply writes the objects of an allocation, in the order in which they need
// each other, and tells of a change by somebody else that it put right.
func (r *Allocations) apply(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) (*v1alpha1.Correction, error) {
	var queue kueue.ClusterQueue
	if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Name: *objects.ClusterQueue.GetName()}, &queue)); err != nil {
		return nil, err
	}
	var local kueue.LocalQueue
	if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Namespace: *objects.LocalQueue.GetNamespace(), Name: *objects.LocalQueue.GetName()}, &local)); err != nil {
		return nil, err
	}

	if err := r.force(ctx, objects.Namespace); err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	for _, flavor := range objects.Flavors {
		if err := r.force(ctx, flavor); err != nil {
			return nil, fmt.Errorf("ResourceFlavor %s: %w", *flavor.GetName(), err)
		}
	}
	wanted := objects.ClusterQueue.Annotations[desired.AnnotationDesired]
	if err := r.force(ctx, objects.ClusterQueue); err != nil {
		return nil, fmt.Errorf("ClusterQueue: %w", err)
	}
	wantedLocal := objects.LocalQueue.Annotations[desired.AnnotationDesired]
	if err := r.force(ctx, objects.LocalQueue); err != nil {
		return nil, fmt.Errorf("LocalQueue: %w", err)
	}

	correction := corrected("ClusterQueue", &queue, wanted, objects.ClusterQueue.Generation)
	if correction == nil {
		correction = corrected("LocalQueue", &local, wantedLocal, objects.LocalQueue.Generation)
	}
	if correction != nil && !repeated(allocation.Status.LastCorrection, correction) {
		r.Events.Eventf(allocation, nil, corev1.EventTypeWarning, "Corrected", "Correct",
			"%s was changed by %s and put right", correction.Object, correction.Manager)
		return correction, nil
	}
	return nil, nil
}

// force applies an object and takes over the fields that somebody else set.
// The answer is written into the object.
func (r *Allocations) force(ctx context.Context, object runtime.ApplyConfiguration) error {
	return r.Apply(ctx, object, client.ForceOwnership, client.FieldOwner(cluster.FieldManager))
}

// corrected tells whether applying changed an object that had been applied as
// it is wanted now: then somebody else had changed it.
func corrected(kind string, before client.Object, wanted string, generation *int64) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != wanted ||
		generation == nil || *generation == before.GetGeneration() {
		return nil
	}
	manager, changed := lastManager(before)
	return &v1alpha1.Correction{Object: objectName(kind, before.GetName()), Manager: manager, Time: changed}
}

// repeated tells whether a correction was told already: the cache may show a
// change for a moment after it was put right.
func repeated(last, now *v1alpha1.Correction) bool {
	return last != nil && last.Object == now.Object && last.Manager == now.Manager && last.Time.Equal(&now.Time)
}

// lastManager names who last changed the spec of an object, and when.
func lastManager(object client.Object) (string, metav1.Time) {
	manager, changed := "somebody", metav1.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		if entry.Manager == cluster.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		if changed.IsZero() || changed.Before(entry.Time) {
			manager, changed = entry.Manager, *entry.Time
		}
	}
	if changed.IsZero() {
		changed = object.GetCreationTimestamp()
	}
	return manager, changed
}

func isConflict(err error) bool { return apierrors.IsConflict(err) }
