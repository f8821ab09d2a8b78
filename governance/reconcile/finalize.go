package reconcile

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"

	corev1 "k8s.io/api/core/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// removalLook is how soon what is being deleted is looked at again, should no
// event tell that what it waits for is gone.
const deletionInterval = 5 * time.Second

// remove takes an allocation's objects away in the order that strands no task:
// the queue is held, or drained when asked; once it is empty the LocalQueue
// goes, then the ClusterQueue. The namespace stays, marked so that the same
// team takes it back. When Kuota leaves the cluster, all of it stays.
func (r *AllocationReconciler) finalize(ctx context.Context, allocation *v1alpha1.ComputeAllocation) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(allocation, finalizer) {
		return ctrl.Result{}, nil
	}
	letGo := func() error {
		return client.IgnoreNotFound(r.patchMetadata(ctx, allocation, func() { controllerutil.RemoveFinalizer(allocation, finalizer) }))
	}
	switch leaves, err := crdsDeleted(ctx, r.APIReader); {
	case err != nil:
		return ctrl.Result{}, err
	case leaves:
		return ctrl.Result{}, letGo()
	}
	namespace := desired.NamespaceName(allocation, r.Naming)
	for _, step := range []func(context.Context, *v1alpha1.ComputeAllocation, string) (waitFor string, err error){
		r.drainClusterQueue, r.deleteLocalQueue, r.deleteClusterQueue, r.releaseNamespace,
	} {
		waitFor, err := step(ctx, allocation, namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		if waitFor != "" { // an event of what is waited for brings us back
			return ctrl.Result{RequeueAfter: deletionInterval}, r.patchStatus(ctx, allocation, notReady("Deleting", waitFor))
		}
	}
	return ctrl.Result{}, letGo()
}

// emptyQueue stops the queue and waits until no task holds quota in it.
func (r *AllocationReconciler) drainClusterQueue(ctx context.Context, allocation *v1alpha1.ComputeAllocation, _ string) (string, error) {
	var queue kueue.ClusterQueue
	if found, err := r.getManaged(ctx, allocation.Name, managed.Object{Key: client.ObjectKey{Name: r.Naming.ClusterQueue(allocation.Name)}, Live: &queue}); !found || err != nil {
		return "", err
	}
	policy := kueue.Hold
	if allocation.Annotations[v1alpha1.AnnotationDrain] == "true" {
		policy = kueue.HoldAndDrain
	}
	if queue.Spec.StopPolicy == nil || *queue.Spec.StopPolicy != policy {
		before := queue.DeepCopy()
		queue.Spec.StopPolicy = &policy
		if err := r.Patch(ctx, &queue, client.MergeFrom(before), client.FieldOwner("kuota-remove")); err != nil {
			return "", err
		}
	}
	if tasks := max(queue.Status.AdmittedWorkloads, queue.Status.ReservingWorkloads); tasks > 0 {
		return fmt.Sprintf("%d of the team's tasks are admitted, so the queue is held; deletion continues when they finish, or when the allocation is annotated %s=true, which requeues them", tasks, v1alpha1.AnnotationDrain), nil
	}
	return "", nil
}

// removeLocalQueue removes the team's queue, and with it what else let people in
// or bounded the namespace. What others put there stays.
func (r *AllocationReconciler) deleteLocalQueue(ctx context.Context, allocation *v1alpha1.ComputeAllocation, namespace string) (string, error) {
	queue := managed.Object{Kind: "LocalQueue", Key: client.ObjectKey{Namespace: namespace, Name: r.Naming.LocalQueue(allocation.Name)}, Live: &kueue.LocalQueue{}}
	for _, piece := range append(managed.Optional(namespace), queue) {
		waitFor, err := r.deleteManaged(ctx, allocation.Name, piece)
		if err != nil || waitFor != "" {
			return waitFor, err
		}
	}
	return "", nil
}

func (r *AllocationReconciler) deleteClusterQueue(ctx context.Context, allocation *v1alpha1.ComputeAllocation, _ string) (string, error) {
	return r.deleteManaged(ctx, allocation.Name, managed.Object{Kind: "ClusterQueue", Key: client.ObjectKey{Name: r.Naming.ClusterQueue(allocation.Name)}, Live: &kueue.ClusterQueue{}})
}

// removeOurs deletes an object of a team, and says what to wait for until it is
// gone.
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

// releaseNamespace takes our labels off the namespace and leaves the mark of
// the team.
func (r *AllocationReconciler) releaseNamespace(ctx context.Context, allocation *v1alpha1.ComputeAllocation, name string) (string, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if namespace.Annotations[desired.AnnotationTeam] != allocation.Name || namespace.DeletionTimestamp != nil {
		return "", nil
	}
	released := applycore.Namespace(name).WithAnnotations(map[string]string{desired.AnnotationTeam: allocation.Name})
	return "", r.applyExistingNamespace(ctx, &namespace, released)
}

// getOurs reads an object; found is false when there is none, or it is not
// Kuota's, or another team's: an allocation that was blocked may name a
// namespace where others are.
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
	var namespace corev1.Namespace // somebody took the label off
	if err := r.Get(ctx, client.ObjectKey{Name: piece.Key.Namespace}, &namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Annotations[desired.AnnotationTeam] == team, nil
}
