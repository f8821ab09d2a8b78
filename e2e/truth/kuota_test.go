package truth_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// extraLabel is the label of the nodes that provide adds.
const extraLabel = "truth.kuota.dev/extra"

// provide adds nodes to each pool, so that it has what the instance allocates and shares,
// or what its first node has. No node is larger than that, because the largest one
// decides over amounts that follow from others.
func (in *instance) provide(ctx context.Context) error {
	if err := in.client.DeleteAllOf(ctx, &corev1.Node{}, client.HasLabels{extraLabel}); err != nil {
		return err
	}
	first := quota.Resources{catalog.GPU: nodeGPUs, catalog.CPU: nodeGPUs * gpuVCPUs * 1000, catalog.Memory: nodeGPUs * gpuGiB * catalog.GiB}
	for _, pool := range slices.Sorted(maps.Keys(in.ready)) {
		left := quota.Resources{}
		for name := range first {
			left[name] = max(0, in.ready[pool][name]-first[name])
		}
		for i := 0; left[catalog.GPU] > 0 || left[catalog.CPU] > 0 || left[catalog.Memory] > 0; i++ {
			has := corev1.ResourceList{}
			for name := range left {
				amount := min(left[name], first[name])
				left[name] -= amount
				has[corev1.ResourceName(name)] = amount.Quantity(name)
			}
			node := node(fmt.Sprintf("%s-%d", pool, i), pool, has)
			node.Labels[extraLabel] = "true"
			if err := in.client.Create(ctx, &node); err != nil {
				return err
			}
		}
	}
	return nil
}

// allocate creates or updates the allocations of teams, and returns once Kuota has
// applied them.
func (in *instance) allocate(ctx context.Context, teams []int) error {
	if len(teams) == len(in.teams) {
		if err := in.provide(ctx); err != nil {
			return err
		}
	}
	for _, i := range teams {
		var now v1alpha1.ComputeAllocation
		switch err := in.client.Get(ctx, client.ObjectKey{Name: in.teams[i].Name}, &now); {
		case apierrors.IsNotFound(err):
			now = *in.teams[i].DeepCopy()
			if err := in.client.Create(ctx, &now); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			now.Spec = in.teams[i].Spec
			if err := in.client.Update(ctx, &now); err != nil {
				return err
			}
		}
	}
	return until(ctx, func() error { return in.applied(ctx) })
}

// applied returns nil once Kuota has applied all allocations as they are now.
func (in *instance) applied(ctx context.Context) error {
	for _, a := range in.teams {
		var now v1alpha1.ComputeAllocation
		if err := in.client.Get(ctx, client.ObjectKeyFromObject(a), &now); err != nil {
			return err
		}
		want := []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive}
		if now.Spec.Activation != v1alpha1.Active { // Kueue calls a held queue inactive
			want = want[:1]
		}
		for _, condition := range want {
			if got := meta.FindStatusCondition(now.Status.Conditions, condition); got == nil || got.Status != "True" || now.Status.ObservedGeneration != now.Generation {
				return fmt.Errorf("allocation %s: condition %s is %+v", now.Name, condition, got)
			}
		}
	}
	return nil
}

// release deletes the allocations, and returns when Kuota has deleted their objects.
func (in *instance) release(ctx context.Context) error {
	for _, a := range in.teams {
		if err := client.IgnoreNotFound(in.client.Delete(ctx, &v1alpha1.ComputeAllocation{ObjectMeta: a.ObjectMeta})); err != nil {
			return err
		}
	}
	return until(ctx, func() error {
		for _, a := range in.teams {
			if err := in.client.Get(ctx, client.ObjectKeyFromObject(a), &v1alpha1.ComputeAllocation{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("allocation %s still exists: %v", a.Name, err)
			}
		}
		return nil
	})
}
