package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// applyObjects applies the objects of an allocation in the order of their
// dependencies, and records each change by another manager that it reverts. resized reports
// whether a ClusterQueue was last written with another quota, which the cache may not have yet.
func (r *AllocationReconciler) applyObjects(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects, resized func(queue string) bool) error {
	if err := r.applyNamespace(ctx, allocation, objects); err != nil {
		return err
	}
	for _, piece := range managed.Objects(objects) {
		if asIs, err := managed.UsesAsIs(ctx, r, piece, objects); err != nil {
			return err
		} else if asIs {
			continue
		}
		if err := r.deleteMovedQueue(ctx, allocation.Name, piece); err != nil {
			return err
		}
		_, piece.TakesOver = managed.Existing(allocation, piece)
		correction, err := applier{r.Client, r.APIReader}.apply(ctx, piece, piece.Kind == "ClusterQueue" && resized(piece.Key.Name))
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
	return r.prune(ctx, allocation, objects)
}

// deleteMovedQueue deletes the LocalQueue of a share that is to be one of another ClusterQueue,
// which is immutable. Tasks that wait in it join the queue that is created next; admitted ones use
// the quota of the ClusterQueue that admitted them until they end.
func (r *AllocationReconciler) deleteMovedQueue(ctx context.Context, team string, piece managed.Object) error {
	want, is := piece.Desired.(*applykueue.LocalQueueApplyConfiguration)
	if !is || want.Labels[desired.LabelShare] == "" {
		return nil
	}
	var queue kueue.LocalQueue
	found, err := r.getManaged(ctx, team, managed.Object{Key: piece.Key, Live: &queue})
	if err != nil || !found || queue.Spec.ClusterQueue == *want.Spec.ClusterQueue {
		return err
	}
	return client.IgnoreNotFound(r.Delete(ctx, &queue, client.Preconditions{UID: &queue.UID}))
}

// prune deletes optional objects that the allocation no longer has.
func (r *AllocationReconciler) prune(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) error {
	shares, err := managed.ShareQueues(ctx, r.Client, allocation, r.Naming)
	if err != nil {
		return err
	}
	for _, piece := range managed.Unwanted(objects, shares) {
		if _, err := r.deleteManaged(ctx, allocation.Name, piece); err != nil {
			return err
		}
	}
	return nil
}

// addCorrection records a correction of an object of an allocation or the cluster policy as
// an event and as activity. A correction that is tried again is one entry.
func addCorrection(recorder events.EventRecorder, log *activity.Log, of client.Object, correction *v1alpha1.Correction) {
	const note = "%s was changed by %s and corrected"
	recorder.Eventf(of, nil, corev1.EventTypeWarning, "Corrected", "Correct", note, correction.Object, correction.Manager)
	kind, team := "ComputeAllocation", of.GetName()
	if _, ok := of.(*v1alpha1.ClusterPolicy); ok {
		kind, team = "ClusterPolicy", ""
	}
	if _, ok := of.(*v1alpha1.Department); ok {
		kind, team = "Department", ""
	}
	log.Add(history.Activity{
		ID: fmt.Sprintf("%s-%s-%s-%d", audit.Correct, of.GetUID(), correction.Object, correction.Time.Unix()), At: time.Now().UTC(), Actor: "kuota", Source: history.SourceController, Action: string(audit.Correct),
		Kind: kind, Name: of.GetName(), UID: string(of.GetUID()), Team: team, Changes: []string{fmt.Sprintf(note, correction.Object, correction.Manager)}, Outcome: history.Succeeded,
	})
}

// recordCorrection records a correction in the status, as an event and as activity. The
// patch has no precondition: no other code writes this field, and a conflict
// over conditions must not lose it.
func (r *AllocationReconciler) recordCorrection(ctx context.Context, allocation *v1alpha1.ComputeAllocation, correction *v1alpha1.Correction) error {
	addCorrection(r.Events, r.Activity, allocation, correction)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastCorrection": correction}})
	if err != nil {
		return err
	}
	return r.Status().Patch(ctx, allocation.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// applyNamespace labels the namespace of a team, or creates it. It applies to the
// resourceVersion that the cache has: if another user created the namespace, or
// another team took it, since the check for conflicts, that is a conflict, and the
// next reconciliation reports it.
func (r *AllocationReconciler) applyNamespace(ctx context.Context, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) error {
	wanted, name := objects.Namespace, *objects.Namespace.GetName()
	fields, err := toFields(wanted)
	if err != nil {
		return err
	}
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &departments); err != nil {
		return err
	}
	var namespace corev1.Namespace
	err = r.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	switch {
	case err == nil && upToDate(&namespace, fields):
		return nil
	case err == nil && managed.NamespaceConflict(allocation, &namespace, departments.Items) != nil:
		return errNamespaceInUse(name)
	case err == nil:
		err = r.applyExistingNamespace(ctx, &namespace, wanted)
	case apierrors.IsNotFound(err):
		// A create, because an apply would take over a namespace that the cache does
		// not have yet.
		namespace.Name, namespace.Labels, namespace.Annotations = name, wanted.Labels, wanted.Annotations
		err = r.Create(ctx, &namespace, fieldOwner)
		if apierrors.IsAlreadyExists(err) {
			return errNamespaceInUse(name)
		}
	}
	if err != nil {
		return fmt.Errorf("apply Namespace %s: %w", name, err)
	}
	return nil
}

// applyExistingNamespace applies the desired labels and annotations of a
// namespace. If Kuota created the namespace, its fields first become those of an
// apply: otherwise a label that is no longer desired would stay.
func (r *AllocationReconciler) applyExistingNamespace(ctx context.Context, namespace *corev1.Namespace, desired *applycore.NamespaceApplyConfiguration) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(namespace, sets.New(cluster.FieldManager), cluster.FieldManager)
	if err != nil {
		return err
	}
	if patch != nil {
		if err := r.Patch(ctx, namespace, client.RawPatch(types.JSONPatchType, patch)); err != nil {
			return err
		}
	}
	return r.Apply(ctx, desired.WithResourceVersion(namespace.ResourceVersion), client.ForceOwnership, fieldOwner)
}

// errNamespaceInUse returns a conflict, which is retried: by then the cache has the
// namespace, and the check for conflicts reports its owner.
func errNamespaceInUse(namespace string) error {
	return apierrors.NewConflict(corev1.Resource("namespaces"), namespace, errors.New("it was created in the meantime"))
}

// deletingFlavors returns the ResourceFlavors of an allocation that are being
// deleted. Applying does not keep them.
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

// extraFieldsPatch returns a merge patch that removes fields that another
// manager added and that change the meaning of fields that Kuota sets; empty if
// there are none. An apply does not remove them, because Kuota never owned
// them. Admission checks, taints and the like stay: they belong to the admin.
func extraFieldsPatch(object client.Object, want map[string]any) string {
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		extra := map[string]any{}
		wanted, _ := want["spec"].(map[string]any)
		if pre := o.Spec.Preemption; pre != nil && pre.BorrowWithinCohort != nil && pre.BorrowWithinCohort.MaxPriorityThreshold != nil {
			extra["preemption"] = map[string]any{"borrowWithinCohort": map[string]any{"maxPriorityThreshold": nil}}
		}
		if wanted["flavorFungibility"] != nil && o.Spec.FlavorFungibility != nil && o.Spec.FlavorFungibility.Preference != nil {
			extra["flavorFungibility"] = map[string]any{"preference": nil}
		}
		// Of an adopted ClusterQueue, another manager may own fields that Kuota also owned.
		if wanted["cohortName"] == nil && o.Spec.CohortName != "" {
			extra["cohortName"] = nil
		}
		if wanted["resourceGroups"] == nil && len(o.Spec.ResourceGroups) > 0 {
			extra["resourceGroups"] = nil
		}
		return specPatch(extra)
	case *kueue.Cohort:
		wanted, _ := want["spec"].(map[string]any)
		if wanted["parentName"] == nil && o.Spec.ParentName != "" {
			return specPatch(map[string]any{"parentName": nil})
		}
	case *kueue.ResourceFlavor:
		spec, _ := want["spec"].(map[string]any)
		wanted, _ := spec["nodeLabels"].(map[string]any)
		stray := map[string]any{}
		for key := range o.Spec.NodeLabels {
			if _, ok := wanted[key]; !ok {
				stray[key] = nil
			}
		}
		if len(stray) > 0 {
			return specPatch(map[string]any{"nodeLabels": stray})
		}
	}
	return ""
}

// specPatch returns a merge patch of fields of a spec; empty for none.
func specPatch(fields map[string]any) string {
	patch, err := json.Marshal(map[string]any{"spec": fields})
	if len(fields) == 0 || err != nil {
		return ""
	}
	return string(patch)
}
