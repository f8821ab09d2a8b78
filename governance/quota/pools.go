package quota

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Effective returns the quota of an allocation: that of its spec, with what is active,
// or, while the spec is invalid, the quota that was applied last and that Kueue still has.
// current reports whether it is that of the spec.
func Effective(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog) (resolved Resolved, current bool) {
	ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonDepartment && ready.ObservedGeneration == allocation.Generation {
		return Applied(allocation), false
	}
	return Wanted(allocation, types)
}

// Wanted returns the quota of an allocation as Effective does, and while its department has
// not as much, that of its spec.
func Wanted(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog) (resolved Resolved, current bool) {
	if allocation.Spec.Observed() {
		return Applied(allocation), true // the controller reads it from the ClusterQueue
	}
	ready := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonBlocked && len(allocation.Status.Quota) == 0 {
		return Resolved{}, false // blocked by a conflict, and never applied
	}
	if ready != nil && ready.Reason == v1alpha1.ReasonOverAllocated && ready.ObservedGeneration == allocation.Generation {
		return Applied(allocation), false
	}
	spec := effective.Spec(allocation)
	resolved, errs := Resolve(&spec, types)
	if len(errs) == 0 {
		return resolved, true
	}
	return Applied(allocation), false
}

// Applied returns the quota that the controller applied last, from the status;
// without pools if it never applied any.
func Applied(allocation *v1alpha1.ComputeAllocation) Resolved {
	sharing := effective.Spec(allocation).Sharing
	resolved := Resolved{Lends: sharing.Strategy != v1alpha1.DontLend, Unlimited: sharing.Unlimited, covered: allocation.Spec.CoveredResources}
	resolved.Pools = appliedPools(allocation.Status.Quota)
	for i := range allocation.Status.Shares {
		share := &allocation.Status.Shares[i]
		resolved.Shares = append(resolved.Shares, ShareQuota{share.Name, Resolved{Pools: appliedPools(share.Quota), Lends: resolved.Lends}})
	}
	return resolved
}

// appliedPools returns the quota of a status.
func appliedPools(quota []v1alpha1.PoolQuota) (pools []FlavorQuotas) {
	for _, applied := range quota {
		pool := FlavorQuotas{Name: applied.Pool, Nominal: Resources{}, BorrowingLimit: Resources{}, BorrowOnly: true}
		for _, r := range applied.Resources {
			pool.Nominal[r.Name] = resources.AmountFromQuantity(r.Name, r.Nominal)
			pool.BorrowOnly = pool.BorrowOnly && r.Nominal.IsZero()
			switch {
			case r.BorrowLimit == nil:
				pool.BorrowingLimit = nil
			case pool.BorrowingLimit != nil:
				pool.BorrowingLimit[r.Name] = resources.AmountFromQuantity(r.Name, *r.BorrowLimit)
			}
		}
		pools = append(pools, pool)
	}
	return pools
}

// PoolResources are resources by pool: nominal quota that is allocated, or usage.
type PoolResources map[string]Resources

// Allocated returns the sum of the nominal quota of all allocations except the
// one with this name.
func Allocated(all []v1alpha1.ComputeAllocation, types catalog.Catalog, except string) PoolResources {
	allocated := PoolResources{}
	for i := range all {
		if all[i].Name != except {
			resolved, _ := Effective(&all[i], types)
			allocated.AddNominal(resolved)
		}
	}
	return allocated
}

// Add adds resources of one pool.
func (p PoolResources) Add(pool string, resources Resources) {
	if p[pool] == nil {
		p[pool] = Resources{}
	}
	p[pool].Add(resources)
}

// Subtract subtracts resources. What is not in p becomes negative.
func (p PoolResources) Subtract(other PoolResources) {
	for pool, amounts := range other {
		if p[pool] == nil {
			p[pool] = Resources{}
		}
		for name, amount := range amounts {
			p[pool][name] = p[pool][name].Minus(amount)
		}
	}
}

// Raise raises each amount to that of other.
func (p PoolResources) Raise(other PoolResources) {
	for pool, amounts := range other {
		if p[pool] == nil {
			p[pool] = Resources{}
		}
		for name, amount := range amounts {
			p[pool][name] = max(p[pool][name], amount)
		}
	}
}

// Covers reports whether no amount of other exceeds that of p.
func (p PoolResources) Covers(other PoolResources) bool {
	for pool, amounts := range other {
		for name, amount := range amounts {
			if amount > p[pool][name] {
				return false
			}
		}
	}
	return true
}

// AddNominal adds the nominal quota of one allocation, with that of its shares.
func (p PoolResources) AddNominal(resolved Resolved) {
	for pool, amounts := range Nominal(resolved.Pools) {
		p.Add(pool, amounts)
	}
	for _, share := range resolved.Shares {
		p.AddNominal(share.Resolved)
	}
}

// SubtractNominal subtracts the nominal quota of one allocation that was added.
func (p PoolResources) SubtractNominal(resolved Resolved) {
	added := PoolResources{}
	added.AddNominal(resolved)
	p.Subtract(added)
}

