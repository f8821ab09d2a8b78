package submit

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
)

// Fill is what one pod gets, with what was left out filled in as quota.Fill
// does: in proportion to one instance of the pool. Where nothing is given, it is
// one accelerator, or one vCPU where the pool has none.
//
// Two things differ, since a pod has to find room on a node. vCPU and memory
// that nobody gave are at most what the largest node has for pods: a node keeps
// some for itself. And network devices are asked for only where several pods
// work together, and their share is rounded down: rounded up, a node could not
// hold as many pods as it has accelerators.
//
// What is wrong is returned with paths as quota.Fill's.
func Fill(each v1alpha1.Amounts, pods int32, pool QueuePool) (quota.Resources, []governance.FieldError) {
	if each == (v1alpha1.Amounts{}) {
		one := int64(1)
		if pool.Instance.Accelerators > 0 {
			each.Accelerators = &one
		} else {
			vcpu := quota.ResourceQuantity(catalog.CPU, 1000)
			each.VCPU = &vcpu
		}
	}
	filled, wrong := quota.Fill(each, pool.Instance)
	if len(wrong) > 0 {
		return nil, wrong
	}
	filled[catalog.Network] = network(filled, pods, pool)
	if largest := LargestNode(pool.Nodes, filled); largest != nil {
		bound := func(name string, given bool, unit int64) {
			if most := largest[name] - largest[name]%unit; !given && filled[name] > most {
				filled[name] = most
			}
		}
		bound(catalog.CPU, each.VCPU != nil, 1000)
		bound(catalog.Memory, each.Memory != nil, catalog.GiB)
		bound(catalog.Network, false, 1)
	}
	for name, amount := range filled {
		if amount == 0 {
			delete(filled, name)
		}
	}
	return filled, nil
}

// network is a pod's share of an instance's network devices, by its
// accelerators.
func network(each quota.Resources, pods int32, pool QueuePool) int64 {
	instance := pool.Instance
	if pods < 2 || instance.Accelerators == 0 {
		return 0
	}
	return each[instance.AcceleratorResource] * instance.NetworkDevices / instance.Accelerators
}
