package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// apply writes the objects of an allocation, in the order in which they need
// each other, and tells of every change by somebody else that it put right.
func (r *Allocations) apply(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) error {
	if err := r.applyNamespace(ctx, objects); err != nil {
		return err
	}
	apply := func(kind string, into client.Object, object runtime.ApplyConfiguration, metadata *applymeta.ObjectMetaApplyConfiguration) error {
		correction, err := r.applyOne(ctx, kind, into, object, metadata)
		if err != nil || correction == nil {
			return err
		}
		return r.tell(ctx, allocation, correction)
	}
	for _, flavor := range objects.Flavors {
		if err := apply("ResourceFlavor", &kueue.ResourceFlavor{}, flavor, flavor.ObjectMetaApplyConfiguration); err != nil {
			return err
		}
	}
	if err := apply("ClusterQueue", &kueue.ClusterQueue{}, objects.ClusterQueue, objects.ClusterQueue.ObjectMetaApplyConfiguration); err != nil {
		return err
	}
	return apply("LocalQueue", &kueue.LocalQueue{}, objects.LocalQueue, objects.LocalQueue.ObjectMetaApplyConfiguration)
}

// tell records a correction in the status and as an event. It is written by
// itself and without a lock: nothing else writes this field, and a lost race
// over the conditions must not lose it.
func (r *Allocations) tell(ctx context.Context, allocation *v1alpha1.ComputeAllocation, correction *v1alpha1.Correction) error {
	r.Events.Eventf(allocation, nil, corev1.EventTypeWarning, "Corrected", "Correct",
		"%s was changed by %s and put right", correction.Object, correction.Manager)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastCorrection": correction}})
	if err != nil {
		return err
	}
	return r.Status().Patch(ctx, allocation.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
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
	// Applying marks a namespace without a conflict, whoever made it: one that
	// the cache has not seen yet must not be taken.
	if err != nil {
		if err := r.Live.Get(ctx, client.ObjectKey{Name: *wanted.GetName()}, &cached); err == nil {
			return errUnseen(*wanted.GetName())
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := r.Apply(ctx, wanted, client.ForceOwnership, fieldOwner); err != nil {
		return fmt.Errorf("namespace %s: %w", *wanted.GetName(), err)
	}
	return nil
}

// errUnseen is a conflict, which is tried again: by then the cache has seen
// the namespace, and it is an obstacle or ours.
func errUnseen(namespace string) error {
	return apierrors.NewConflict(corev1.Resource("namespaces"), namespace, errors.New("somebody made it just now"))
}

// applyOne writes one Kueue object, unless it is as it was last written. It
// tells of a change by somebody else that it put right. into is an empty
// object of that kind.
func (r *Allocations) applyOne(ctx context.Context, kind string, into client.Object, object runtime.ApplyConfiguration, metadata *applymeta.ObjectMetaApplyConfiguration) (*v1alpha1.Correction, error) {
	key := client.ObjectKey{Name: *metadata.Name}
	if metadata.Namespace != nil {
		key.Namespace = *metadata.Namespace
	}
	if err := client.IgnoreNotFound(r.Get(ctx, key, into)); err != nil {
		return nil, err
	}
	wanted := metadata.Annotations[desired.AnnotationDesired]
	if r.applied.settled(into, metadata.Labels, wanted) || into.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	// Who changed what is read from the API server itself: the cache may be
	// behind, and show a change that was put right already.
	// What the cache has not seen is not forced: should somebody have made it
	// just now, that is a conflict, and an obstacle when it is looked at again.
	options := []client.ApplyOption{fieldOwner}
	if into.GetName() != "" {
		if err := client.IgnoreNotFound(r.Live.Get(ctx, key, into)); err != nil {
			return nil, err
		}
		options = append(options, client.ForceOwnership)
	}
	if err := r.Apply(ctx, object, options...); err != nil { // the answer is written into object and its metadata
		return nil, fmt.Errorf("%s %s: %w", kind, key.Name, err)
	}
	if metadata.UID == nil || metadata.Generation == nil {
		return nil, fmt.Errorf("%s %s: the API server's answer lacks uid or generation", kind, key.Name)
	}
	generation := *metadata.Generation
	if queue, ok := into.(*kueue.ClusterQueue); ok && hasStrayFields(queue) {
		if err := r.Patch(ctx, queue.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(withoutStrayFields))); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, key.Name, err)
		}
		generation++
	}
	r.applied.applied(*metadata.UID, generation)
	return corrected(kind, into, wanted, generation), nil
}

// hasStrayFields tells whether somebody added what bends the meaning of fields
// that Kuota sets. Applying alone would leave it there, since Kuota never set
// it. Admission checks and the like stay: they are the admin's, and Kuota says
// nothing about them.
func hasStrayFields(queue *kueue.ClusterQueue) bool {
	spec := &queue.Spec
	return spec.Preemption != nil && spec.Preemption.BorrowWithinCohort != nil && spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold != nil ||
		spec.FlavorFungibility != nil && spec.FlavorFungibility.Preference != nil
}

const withoutStrayFields = `{"spec": {"preemption": {"borrowWithinCohort": {"maxPriorityThreshold": null}}, "flavorFungibility": {"preference": null}}}`

// goingFlavors lists the flavors of an allocation that are being deleted. What
// is applied to such an object vanishes with it.
func (r *Allocations) goingFlavors(ctx context.Context, objects desired.Objects) (going []string, err error) {
	for _, wanted := range objects.Flavors {
		var flavor kueue.ResourceFlavor
		if err := r.Get(ctx, client.ObjectKey{Name: *wanted.GetName()}, &flavor); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if flavor.DeletionTimestamp != nil {
			going = append(going, flavor.Name)
		}
	}
	return going, nil
}

// fieldOwner is who sets the fields of what is applied.
const fieldOwner = client.FieldOwner(cluster.FieldManager)

// corrected tells whether applying changed an object that had been applied as
// it is wanted now: then somebody else had changed it.
func corrected(kind string, before client.Object, wanted string, generation int64) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != wanted || generation == before.GetGeneration() {
		return nil
	}
	manager, changed := lastManager(before)
	return &v1alpha1.Correction{Object: objectName(kind, before.GetName()), Manager: manager, Time: changed}
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
