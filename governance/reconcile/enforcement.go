package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// enforcementLook is how often the admission policies are looked for: they are
// asked for by name, so that those of the cluster need not be watched.
const enforcementLook = 30 * time.Second

// Enforcement tells the admission policies what they need to know, and the
// policy whether they are there. It does not install them: see package
// enforcement.
type Enforcement struct {
	client.Client               // reads from the cache
	Live          client.Reader // asks the API server itself
	Naming        desired.Naming
	Controllers   []string // the users that make the parts of admitted jobs
}

// Reconcile brings the status up to date.
func (r *Enforcement) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := allocations.Policy(ctx, r)
	if policy == nil || err != nil {
		return ctrl.Result{}, err
	}
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	state, err := r.state(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	types := catalog.New(catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: r.Naming.InstanceTypeLabel, Pools: policy.Status.Pools, Reported: policy.Status.ReportedTypes})
	return again(ctrl.Result{RequeueAfter: enforcementLook}, writePolicyStatus(ctx, r, policy, func(status *v1alpha1.ClusterPolicyStatus) {
		status.Enforcement = &v1alpha1.EnforcementStatus{
			Controllers: r.Controllers, InstanceTypeLabel: r.Naming.InstanceTypeLabel, GroupedTypes: groupedTypes(types),
		}
	}, state))
}

// groupedTypes are the instance types that are in pools of several types only,
// which a pod finds by the label of the pool.
func groupedTypes(types catalog.Catalog) (grouped []v1alpha1.GroupedType) {
	pools, alone := map[string][]string{}, map[string]bool{}
	for _, pool := range types.Pools() {
		for _, instanceType := range pool.Types {
			if pool.Grouped {
				pools[instanceType] = append(pools[instanceType], pool.Name)
			} else {
				alone[instanceType] = true
			}
		}
	}
	for _, instanceType := range slices.Sorted(maps.Keys(pools)) {
		if !alone[instanceType] {
			grouped = append(grouped, v1alpha1.GroupedType{InstanceType: instanceType, Pools: slices.Sorted(slices.Values(pools[instanceType]))})
		}
	}
	return grouped
}

// state says whether jobs beside Kueue are refused.
func (r *Enforcement) state(ctx context.Context, policy *v1alpha1.ClusterPolicy) (metav1.Condition, error) {
	if policy.Spec.Enforcement == v1alpha1.EnforcementNone {
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Off", "jobs beside Kueue are let through"), nil
	}
	missing, err := r.missing(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "Forbidden", "the console may not look whether the admission policies are there: %v", err), nil
	case err != nil:
		return metav1.Condition{}, err
	case len(missing) > 0:
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "NotInstalled",
			"jobs beside Kueue are not refused, since admission policies are missing: kubectl apply --server-side -f deploy/rbac/enforcement.yaml brings %s", strings.Join(missing, ", ")), nil
	}
	return component(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Enforced", "in teams' namespaces, what would run beside Kueue is refused"), nil
}

// missing are the admission policies that are not there, or not bound.
func (r *Enforcement) missing(ctx context.Context) (names []string, err error) {
	for _, name := range enforcement.Names() {
		for _, object := range []client.Object{&admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{}} {
			err := r.Live.Get(ctx, client.ObjectKey{Name: name}, object)
			if apierrors.IsNotFound(err) {
				names = append(names, name)
				break
			}
			if err != nil {
				return nil, fmt.Errorf("get %s: %w", name, err)
			}
		}
	}
	return names, nil
}
