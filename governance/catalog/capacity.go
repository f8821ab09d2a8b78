package catalog

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels that NVIDIA's GPU operator writes.
const (
	productLabel  = "nvidia.com/gpu.product"
	migLabel      = "nvidia.com/mig.config"
	migStateLabel = "nvidia.com/mig.config.state"
)

// partitionPrefix begins the resource of every MIG profile.
const partitionPrefix = "nvidia.com/mig-"

// most is the largest figure that is counted. No cluster has it, and seven
// times as much still is a number.
const maxFigure int64 = 1 << 59

// nothing has each resource that every queue covers, at 0.
func zeroResources() map[string]int64 {
	return map[string]int64{CPU: 0, Memory: 0, GPU: 0, Neuron: 0, Network: 0}
}

// addCapacity counts what a node has nominally, and what of it can be lent now.
// The node reports what it has in status.capacity: a device that is missing
// there cannot be lent, while CPU and memory are nominal. Partitions are no
// nominal figure of any type, so only the report counts.
func (m *poolNodes) addCapacity(node *corev1.Node, instance Instance) {
	lends := Schedulable(node)
	for name, has := range nodeResources(node, instance) {
		m.there[name] = plus(m.there[name], has.Nominal)
		if lends {
			m.ready[name] = plus(m.ready[name], has.Reported)
		}
	}
}

// Has is what a node has of one resource: nominally, and of that what it reports.
type NodeResource struct{ Nominal, Reported int64 }

// Has is what a node has, by Kubernetes resource: cpu in thousandths, memory in
// bytes.
func (c Catalog) NodeResources(node *corev1.Node) map[string]NodeResource {
	instance, typed := c.figures(node.Labels[c.label])
	if !typed {
		instance = reported(node)
	}
	return nodeResources(node, instance)
}

func nodeResources(node *corev1.Node, instance Instance) map[string]NodeResource {
	all := map[string]NodeResource{CPU: {instance.MilliCPU, instance.MilliCPU}, Memory: {instance.Memory, instance.Memory}}
	device := func(name string, nominal int64) {
		if name != "" {
			all[name] = NodeResource{nominal, min(nominal, figure(node.Status.Capacity, name))}
		}
	}
	device(instance.AcceleratorResource, instance.Accelerators)
	device(Network, instance.NetworkDevices)
	for name := range node.Status.Capacity {
		if strings.HasPrefix(string(name), partitionPrefix) {
			n := figure(node.Status.Capacity, string(name))
			all[string(name)] = NodeResource{n, n}
		}
	}
	return all
}

// TakesTasks tells whether a node takes tasks now: it is Ready, not cordoned, and its
// accelerators are cut as its label asks. While MIG is set up the node reports
// partitions that are about to go.
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

// figure is one resource of a list: cpu in thousandths, memory in bytes,
// everything else in pieces; never below 0, never above most.
func figure(list corev1.ResourceList, name string) int64 {
	q, ok := list[corev1.ResourceName(name)]
	if !ok {
		return 0
	}
	if name == CPU {
		return max(0, min(q.MilliValue(), maxFigure))
	}
	return max(0, min(q.Value(), maxFigure))
}

// plus adds two figures.
func plus(a, b int64) int64 { return min(a+b, maxFigure) }

// plus adds the figures of two instances. What they are called stays only
// where both agree.
func (i Instance) plus(other Instance) Instance {
	i.MilliCPU = plus(i.MilliCPU, other.MilliCPU)
	i.Memory = plus(i.Memory, other.Memory)
	i.NetworkDevices = plus(i.NetworkDevices, other.NetworkDevices)
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
	i.Accelerators = plus(i.Accelerators, other.Accelerators)
	return i
}
