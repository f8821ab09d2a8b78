package allocations

import (
	"context"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Catalog is what the cluster is made of now.
func Catalog(ctx context.Context, reader client.Reader, instanceTypeLabel string) (catalog.Catalog, error) {
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Catalog{}, cluster.Translate("list nodes", err)
	}
	policy, err := Policy(ctx, reader)
	if err != nil {
		return catalog.Catalog{}, err
	}
	input := catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: instanceTypeLabel}
	if policy != nil {
		input.Pools, input.Reported = policy.Status.Pools, policy.Status.ReportedTypes // the pools in force; the spec's may not be yet
	}
	return catalog.New(input), nil
}

// Policy is the cluster policy; nil when there is none. One that is being deleted
// counts until it is gone.
func Policy(ctx context.Context, reader client.Reader) (*v1alpha1.ClusterPolicy, error) {
	var policy v1alpha1.ClusterPolicy
	err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read the cluster policy", err)
	case err != nil:
		return nil, nil
	}
	return &policy, nil
}

// Given is how much of each pool is given out as quota, by pool name.
type Given map[string]quota.Resources

// GivenOut sums the quota of all allocations but one.
func GivenOut(all []v1alpha1.ComputeAllocation, types catalog.Catalog, except string) Given {
	given := Given{}
	for i := range all {
		if all[i].Name != except {
			resolved, _ := InForce(&all[i], types)
			given.Add(resolved)
		}
	}
	return given
}

// InForce is the quota that an allocation has: what its spec comes to, or,
// where the spec is wrong, what was last applied and is still in Kueue.
// current tells which.
func InForce(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog) (resolved quota.Resolved, current bool) {
	ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonBlocked && len(allocation.Status.Quota) == 0 {
		return quota.Resolved{}, false // something stands in its way, and it never had anything
	}
	resolved, errs := quota.Resolve(&allocation.Spec, types)
	if len(errs) == 0 {
		return resolved, true
	}
	return Applied(allocation), false
}

// Applied is the quota that was last written for an allocation; without pools
// when there never was one.
func Applied(allocation *v1alpha1.ComputeAllocation) quota.Resolved {
	resolved := quota.Resolved{Lends: allocation.Spec.Sharing.Strategy != v1alpha1.DontLend}
	for _, applied := range allocation.Status.Quota {
		pool := quota.Pool{Name: applied.Pool, Nominal: quota.Resources{}, Limit: quota.Resources{}, LimitOnly: true}
		for _, r := range applied.Resources {
			pool.Nominal[r.Name] = quota.InUnit(r.Name, r.Nominal)
			pool.LimitOnly = pool.LimitOnly && r.Nominal.IsZero()
			switch {
			case r.BorrowLimit == nil:
				pool.Limit = nil
			case pool.Limit != nil:
				pool.Limit[r.Name] = quota.InUnit(r.Name, *r.BorrowLimit)
			}
		}
		resolved.Pools = append(resolved.Pools, pool)
	}
	return resolved
}

// Add adds one allocation's quota.
func (g Given) Add(resolved quota.Resolved) {
	for _, pool := range resolved.Pools {
		if g[pool.Name] == nil {
			g[pool.Name] = quota.Resources{}
		}
		g[pool.Name].Add(pool.Nominal)
	}
}

// Excess is one resource of one pool of which more is given out than is there.
type Excess struct {
	Pool, Resource string
	Given, There   int64 // in the unit of quota.Resources
}

// Over lists what is given out beyond the nominal figures × nodes of these
// pools, in the order of the pools and resources. Of partitions there is what
// nodes report.
func (g Given) Over(pools []quota.Pool, types catalog.Catalog) []Excess {
	var over []Excess
	for _, p := range pools {
		pool, ok := types.Find(p.Name)
		if !ok {
			continue
		}
		for _, resource := range g[p.Name].Names() {
			if given, there := g[p.Name][resource], pool.There[resource]; given > there {
				over = append(over, Excess{Pool: p.Name, Resource: resource, Given: given, There: there})
			}
		}
	}
	return over
}

// Sentence says what is given out beyond what is there, each pool once, such as
// "ml.g6.12xlarge: 10 of 8 GPUs and 120 of 96 vCPU given out".
func Sentence(over []Excess) string {
	var pools []string
	amounts := map[string][]string{}
	for _, e := range over {
		if amounts[e.Pool] == nil {
			pools = append(pools, e.Pool)
		}
		amounts[e.Pool] = append(amounts[e.Pool], fmt.Sprintf("%s of %s", quota.Grouped(e.Resource, e.Given), quota.Amount(e.Resource, e.There)))
	}
	for i, pool := range pools {
		all := amounts[pool]
		text := all[0]
		if last := len(all) - 1; last > 0 {
			text = strings.Join(all[:last], ", ") + " and " + all[last]
		}
		pools[i] = fmt.Sprintf("%s: %s allocated", pool, text)
	}
	return strings.Join(pools, "; ")
}
