package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// deletionInterval is when an allocation that waits for a deletion is
// reconciled again, if no event triggers it before.
const deletionInterval = 5 * time.Second

// finalize deletes an allocation's objects in an order in which no task is left
// without a queue:
//
//	hold or drain the ClusterQueue ──► no admitted tasks
//	──► delete members, limits and LocalQueues ──► delete the ClusterQueue
//	──► release the namespace ──► remove the finalizer
//
// The namespace stays with an annotation, so that the same team can use it
// again. If Kuota's CRDs are being deleted, all objects stay; if the allocation is
// released, they stay without Kuota's labels.
func (r *AllocationReconciler) finalize(ctx context.Context, allocation *v1alpha1.ComputeAllocation) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(allocation, finalizer) {
		return ctrl.Result{}, nil
	}
	removeFinalizer := func() error {
		return client.IgnoreNotFound(r.patchMetadata(ctx, allocation, func() { controllerutil.RemoveFinalizer(allocation, finalizer) }))
	}
	switch leaves, err := crdsDeleted(ctx, r.APIReader); {
	case err != nil:
		return ctrl.Result{}, err
	case leaves:
		return ctrl.Result{}, removeFinalizer()
	}
	if allocation.Annotations[v1alpha1.AnnotationRelease] == "true" || allocation.Spec.Observed() {
		if err := r.release(ctx, allocation); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, removeFinalizer()
	}
	namespace := desired.NamespaceName(allocation, r.Naming)
	for _, step := range []func(context.Context, *v1alpha1.ComputeAllocation, string) (waitFor string, err error){
		r.drainClusterQueues, r.deleteObjects, r.releaseNamespace,
	} {
		waitFor, err := step(ctx, allocation, namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		if waitFor != "" { // its events trigger a reconciliation
			return ctrl.Result{RequeueAfter: deletionInterval}, r.patchStatus(ctx, allocation, notReady("Deleting", waitFor))
		}
	}
	return ctrl.Result{}, removeFinalizer()
}

// drainClusterQueues sets the stop policy and waits until no task is admitted.
func (r *AllocationReconciler) drainClusterQueues(ctx context.Context, allocation *v1alpha1.ComputeAllocation, _ string) (string, error) {
	objects, err := managed.Removable(ctx, r.APIReader, allocation, r.Naming)
	if err != nil {
		return "", err
	}
	policy, tasks := kueue.Hold, int32(0)
	if allocation.Annotations[v1alpha1.AnnotationDrain] == "true" {
		policy = kueue.HoldAndDrain
	}
	for _, object := range objects {
		queue, is := object.Live.(*kueue.ClusterQueue)
		if !is {
			continue
		}
		if found, err := r.getManaged(ctx, allocation.Name, object); err != nil {
			return "", err
		} else if !found {
			continue
		}
		if queue.Spec.StopPolicy == nil || *queue.Spec.StopPolicy != policy {
			before := queue.DeepCopy()
			queue.Spec.StopPolicy = &policy
			if err := r.Patch(ctx, queue, client.MergeFrom(before), client.FieldOwner("kuota-remove")); err != nil {
				return "", err
			}
		}
		tasks += max(queue.Status.AdmittedWorkloads, queue.Status.ReservingWorkloads)
	}
	if tasks > 0 {
		return fmt.Sprintf("%d of the team's tasks are admitted, so the queue is held; deletion continues when they finish, or when the allocation is annotated %s=true, which requeues them", tasks, v1alpha1.AnnotationDrain), nil
	}
	return "", nil
}

// deleteObjects deletes the queues and the optional objects. Objects of others in
// the namespace stay.
func (r *AllocationReconciler) deleteObjects(ctx context.Context, allocation *v1alpha1.ComputeAllocation, _ string) (string, error) {
	// The cache may not have the LocalQueue of a share that was just created, and
	// nothing deletes it after the finalizer is removed.
	objects, err := managed.Removable(ctx, r.APIReader, allocation, r.Naming)
	if err != nil {
		return "", err
	}
	for _, piece := range objects {
		waitFor, err := r.deleteManaged(ctx, allocation.Name, piece)
		if err != nil || waitFor != "" {
			return waitFor, err
		}
	}
	return "", nil
}

