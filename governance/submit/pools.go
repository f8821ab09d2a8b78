package submit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
)

// FillAny is Fill for a pod that must fit on a node of each pool: of each completed amount
// it takes the smallest.
func FillAny(each v1alpha1.Quantities, pods int32, pools ...QueuePool) (least quota.Resources, wrong []governance.FieldError) {
	for i, pool := range pools {
		filled, wrong := Fill(each, pods, pool)
		switch {
		case len(wrong) > 0:
			return nil, wrong
		case i == 0:
			least = filled
		}
		for name, amount := range least {
			if least[name] = min(amount, filled[name]); least[name] == 0 {
				delete(least, name)
			}
		}
	}
	return least, nil
}

// anyOf returns the pools of a request with several, in the order of the queue's flavors,
// which is the order in which Kueue tries them; nil if it names one.
func (t Team) anyOf(r Request) (pools []QueuePool) {
	if len(r.OtherPools) == 0 {
		return nil
	}
	for _, pool := range t.Pools {
		if pool.Name == r.Pool || slices.Contains(r.OtherPools, pool.Name) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// checkOtherPools returns why a task cannot run in the pool and in the others too.
func (t Team) checkOtherPools(r Request) string {
	first, known := t.pool(r.Pool)
	for _, name := range r.OtherPools {
		pool, ok := t.pool(name)
		switch {
		case !ok:
			return noPool(name, t)
		case t.notCovered(r.Share, name) != "":
			return t.notCovered(r.Share, name)
		case !known: // which is reported at the pool
		case pool.Instance.AcceleratorResource != first.Instance.AcceleratorResource:
			return fmt.Sprintf("%s has other accelerators than %s, and all pods request the same", name, first.Name)
		case r.PerPod.Partition != nil && !slices.Contains(pool.Instance.Partitions, r.PerPod.Partition.Profile):
			return fmt.Sprintf("%s has no %s", name, r.PerPod.Partition.Profile)
		case len(pool.NodeSelector) == 0 || len(first.NodeSelector) == 0:
			return "a pool whose nodes have no labels cannot be one of several"
		}
	}
	return ""
}

// place lets a pod run in the pool of the plan, or in any of its pools: a node affinity
// with one term for each leaves the choice to the order of Kueue's flavors, and of growth to
// the prices.
func (p Plan) place(spec *corev1.PodSpec) {
	if len(p.AnyOf) == 0 {
		spec.NodeSelector, spec.Tolerations = p.QueuePool.NodeSelector, p.QueuePool.Tolerations
		return
	}
	required := &corev1.NodeSelector{}
	for _, pool := range p.AnyOf {
		var term corev1.NodeSelectorTerm
		for _, label := range slices.Sorted(maps.Keys(pool.NodeSelector)) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{pool.NodeSelector[label]},
			})
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
		for _, toleration := range pool.Tolerations {
			if !slices.Contains(spec.Tolerations, toleration) {
				spec.Tolerations = append(spec.Tolerations, toleration)
			}
		}
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
}

// LargestNode returns the node that fits a pod best: it lacks the fewest resources, and
// has the most of those that the pod requests. It returns nil without nodes.
func LargestNode(nodes []quota.Resources, each quota.Resources) quota.Resources {
	if len(nodes) == 0 {
		return nil
	}
	lacks := func(node quota.Resources) (n int) {
		for name, amount := range each {
			if amount > node[name] {
				n++
			}
		}
		return n
	}
	return slices.MinFunc(nodes, func(a, b quota.Resources) int {
		if c := cmp.Compare(lacks(a), lacks(b)); c != 0 {
			return c
		}
		for _, name := range each.Names() { // accelerators first
			if c := cmp.Compare(b[name], a[name]); c != 0 {
				return c
			}
		}
		return 0
	})
}
