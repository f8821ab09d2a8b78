package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// applyAll writes the objects of an allocation, in the order in which they need
// each other, and tells of every change by somebody else that it put right.
//
// resized tells that the queue was last written with another quota: the cache
// may still show the one before.
func (r *AllocationReconciler) applyObjects(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects, resized bool) error {
	if err := r.applyNamespace(ctx, allocation.Name, objects); err != nil {
		return err
	}
	for _, piece := range managed.Objects(objects) {
		correction, err := r.applier().apply(ctx, piece, resized && piece.Kind == "ClusterQueue")
		if err != nil {
			return err
		}
		if correction == nil {
			continue
		}
		if err := r.recordCorrection(ctx, allocation, correction); err != nil {
			return err
		}
	}
	return r.prune(ctx, allocation.Name, objects)
}

func (r *AllocationReconciler) applier() applier {
	return applier{Client: r.Client, APIReader: r.APIReader}
}

// prune deletes what an allocation no longer asks for.
func (r *AllocationReconciler) prune(ctx context.Context, team string, objects desired.Objects) error {
	for _, piece := range managed.Unwanted(objects) {
		if _, err := r.deleteManaged(ctx, team, piece); err != nil {
			return err
		}
	}
	return nil
}

// tell records a correction in the status and as an event. It is written by
// itself and without a lock: nothing else writes this field, and a lost race
// over the conditions must not lose it.
func (r *AllocationReconciler) recordCorrection(ctx context.Context, allocation *v1alpha1.ComputeAllocation, correction *v1alpha1.Correction) error {
	r.Events.Eventf(allocation, nil, corev1.EventTypeWarning, "Corrected", "Correct",
		"%s was changed by %s and corrected", correction.Object, correction.Manager)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastCorrection": correction}})
	if err != nil {
		return err
	}
	return r.Status().Patch(ctx, allocation.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// applyNamespace marks the namespace, where it is not marked already. It is
// marked as it was looked at: should another team have taken it since, that is a
// conflict, and an obstacle when it is looked at again.
func (r *AllocationReconciler) applyNamespace(ctx context.Context, team string, objects desired.Objects) error {
	wanted := objects.Namespace
	fields, err := toFields(wanted)
	if err != nil {
		return err
	}
	var namespace corev1.Namespace
	err = r.Get(ctx, client.ObjectKey{Name: *wanted.GetName()}, &namespace)
	switch {
	case err == nil && upToDate(&namespace, fields):
		return nil
	case apierrors.IsNotFound(err):
		namespace.Name = *wanted.GetName()
		namespace.Annotations = map[string]string{desired.AnnotationTeam: team}
		err = r.Create(ctx, &namespace, fieldOwner)
		if apierrors.IsAlreadyExists(err) { // the cache has not seen it yet
			return errNamespaceNotCached(namespace.Name)
		}
	}
	if err == nil {
		err = r.Apply(ctx, wanted.WithResourceVersion(namespace.ResourceVersion), client.ForceOwnership, fieldOwner)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", *wanted.GetName(), err)
	}
	return nil
}

// errUnseen is a conflict, which is tried again: by then the cache has seen
// the namespace, and it is an obstacle or ours.
func errNamespaceNotCached(namespace string) error {
	return apierrors.NewConflict(corev1.Resource("namespaces"), namespace, errors.New("it was created in the meantime"))
}

// goingFlavors lists the flavors of an allocation that are being deleted. What
// is applied to such an object vanishes with it.
func (r *AllocationReconciler) deletingFlavors(ctx context.Context, objects desired.Objects) (going []string, err error) {
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
