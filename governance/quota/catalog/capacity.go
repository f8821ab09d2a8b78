package catalog

import (
	"regexp"

	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
)

// Labels that NVIDIA's GPU operator writes.
const (
	productLabel  = "nvidia.com/gpu.product"
	memoryLabel   = "nvidia.com/gpu.memory" // MiB of one GPU
	migLabel      = "nvidia.com/mig.config"
	migStateLabel = "nvidia.com/mig.config.state"
)

// partitionPrefix is the prefix of the resources of MIG profiles.
const partitionPrefix = "nvidia.com/mig-"

// zeroResources returns the resources that every ClusterQueue covers, at 0.
func zeroResources() map[string]resources.Amount {
	return map[string]resources.Amount{CPU: 0, Memory: 0, GPU: 0, Neuron: 0, Network: 0}
}

// PartitionProfile matches the names of MIG profiles in resources of NVIDIA's device plugin,
// such as mig-1g.24gb.me.all, and NVIDIA's own with a plus. The group has the slices.
var PartitionProfile = regexp.MustCompile(`^mig-([1-7])g[.][0-9]{1,4}gb([+.-][a-z]{1,9}([.][a-z]{1,9})?)?$`)

// addCapacity adds the resources of a node: nominal, and those that can be used
// now. status.capacity lists the devices that work: a missing device cannot be
// used, while CPU and memory are nominal. No instance type has nominal
// partitions, so only the reported ones count.
func (m *poolNodes) addCapacity(node *corev1.Node, instance Instance) {
	schedulable := Schedulable(node)
	for name, has := range nodeResources(node, instance) {
		m.physical[name] = m.physical[name].Plus(has.Nominal)
		if schedulable {
			m.ready[name] = m.ready[name].Plus(has.Reported)
		}
	}
}

// NodeResource is the amount of one resource of a node: nominal, and as reported
// by the node, which is at most nominal.
type NodeResource struct{ Nominal, Reported resources.Amount }

// NodeResources returns the resources of a node by Kubernetes resource: cpu in
// millicores, memory in bytes.
func (c Catalog) NodeResources(node *corev1.Node) map[string]NodeResource {
	instance, typed := c.figures(node.Labels[c.label])
	if !typed {
		instance = reported(node)
	}
	return nodeResources(node, instance)
}

func nodeResources(node *corev1.Node, instance Instance) map[string]NodeResource {
	all := map[string]NodeResource{CPU: {instance.MilliCPU, instance.MilliCPU}, Memory: {instance.Memory, instance.Memory}}
	device := func(name string, nominal resources.Amount) {
		if name != "" {
			all[name] = NodeResource{nominal, min(nominal, figure(node.Status.Capacity, name))}
		}
	}
	device(instance.AcceleratorResource, instance.Accelerators)
	device(Network, instance.NetworkDevices)
	for name := range node.Status.Capacity {
		if IsPartition(string(name)) {
			n := figure(node.Status.Capacity, string(name))
			all[string(name)] = NodeResource{n, n}
		}
	}
	for _, r := range resources.AllListed() {
		if _, has := node.Status.Allocatable[corev1.ResourceName(r.Name)]; has && all[r.Name] == (NodeResource{}) {
			n := figure(node.Status.Allocatable, r.Name) // what of it the system reserves, no task can have
			all[r.Name] = NodeResource{n, n}
		}
	}
	return all
}

// Schedulable reports whether tasks can be scheduled to a node: it is ready, not cordoned, and
// its MIG configuration is applied. Until then the node reports partitions that
// are about to be removed.
func Schedulable(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	if mig := node.Labels[migLabel]; mig != "" && mig != "all-disabled" && node.Labels[migStateLabel] != "success" {
		return false
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// figure returns one resource of a list: cpu in millicores, memory in bytes,
// everything else in units.
func figure(list corev1.ResourceList, name string) resources.Amount {
	return resources.AmountFromQuantity(name, list[corev1.ResourceName(name)])
}

// plus adds the resources of two instances. Model and memory of the accelerators
// are kept only if both have the same.
func (i Instance) plus(other Instance) Instance {
	i.MilliCPU = i.MilliCPU.Plus(other.MilliCPU)
	i.Memory = i.Memory.Plus(other.Memory)
	i.NetworkDevices = i.NetworkDevices.Plus(other.NetworkDevices)
	i.Partitions = append(i.Partitions, other.Partitions...)
	switch {
	case other.Accelerators == 0:
		return i
	case i.Accelerators == 0:
		i.AcceleratorResource, i.AcceleratorModel, i.AcceleratorMemory = other.AcceleratorResource, other.AcceleratorModel, other.AcceleratorMemory
	case i.AcceleratorModel != other.AcceleratorModel:
		i.AcceleratorModel = ""
	}
	if i.AcceleratorMemory != other.AcceleratorMemory {
		i.AcceleratorMemory = 0
	}
	i.Accelerators = i.Accelerators.Plus(other.Accelerators)
	return i
}
