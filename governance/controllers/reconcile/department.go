package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/activity"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// departmentFinalizer keeps a department until nothing is below it and its Cohort is deleted.
const departmentFinalizer = "kuota.dev/department"

// DepartmentReconciler keeps what a department has beside its Cohort: the namespace in which
// the roles of its admins are bound, and what is active of its windows and its budget.
// CohortReconciler writes the Cohort, and the conditions, the parent and the quota of the status.
type DepartmentReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // asks the API server itself
	Events        events.EventRecorder
	Activity      *activity.Log // nil without history
	Now           func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r *DepartmentReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var department v1alpha1.Department
	if err := r.Get(ctx, request.NamespacedName, &department); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if department.DeletionTimestamp != nil {
		return requeueOnConflict(r.finalize(ctx, &department))
	}
	if err := r.patchFinalizer(ctx, &department, controllerutil.AddFinalizer); err != nil {
		return requeueOnConflict(ctrl.Result{}, err)
	}
	next, err := r.apply(ctx, &department)
	result := ctrl.Result{}
	if !next.IsZero() {
		result.RequeueAfter = max(next.Sub(r.Now()), time.Millisecond)
	}
	return requeueOnConflict(result, err)
}

// apply applies the namespace and the binding of a department, and writes what is active into
// its status. next is when that changes.
func (r *DepartmentReconciler) apply(ctx context.Context, department *v1alpha1.Department) (next time.Time, err error) {
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &list); err != nil {
		return next, err
	}
	objects := desired.BuildDepartment(desired.DepartmentChain(list.Items, department.Name))
	namespace := *objects.Namespace.GetName()
	pieces := []managed.Object{managed.NewObject("Namespace", &corev1.Namespace{}, objects.Namespace, objects.Namespace.ObjectMetaApplyConfiguration)}
	if o := objects.Admins; o != nil {
		pieces = append(pieces, managed.NewObject("RoleBinding", &rbacv1.RoleBinding{}, o, o.ObjectMetaApplyConfiguration))
	} else if err := r.deleteBinding(ctx, namespace); err != nil {
		return next, err
	}
	for _, piece := range pieces {
		correction, err := applier{r.Client, r.APIReader}.apply(ctx, piece, false)
		if err != nil {
			return next, err
		}
		if correction != nil {
			addCorrection(r.Events, r.Activity, department, correction)
		}
	}
	active, next := effective.At(department.Allocation(), r.Now())
	before := department.DeepCopy()
	department.Status.Namespace, department.Status.Active = namespace, active
	if equality.Semantic.DeepEqual(before.Status, department.Status) {
		return next, nil
	}
	return next, r.Status().Patch(ctx, department, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// deleteBinding deletes the binding of the admins of a department.
func (r *DepartmentReconciler) deleteBinding(ctx context.Context, namespace string) error {
	var binding rbacv1.RoleBinding
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: desired.DepartmentName}, &binding); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !managed.ByKuota(&binding) {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, &binding))
}

// finalize waits until nothing is below a department, whose admins can move that out until then. It
// then removes the binding, and the finalizer when CohortReconciler has deleted the Cohort. The
// namespace stays, as those of teams do.
func (r *DepartmentReconciler) finalize(ctx context.Context, department *v1alpha1.Department) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(department, departmentFinalizer) {
		return ctrl.Result{}, nil
	}
	leaves, err := crdsDeleted(ctx, r.APIReader)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !leaves {
		var departments v1alpha1.DepartmentList
		var allocations v1alpha1.ComputeAllocationList
		if err := cluster.List(ctx, r, &departments, &allocations); err != nil {
			return ctrl.Result{}, err
		}
		tree, _ := desired.NewTree(desired.Inputs{Departments: departments.Items})
		if len(desired.Below(department.Name, tree, allocations.Items)) > 0 {
			_, err := r.apply(ctx, department)
			return ctrl.Result{RequeueAfter: deletionInterval}, err
		}
		if err := r.deleteBinding(ctx, desired.DepartmentNamespace(department.Name)); err != nil {
			return ctrl.Result{}, err
		}
		switch cohort := (&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: department.Status.Cohort}}); {
		case cohort.Name == "":
		case department.Annotations[v1alpha1.AnnotationRelease] == "true": // the Cohort stays as it is, without Kuota's labels
			if err := disown(ctx, r.Client, r.APIReader, cohort); err != nil {
				return ctrl.Result{}, err
			}
		default:
			switch err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(cohort), cohort); {
			case err == nil: // an event of the Cohort triggers a reconciliation
				return ctrl.Result{RequeueAfter: deletionInterval}, nil
			case client.IgnoreNotFound(err) != nil:
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.patchFinalizer(ctx, department, controllerutil.RemoveFinalizer))
}

// patchFinalizer patches the finalizer, and nothing else.
func (r *DepartmentReconciler) patchFinalizer(ctx context.Context, department *v1alpha1.Department, change func(client.Object, string) bool) error {
	before := department.DeepCopy()
	if !change(department, departmentFinalizer) {
		return nil
	}
	return r.Patch(ctx, department, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// patchDepartments writes what is applied of the departments of a tree into their status.
func (r *CohortReconciler) patchDepartments(ctx context.Context, tree *desired.Tree, wishes desired.Wishes, settled desired.Settled, allocations []v1alpha1.ComputeAllocation) error {
	var failed []error
	for i := range tree.Naming.Departments {
		department := tree.Naming.Departments[i].DeepCopy()
		before := department.DeepCopy()
		status := &department.Status
		ready := newCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready", "the Cohort matches the department")
		refusal := settled.Departments[department.Name]
		switch d := tree.Departments[department.Name]; {
		case d == nil:
			continue // it is deleted
		case department.DeletionTimestamp != nil:
			refusal = desired.Refusal{Reason: "Deleting", Message: "still below it: " + strings.Join(desired.Below(department.Name, tree, allocations), ", ") + "; move or delete them"}
		case wishes.Invalid[department.Name] != nil:
			refusal = desired.Refusal{Reason: "Invalid", Message: governance.JoinFieldErrors(wishes.Invalid[department.Name])}
			fallthrough
		default:
			if d.Applied {
				status.Cohort, status.Parent, status.Quota = desired.DepartmentCohort(department), d.Parent, statusQuota(d.Quota)
			}
		}
		if refusal != (desired.Refusal{}) {
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, refusal.Reason, refusal.Message
			if status.Cohort != "" && refusal.Reason != "Deleting" {
				ready.Message = fmt.Sprintf("%s; what was applied last stays", refusal.Message)
			}
		}
		status.ObservedGeneration, ready.ObservedGeneration = department.Generation, department.Generation
		meta.SetStatusCondition(&status.Conditions, ready)
		if equality.Semantic.DeepEqual(before.Status, *status) {
			continue
		}
		failed = append(failed, client.IgnoreNotFound(r.Status().Patch(ctx, department, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
	}
	return errors.Join(failed...)
}
