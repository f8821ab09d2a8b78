package reconcile

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// apply writes the objects of an allocation, in the order in which they need
// each other, and tells of a change by somebody else that it put right.
func (r *Allocations) apply(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) (*v1alpha1.Correction, error) {
	if err := r.applyNamespace(ctx, objects); err != nil {
		return nil, err
	}
	var corrections []*v1alpha1.Correction
	for _, flavor := range objects.Flavors {
		correction, err := r.applyOne(ctx, "ResourceFlavor", &kueue.ResourceFlavor{}, flavor, flavor.ObjectMetaApplyConfiguration)
		if err != nil {
			return nil, err
		}
		corrections = append(corrections, correction)
	}
	correction, err := r.applyOne(ctx, "ClusterQueue", &kueue.ClusterQueue{}, objects.ClusterQueue, objects.ClusterQueue.ObjectMetaApplyConfiguration)
	if err != nil {
		return nil, err
	}
	corrections = append(corrections, correction)
	if correction, err = r.applyOne(ctx, "LocalQueue", &kueue.LocalQueue{}, objects.LocalQueue, objects.LocalQueue.ObjectMetaApplyConfiguration); err != nil {
		return nil, err
	}
	corrections = append(corrections, correction)

	for _, correction := range corrections {
		if correction != nil && !repeated(allocation.Status.LastCorrection, correction) {
			r.Events.Eventf(allocation, nil, corev1.EventTypeWarning, "Corrected", "Correct",
				"%s was changed by %s and put right", correction.Object, correction.Manager)
			return correction, nil
		}
	}
	return nil, nil
}

// applyNamespace marks the namespace, where it is not marked already.
func (r *Allocations) applyNamespace(ctx context.Context, objects desired.Objects) error {
	var cached corev1.Namespace
	wanted := objects.Namespace
	err := r.Get(ctx, client.ObjectKey{Name: *wanted.GetName()}, &cached)
	if err == nil && contains(cached.Labels, wanted.Labels) && contains(cached.Annotations, wanted.Annotations) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := r.force(ctx, wanted); err != nil {
		return fmt.Errorf("namespace %s: %w", cached.Name, err)
	}
	return nil
}

// applyOne writes one Kueue object, unless it is as it was last written. The
// cached object is read into into.
func (r *Allocations) applyOne(ctx context.Context, kind string, into client.Object, object runtime.ApplyConfiguration, metadata *applymeta.ObjectMetaApplyConfiguration) (*v1alpha1.Correction, error) {
	key := client.ObjectKey{Name: *metadata.Name}
	if metadata.Namespace != nil {
		key.Namespace = *metadata.Namespace
	}
	if err := client.IgnoreNotFound(r.Get(ctx, key, into)); err != nil {
		return nil, err
	}
	wanted := metadata.Annotations[desired.AnnotationDesired]
	if r.applied.settled(into, metadata.Labels, wanted) {
		return nil, nil
	}
	if err := r.force(ctx, object); err != nil { // the answer is written into object and its metadata
		return nil, fmt.Errorf("%s %s: %w", kind, key.Name, err)
	}
	if metadata.UID == nil || metadata.Generation == nil {
		return nil, fmt.Errorf("%s %s: the API server's answer lacks uid or generation", kind, key.Name)
	}
	r.applied.applied(*metadata.UID, *metadata.Generation)
	return corrected(kind, into, wanted, *metadata.Generation), nil
}

// force applies an object and takes over the fields that somebody else set.
func (r *Allocations) force(ctx context.Context, object runtime.ApplyConfiguration) error {
	return r.Apply(ctx, object, client.ForceOwnership, client.FieldOwner(cluster.FieldManager))
}

// corrected tells whether applying changed an object that had been applied as
// it is wanted now: then somebody else had changed it.
func corrected(kind string, before client.Object, wanted string, generation int64) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != wanted || generation == before.GetGeneration() {
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
