package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DepartmentsPolicy is the admission policy that limits the admins of departments.
	DepartmentsPolicy = "kuota-departments"

	departmentsProbe   = "kuota.dev/probe"
	departmentsApplied = "the API server applies " + DepartmentsPolicy

	// delegatesInterval is how often the API server is probed, and unprovenInterval how soon
	// again while it does not apply the policy.
	delegatesInterval = 30 * time.Second
	unprovenInterval  = 5 * time.Second
)

// DelegatesReconciler binds the ClusterRole by which the admins of departments write
// allocations and departments, only while the API server applies the admission policy that
// limits them to their departments. Whether it does is observed: it must reject the dry run
// of a patch. See docs/decisions/0083.
type DelegatesReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	Now           func() time.Time

	provenAt time.Time // when the API server last rejected the probe
}

// Reconcile implements reconcile.Reconciler.
func (r *DelegatesReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, r, &list); err != nil {
		return ctrl.Result{}, err
	}
	departments := make([]*v1alpha1.Department, len(list.Items))
	for i := range list.Items {
		departments[i] = &list.Items[i]
	}
	slices.SortFunc(departments, func(a, b *v1alpha1.Department) int { return strings.Compare(a.Name, b.Name) })
	wanted := desired.Delegates(departments)
	if wanted == nil {
		err := r.unbind(ctx)
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, r.report(ctx, departments, newCondition(v1alpha1.ConditionDelegation, metav1.ConditionFalse, "NoAdmins",
			"no department has a member with the role Admin, so that only admins of the cluster change teams and departments"))))
	}
	applied, probeErr := r.probe(ctx, departments)
	switch {
	case applied:
		r.provenAt = r.Now()
		err := r.bind(ctx, wanted)
		state := newCondition(v1alpha1.ConditionDelegation, metav1.ConditionTrue, "Delegated", "the admins of the department, and those above it, can change its teams and departments")
		if err != nil {
			state = newCondition(v1alpha1.ConditionDelegation, metav1.ConditionFalse, "BindingFailed", "the admins of departments cannot change teams: ClusterRoleBinding %s cannot be written, retrying: %v", desired.DelegatesName, err)
		}
		return requeueOnConflict(ctrl.Result{RequeueAfter: delegatesInterval}, errors.Join(err, r.report(ctx, departments, state)))
	case probeErr != nil && r.Now().Sub(r.provenAt) < delegatesInterval+probeLimit:
		return ctrl.Result{}, errors.Join(probeErr, r.remove(ctx, wanted)) // the API server may be starting
	}
	err := r.unbind(ctx)
	state := newCondition(v1alpha1.ConditionDelegation, metav1.ConditionFalse, "PolicyMissing",
		"the admins of departments cannot change teams, because the API server does not apply the admission policy %s, which limits them. Install it with its binding: deploy/rbac/departments.yaml, or an upgrade of the chart. It needs Kubernetes 1.30", DepartmentsPolicy)
	if probeErr != nil {
		state.Reason, state.Message = "PolicyUnknown", fmt.Sprintf("the admins of departments cannot change teams, because it is unknown whether the API server applies the admission policy %s, retrying: %v", DepartmentsPolicy, probeErr)
	}
	return requeueOnConflict(ctrl.Result{RequeueAfter: unprovenInterval}, errors.Join(err, r.report(ctx, departments, state)))
}

// probe reports whether the API server applies the policy: it must reject the dry run of a
// patch of a department. The error is any other answer than the patched department. Of several
// API servers, it asks the one that responds.
func (r *DelegatesReconciler) probe(ctx context.Context, departments []*v1alpha1.Department) (applied bool, err error) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, departmentsProbe, strconv.FormatInt(r.Now().UnixNano(), 36)))
	for _, department := range departments {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: department.Name}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Department"))
		err = r.Patch(ctx, object, patch, client.DryRunAll)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err == nil:
			return false, nil
		case strings.Contains(err.Error(), departmentsApplied):
			return true, nil
		}
		return false, fmt.Errorf("probe %s: %w", DepartmentsPolicy, err)
	}
	return false, fmt.Errorf("probe %s: no department exists: %w", DepartmentsPolicy, err)
}

// bind applies the binding if it differs.
func (r *DelegatesReconciler) bind(ctx context.Context, wanted *applyrbac.ClusterRoleBindingApplyConfiguration) error {
	live, err := r.binding(ctx)
	if err != nil {
		return err
	}
	subjects := subjectsOf(wanted)
	if live != nil && equality.Semantic.DeepEqual(live.Subjects, subjects) && live.RoleRef.Name == *wanted.RoleRef.Name && live.RoleRef.Kind == *wanted.RoleRef.Kind {
		return nil
	}
	return r.Apply(ctx, wanted, fieldOwner, client.ForceOwnership)
}

// remove removes the subjects from the binding that are not wanted.
func (r *DelegatesReconciler) remove(ctx context.Context, wanted *applyrbac.ClusterRoleBindingApplyConfiguration) error {
	live, err := r.binding(ctx)
	if live == nil || err != nil {
		return err
	}
	subjects := subjectsOf(wanted)
	wanted.Subjects = slices.DeleteFunc(slices.Clone(wanted.Subjects), func(s applyrbac.SubjectApplyConfiguration) bool {
		return !slices.ContainsFunc(live.Subjects, func(has rbacv1.Subject) bool { return has.Kind == *s.Kind && has.Name == *s.Name })
	})
	if !slices.ContainsFunc(live.Subjects, func(s rbacv1.Subject) bool { return !slices.Contains(subjects, s) }) {
		return nil
	}
	return r.Apply(ctx, wanted, fieldOwner, client.ForceOwnership)
}

func subjectsOf(binding *applyrbac.ClusterRoleBindingApplyConfiguration) (subjects []rbacv1.Subject) {
	for _, s := range binding.Subjects {
		subjects = append(subjects, rbacv1.Subject{APIGroup: *s.APIGroup, Kind: *s.Kind, Name: *s.Name})
	}
	return subjects
}

// binding returns the binding; nil if it does not exist.
func (r *DelegatesReconciler) binding(ctx context.Context) (*rbacv1.ClusterRoleBinding, error) {
	var live rbacv1.ClusterRoleBinding
	err := r.APIReader.Get(ctx, client.ObjectKey{Name: desired.DelegatesName}, &live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &live, err
}

// unbind deletes the binding.
func (r *DelegatesReconciler) unbind(ctx context.Context) error {
	live, err := r.binding(ctx)
	if live == nil || err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Delete(ctx, live))
}

// report writes a condition into the status of each department.
func (r *DelegatesReconciler) report(ctx context.Context, departments []*v1alpha1.Department, state metav1.Condition) error {
	var failed []error
	for _, department := range departments {
		if has := meta.FindStatusCondition(department.Status.Conditions, state.Type); has != nil && has.Status == state.Status && has.Reason == state.Reason && has.Message == state.Message {
			continue
		}
		after := department.DeepCopy()
		state.ObservedGeneration = department.Generation
		meta.SetStatusCondition(&after.Status.Conditions, state)
		failed = append(failed, client.IgnoreNotFound(r.Status().Patch(ctx, after, client.MergeFromWithOptions(department, client.MergeFromWithOptimisticLock{}))))
	}
	return errors.Join(failed...)
}