// Nominal returns the nominal quota of one ClusterQueue.
func Nominal(pools []FlavorQuotas) PoolResources {
	sum := PoolResources{}
	for _, pool := range pools {
		sum.Add(pool.Name, pool.Nominal)
	}
	return sum
}

// Excess is one resource of one pool of which more is allocated than the pool
// has, in the unit of Resources.
type Excess struct {
	Pool, Resource      string
	Allocated, Physical resources.Amount
}

// Exceeding returns what is allocated beyond the physical resources of these
// pools, in the order of the pools and then of Compare. Of partitions a pool has
// what its nodes report. What no node reports, such as licenses, has no limit.
func (p PoolResources) Exceeding(pools []FlavorQuotas, types catalog.Catalog) []Excess {
	var excess []Excess
	for _, of := range pools {
		pool, ok := types.Find(of.Name)
		if !ok {
			continue
		}
		for _, resource := range p[of.Name].Names() {
			if allocated, physical := p[of.Name][resource], pool.Physical[resource]; allocated > physical && types.OnNodes(resource) {
				excess = append(excess, Excess{Pool: of.Name, Resource: resource, Allocated: allocated, Physical: physical})
			}
		}
	}
	return excess
}

// Refused returns what a change allocates beyond the limits of the policy: the sums of the
// pools that it raises. Physical is the most that a limit allows.
func Refused(policy *v1alpha1.ClusterPolicy, before, after PoolResources, types catalog.Catalog) (refused []Excess) {
	if policy == nil || len(policy.Spec.OverAllocationLimits) == 0 {
		return nil
	}
	percent := map[string]int32{}
	for _, limit := range policy.Spec.OverAllocationLimits {
		percent[limit.Pool] = ptr.Deref(limit.Percent, 0)
	}
	for _, pool := range types.Pools() {
		more, limited := percent[pool.Name]
		if !limited {
			more, limited = percent[v1alpha1.AllPools]
		}
		if !limited || pool.Nodes == 0 {
			continue
		}
		most, ok := Resources(pool.Physical).percent(100 + int64(more))
		for _, name := range after[pool.Name].Names() {
			if name == catalog.Network || !types.OnNodes(name) {
				continue // network devices follow from others, rounded up for each team
			}
			if sum := after[pool.Name][name]; ok && sum > most[name] && sum > before[pool.Name][name] {
				refused = append(refused, Excess{Pool: pool.Name, Resource: name, Allocated: sum, Physical: most[name]})
			}
		}
	}
	return refused
}

// DescribeRefused returns what Refused returned as one sentence; empty for nothing.
func DescribeRefused(refused []Excess) string {
	if len(refused) == 0 {
		return ""
	}
	return "more than the cluster policy lets all teams have: " + DescribeExcess(refused)
}

// DescribeExcess returns the excess as one text, each pool once, such as
// "ml.g6.12xlarge: 10 of 8 GPUs and 120 of 96 vCPU allocated".
func DescribeExcess(excess []Excess) string {
	var pools []string
	amounts := map[string][]string{}
	for _, e := range excess {
		if amounts[e.Pool] == nil {
			pools = append(pools, e.Pool)
		}
		amounts[e.Pool] = append(amounts[e.Pool], fmt.Sprintf("%s of %s", Grouped(e.Resource, e.Allocated), Amount(e.Resource, e.Physical)))
	}
	for i, pool := range pools {
		pools[i] = fmt.Sprintf("%s: %s allocated", pool, join(amounts[pool]))
	}
	return strings.Join(pools, "; ")
}

// WithinCapacity returns the condition of an allocation whose pools are exceeded by over.
func WithinCapacity(over []Excess) metav1.Condition {
	if len(over) == 0 {
		return metav1.Condition{Type: v1alpha1.ConditionWithinCapacity, Status: metav1.ConditionTrue, Reason: "WithinCapacity", Message: "these pools have the capacity for the quota of all teams"}
	}
	return metav1.Condition{Type: v1alpha1.ConditionWithinCapacity, Status: metav1.ConditionFalse, Reason: "OverCapacity", Message: DescribeExcess(over) + "; tasks beyond the capacity wait"}
}

// NodesFor returns how many nodes of a pool a number of pods needs, by the figures of its
// instance type: by accelerators if the pods request some. 0 if that is not known.
func NodesFor(pool catalog.Pool, requests Resources, pods int64) int64 {
	figures := map[string]resources.Amount{catalog.CPU: pool.Instance.MilliCPU, catalog.Memory: pool.Instance.Memory}
	if name, each := requests.Accelerator(); each > 0 {
		figures = map[string]resources.Amount{}
		if name == pool.Instance.AcceleratorResource {
			figures[name] = pool.Instance.Accelerators
		}
	}
	perNode := int64(0)
	for name, figure := range figures {
		if each := requests[name]; each > 0 {
			if n := figure.Per(each); perNode == 0 || n < perNode {
				perNode = n
			}
		}
	}
	if pool.Grouped || perNode < 1 {
		return 0
	}
	return (pods + perNode - 1) / perNode
}
