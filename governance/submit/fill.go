package submit

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

// Fill returns the requests of one pod. Like quota.Fill it completes missing amounts in
// proportion to one instance of the pool; without any amount it starts from one
// accelerator, or one vCPU in a pool without accelerators. Errors have the paths of
// quota.Fill.
//
// It differs from quota.Fill because a pod must fit on a node. Completed vCPU and memory
// are at most what the largest node has allocatable. Network devices are requested only
// for several pods, and their share is rounded down; rounded up, a node could run fewer
// pods than it has accelerators.
func Fill(each v1alpha1.Quantities, pods int32, pool QueuePool) (quota.Resources, []governance.FieldError) {
	if each == (v1alpha1.Quantities{}) {
		if pool.Instance.Accelerators > 0 {
			each.Accelerators = new(int64(1))
		} else {
			each.VCPU = new(resources.Amount(1000).Quantity(catalog.CPU))
		}
	}
	filled, wrong := quota.Fill(each, pool.Instance)
	if len(wrong) > 0 {
		return nil, wrong
	}
	filled[catalog.Network] = network(filled, pods, pool)
	if largest := LargestNode(pool.Nodes, filled); largest != nil {
		bound := func(name string, given bool, unit resources.Amount) {
			if most := largest[name].Minus(largest[name] % unit); !given && filled[name] > most {
				filled[name] = most
			}
		}
		bound(catalog.CPU, each.VCPU != nil, 1000)
		bound(catalog.Memory, each.Memory != nil, catalog.GiB)
		bound(catalog.Network, false, 1)
	}
	maps.DeleteFunc(filled, func(_ string, amount resources.Amount) bool { return amount == 0 })
	return filled, nil
}

// FillElastic returns the policy of an elastic task whose minimum is pods. Without a
// maximum it is the largest size, or twice the minimum. Without sizes it grows by as many
// pods as the minimum has, or by fewer if that would miss the maximum.
func FillElastic(p v1alpha1.ElasticPolicy, pods int32) v1alpha1.ElasticPolicy {
	p.MinReplicas = pods
	if p.MaxReplicas == 0 {
		p.MaxReplicas = 2 * pods
		if len(p.ReplicaDiscreteValues) > 0 {
			p.MaxReplicas = slices.Max(p.ReplicaDiscreteValues)
		}
	}
	if p.ReplicaIncrementStep == nil && len(p.ReplicaDiscreteValues) == 0 {
		step, rest := pods, p.MaxReplicas-pods
		for rest > 0 {
			step, rest = rest, step%rest
		}
		p.ReplicaIncrementStep = new(max(step, 1))
	}
	return p
}

// network returns a pod's share of the network devices of an instance, in proportion to
// its accelerators.
func network(each quota.Resources, pods int32, pool QueuePool) resources.Amount {
	instance := pool.Instance
	if pods < 2 || instance.Accelerators == 0 {
		return 0
	}
	return each[instance.AcceleratorResource].Times(int64(instance.NetworkDevices)) / instance.Accelerators
}
