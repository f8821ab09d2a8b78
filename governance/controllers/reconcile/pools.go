package reconcile

import (
	"context"
	"errors"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	policies "kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// PoolReconciler copies the pools of the policy's spec to its status, where
// they apply, unless that would remove a pool in which a team has quota. It
// labels the nodes of pools that their flavors select by label, and records the
// capacity that nodes of instance types outside the table report.
type PoolReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	Naming        desired.Naming

	policies policyReader
}

// Reconcile implements reconcile.Reconciler.
func (r *PoolReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	policy, leaves, err := r.policies.get(ctx, r, r.APIReader)
	if err != nil || leaves {
		return ctrl.Result{}, err
	}
	if policy == nil {
		return requeueOnConflict(ctrl.Result{}, r.labelNodes(ctx, nodes.Items, catalog.New(catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: r.Naming.InstanceTypeLabel})))
	}
	input := catalog.Input{
		Nodes: nodes.Items, InstanceTypeLabel: r.Naming.InstanceTypeLabel, Pools: policy.Status.Pools,
		ReportedTypes: catalog.Reported(nodes.Items, r.Naming.InstanceTypeLabel, policy.Status.ReportedTypes),
	}
	state, applied := newCondition(v1alpha1.ConditionPools, metav1.ConditionTrue, "Active", "every node is in one pool"), policy.Spec.Pools
	if !equality.Semantic.DeepEqual(policy.Status.Pools, policy.Spec.Pools) {
		refusal, err := r.poolErrors(ctx, policy, nodes.Items)
		if err != nil {
			return ctrl.Result{}, err
		}
		if refusal != "" {
			state, applied = newCondition(v1alpha1.ConditionPools, metav1.ConditionFalse, "Refused", "the pools stay unchanged: %s", refusal), policy.Status.Pools
		}
	}
	// The status comes before the labels, because quota is computed from it.
	if err := patchPolicyStatus(ctx, r, policy, func(status *v1alpha1.ClusterPolicyStatus) {
		status.Pools, status.ReportedTypes = applied, input.ReportedTypes
	}, state); err != nil {
		return requeueOnConflict(ctrl.Result{}, err)
	}
	input.Pools = applied
	return requeueOnConflict(ctrl.Result{}, r.labelNodes(ctx, nodes.Items, catalog.New(input)))
}

// poolErrors returns why the pools of the policy cannot apply; empty if they
// can.
func (r *PoolReconciler) poolErrors(ctx context.Context, policy *v1alpha1.ClusterPolicy, nodes []corev1.Node) (string, error) {
	teams, err := cluster.All[v1alpha1.ComputeAllocation](ctx, r.Client)
	if err != nil {
		return "", err
	}
	return governance.JoinFieldErrors(policies.ValidatePools(policy.Spec.Pools, policies.NewState(policy, nodes, teams, r.Naming.InstanceTypeLabel))), nil
}

// labelNodes sets or removes the pool label of each node. A label that a flavor
// still selects stays: without a policy its queues continue, and their tasks
// must find their nodes.
func (r *PoolReconciler) labelNodes(ctx context.Context, nodes []corev1.Node, types catalog.Catalog) error {
	var flavors kueue.ResourceFlavorList
	if err := r.List(ctx, &flavors, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	selected := map[string]bool{}
	for i := range flavors.Items {
		if _, known := types.Find(flavors.Items[i].Name); !known {
			selected[flavors.Items[i].Spec.NodeLabels[catalog.PoolLabel]] = true
		}
	}
	var failed []error
	for i := range nodes {
		node := &nodes[i]
		want, has := types.Label(node), node.Labels[catalog.PoolLabel]
		if want == has || want == "" && selected[has] {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: %q}}}`, catalog.PoolLabel, want)
		if want == "" {
			patch = fmt.Appendf(nil, `{"metadata": {"labels": {%q: null}}}`, catalog.PoolLabel)
		}
		if err := client.IgnoreNotFound(r.Patch(ctx, node.DeepCopy(), client.RawPatch(apitypes.MergePatchType, patch), fieldOwner)); err != nil {
			failed = append(failed, fmt.Errorf("node %s: %w", node.Name, err))
		}
	}
	return errors.Join(failed...)
}
