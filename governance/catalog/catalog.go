package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// InstanceTypeLabel is the node label that names an instance's type, unless
// another is configured.
const InstanceTypeLabel = "node.kubernetes.io/instance-type"

// acceleratorResources are the device resources that an instance outside the
// table is searched for, the first that it reports wins.
var acceleratorResources = []string{GPU, Neuron, "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "gpu.intel.com/i915"}

// Pool is a group of nodes that quota is given in.
type Pool struct {
	Name     string   // also the name of its ResourceFlavor; the type's own wherever that can name an object
	Instance Instance // what one of its instances has, nominally
	Nodes    int64    // how many nodes it has now, ready or not
}

// Catalog is what the cluster is made of at one moment.
type Catalog struct {
	pools map[string]Pool // by instance type
}

// New builds the catalog of the given nodes. A type in the table has the
// table's figures, always; any other has the largest that a node reports.
func New(nodes []corev1.Node, instanceTypeLabel string) Catalog {
	pools := map[string]Pool{}
	for i := range nodes {
		node := &nodes[i]
		instanceType := node.Labels[instanceTypeLabel]
		if instanceType == "" {
			continue
		}
		pool := pools[instanceType]
		pool.Name = poolName(instanceType)
		pool.Nodes++
		if table, ok := Known(instanceType); ok {
			pool.Instance = table
		} else {
			pool.Instance = larger(pool.Instance, reported(node, instanceType))
		}
		pools[instanceType] = pool
	}
	return Catalog{pools: pools}
}

// Pool finds the pool that quota in an instance type belongs to. A type that
// only the table has is a pool without nodes.
func (c Catalog) Pool(instanceType string) (Pool, bool) {
	if pool, ok := c.pools[instanceType]; ok {
		return pool, true
	}
	instance, ok := Known(instanceType)
	return Pool{Name: instanceType, Instance: instance}, ok
}

// poolName makes a name of an instance type. Some clouds write types as no
// Kubernetes object may be called, such as Standard_ND96asr_v4: those are put
// into lower case with hyphens, and a digest keeps them apart.
func poolName(instanceType string) string {
	if len(validation.IsDNS1123Subdomain(instanceType)) == 0 {
		return instanceType
	}
	legal := strings.Trim(illegal.ReplaceAllString(strings.ToLower(instanceType), "-"), "-")
	sum := sha256.Sum256([]byte(instanceType))
	return strings.TrimPrefix(legal+"-"+hex.EncodeToString(sum[:3]), "-")
}

var illegal = regexp.MustCompile(`[^a-z0-9]+`)

// Pools lists the pools that have nodes, by name.
func (c Catalog) Pools() []Pool {
	return slices.SortedFunc(maps.Values(c.pools), func(a, b Pool) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// reported reads the figures of a node that the table does not know.
func reported(node *corev1.Node, instanceType string) Instance {
	instance := Instance{
		Type:     instanceType,
		MilliCPU: node.Status.Capacity.Cpu().MilliValue(),
		Memory:   node.Status.Capacity.Memory().Value(),
	}
	if efa, ok := node.Status.Capacity[Network]; ok {
		instance.NetworkDevices = efa.Value()
	}
	for _, name := range acceleratorResources {
		if n, ok := node.Status.Capacity[corev1.ResourceName(name)]; ok && n.Value() > 0 {
			instance.Accelerators, instance.AcceleratorResource = n.Value(), name
			break
		}
	}
	instance.AcceleratorModel = node.Labels["nvidia.com/gpu.product"]
	return instance
}

// larger takes the larger of each figure: a node that reports less has
// something broken or reserved.
func larger(a, b Instance) Instance {
	if a.Type == "" {
		return b
	}
	a.MilliCPU = max(a.MilliCPU, b.MilliCPU)
	a.Memory = max(a.Memory, b.Memory)
	a.NetworkDevices = max(a.NetworkDevices, b.NetworkDevices)
	if b.Accelerators > a.Accelerators {
		a.Accelerators, a.AcceleratorResource = b.Accelerators, b.AcceleratorResource
	}
	if a.AcceleratorModel == "" {
		a.AcceleratorModel = b.AcceleratorModel
	}
	return a
}
