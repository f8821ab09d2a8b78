package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
)

// acceleratorResources are the accelerators that no policy has to list. The list needs no new
// hardware.
var acceleratorResources = []string{GPU, Neuron, "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "gpu.intel.com/i915"}

// Reported returns the instance types outside the table, sorted, each with the
// largest figures that a node of it reports now or that kept has: a node that
// reports less has a defect or a reservation. Kept figures never shrink, and
// stay after the last node of a type is deleted.
func Reported(nodes []corev1.Node, label string, kept []v1alpha1.ReportedType) []v1alpha1.ReportedType {
	largest := map[string]map[string]resources.Amount{}
	consider := func(instanceType string, capacity corev1.ResourceList) {
		if _, known := Known(instanceType); known || instanceType == "" {
			return
		}
		if largest[instanceType] == nil {
			largest[instanceType] = map[string]resources.Amount{}
		}
		for name := range capacity {
			if n := figure(capacity, string(name)); IsQuotaResource(string(name)) && n > 0 {
				largest[instanceType][string(name)] = max(n, largest[instanceType][string(name)])
			}
		}
	}
	for i := range kept {
		consider(kept[i].InstanceType, kept[i].Capacity)
	}
	for i := range nodes {
		consider(nodes[i].Labels[label], nodes[i].Status.Capacity)
	}
	var types []v1alpha1.ReportedType
	for _, instanceType := range slices.Sorted(maps.Keys(largest)) {
		capacity := corev1.ResourceList{}
		for name, n := range largest[instanceType] {
			capacity[corev1.ResourceName(name)] = n.Quantity(name)
		}
		types = append(types, v1alpha1.ReportedType{InstanceType: instanceType, Capacity: capacity})
	}
	return types
}

// instanceTypes returns the figures of all types that nodes have or had.
func instanceTypes(in Input) map[string]Instance {
	types := map[string]Instance{}
	for _, r := range Reported(in.Nodes, in.InstanceTypeLabel, in.ReportedTypes) {
		types[r.InstanceType] = instanceOf(r.InstanceType, r.Capacity)
	}
	for i := range in.Nodes {
		instanceType := in.Nodes[i].Labels[in.InstanceTypeLabel]
		if table, ok := Known(instanceType); ok {
			if _, found := types[instanceType]; !found {
				types[instanceType] = table
			}
			types[instanceType] = types[instanceType].withPartitions(in.Nodes[i].Status.Capacity)
			continue
		}
		// The order of nodes is arbitrary: of several models the first by name counts,
		// and of several sizes of memory the smallest.
		if instanceType == "" {
			continue
		}
		instance, model := types[instanceType], in.Nodes[i].Labels[productLabel]
		if model != "" && (instance.AcceleratorModel == "" || model < instance.AcceleratorModel) {
			instance.AcceleratorModel = model
		}
		if memory := labeledMemory(&in.Nodes[i]); memory > 0 && (instance.AcceleratorMemory == 0 || memory < instance.AcceleratorMemory) {
			instance.AcceleratorMemory = memory
		}
		types[instanceType] = instance
	}
	return types
}

// reported returns the figures of a node without an instance type: its own,
// because no other node is known to be equal.
func reported(node *corev1.Node) Instance {
	instance := instanceOf("", node.Status.Capacity)
	instance.AcceleratorModel, instance.AcceleratorMemory = node.Labels[productLabel], labeledMemory(node)
	return instance
}

// labeledMemory returns the memory of one GPU of a node by its label, in GB as vendors
// count, which are GiB and some of which a GPU keeps for itself; 0 without the label.
func labeledMemory(node *corev1.Node) int64 {
	mib, err := strconv.ParseInt(node.Labels[memoryLabel], 10, 64)
	if err != nil || mib < 0 {
		return 0
	}
	return (mib + 512) / 1024
}

func instanceOf(instanceType string, capacity corev1.ResourceList) Instance {
	instance := Instance{
		Type:           instanceType,
		MilliCPU:       figure(capacity, CPU),
		Memory:         figure(capacity, Memory),
		NetworkDevices: figure(capacity, Network),
	}
	for _, name := range accelerators() {
		if n := figure(capacity, name); n > 0 {
			instance.Accelerators, instance.AcceleratorResource = n, name
			break
		}
	}
	return instance.withPartitions(capacity)
}

// withPartitions returns an instance with the profiles of the partitions that a node has
// too: what nodes report wins over the table.
func (i Instance) withPartitions(capacity corev1.ResourceList) Instance {
	var found []string
	for name := range capacity {
		if profile := strings.TrimPrefix(string(name), "nvidia.com/"); strings.HasPrefix(string(name), partitionPrefix) && figure(capacity, string(name)) > 0 && !slices.Contains(i.Partitions, profile) {
			found = append(found, profile)
		}
	}
	if len(found) > 0 {
		slices.Sort(found)
		i.Partitions = slices.Concat(i.Partitions, found) // of the table first
	}
	return i
}