// deleteManaged deletes an object of a team, and returns a message until it no
// longer exists.
func (r *AllocationReconciler) deleteManaged(ctx context.Context, team string, piece managed.Object) (string, error) {
	found, err := r.getManaged(ctx, team, piece)
	if !found || err != nil {
		return "", err
	}
	if piece.Live.GetDeletionTimestamp() == nil {
		if err := client.IgnoreNotFound(r.Delete(ctx, piece.Live)); err != nil {
			return "", err
		}
	}
	return objectName(piece.Kind, piece.Key.Name) + " is being deleted; it is removed when its last task finishes", nil
}

// releaseNamespace removes Kuota's labels from the namespace and keeps the
// annotation with the team.
func (r *AllocationReconciler) releaseNamespace(ctx context.Context, allocation *v1alpha1.ComputeAllocation, name string) (string, error) {
	return "", r.reduceNamespace(ctx, allocation, name, map[string]string{desired.AnnotationTeam: allocation.Name}, desired.AnnotationDepartment)
}

// reduceNamespace removes Kuota's labels and annotations from a namespace that still
// belongs to the team, except the annotations that it keeps, and those that stay as they are.
func (r *AllocationReconciler) reduceNamespace(ctx context.Context, allocation *v1alpha1.ComputeAllocation, name string, keeps map[string]string, stay ...string) error {
	var namespace corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Annotations[desired.AnnotationTeam] != allocation.Name || namespace.DeletionTimestamp != nil {
		return nil
	}
	for _, key := range stay {
		if value, has := namespace.Annotations[key]; has {
			keeps[key] = value
		}
	}
	return r.applyExistingNamespace(ctx, &namespace, applycore.Namespace(name).WithAnnotations(keeps))
}

// getManaged reads an object into piece.Live. found is false if it does not
// exist, or belongs to another team or manager: an allocation with a conflict
// may name a namespace of others.
func (r *AllocationReconciler) getManaged(ctx context.Context, team string, piece managed.Object) (found bool, err error) {
	if err := r.Get(ctx, piece.Key, piece.Live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	switch owner := piece.Live.GetLabels()[desired.LabelTeam]; {
	case !managed.ByKuota(piece.Live), owner != "" && owner != team:
		return false, nil
	case owner == team || piece.Key.Namespace == "":
		return true, nil
	}
	var namespace corev1.Namespace // the label was removed
	if err := r.Get(ctx, client.ObjectKey{Name: piece.Key.Namespace}, &namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Annotations[desired.AnnotationTeam] == team, nil
}

// release removes Kuota's labels, annotations and ownership from the objects of an
// allocation. Their specs stay as they are, and no object is deleted.
func (r *AllocationReconciler) release(ctx context.Context, allocation *v1alpha1.ComputeAllocation) error {
	objects, err := managed.Removable(ctx, r.APIReader, allocation, r.Naming)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		found, err := r.getManaged(ctx, allocation.Name, object)
		if err == nil && found {
			err = disown(ctx, r.Client, r.APIReader, object.Live)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("release %s %s: %w", object.Kind, object.Key.Name, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return r.reduceNamespace(ctx, allocation, desired.NamespaceName(allocation, r.Naming), nil)
}

// disown removes Kuota's labels and annotations from an object, and its entries from
// managedFields: the fields stay, and later applies of others do not conflict with them.
// An apply of no fields would remove the fields themselves.
func disown(ctx context.Context, c client.Client, apiReader client.Reader, live client.Object) error {
	// The cache may not have all managed fields, or the last resourceVersion.
	if err := apiReader.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	managers := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == cluster.FieldManager && entry.Subresource == ""
	})
	if len(managers) == 0 {
		managers = []metav1.ManagedFieldsEntry{{}} // the API server ignores an empty list
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"labels":          map[string]any{desired.LabelManagedQueue: nil, desired.LabelTeam: nil, desired.LabelShare: nil, desired.LabelManagedBy: nil, desired.LabelDepartment: nil},
		"annotations":     map[string]any{desired.AnnotationDesired: nil},
		"managedFields":   managers,
	}})
	if err != nil {
		return err
	}
	object, _ := live.DeepCopyObject().(client.Object)
	return client.IgnoreNotFound(c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner))
}
