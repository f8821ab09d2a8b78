package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PoolLabel is the node label that names the pool of a node if its instance type
// does not determine it.
const PoolLabel = "kuota.dev/pool"

// Pool is a group of nodes that share quota: the nodes of one ResourceFlavor.
type Pool struct {
	Name string // also that of its ResourceFlavor; for the pool of a type, the type if that is a valid name

	// Instance has the figures that shares refer to: those of one instance if all
	// nodes have one type, else the sum of its nodes. A named pool without nodes has
	// the sum of one instance of each of its types.
	Instance Instance
	Types    []string // of its nodes, sorted; without nodes, the types that it would match
	Grouped  bool     // Instance is a sum over several types or over nodes without a type, so the pool has no whole instance
	Named    bool     // from the cluster policy
	Split    bool     // its only type has nodes in other pools too
	Nodes    int64    // ready or not

	// NodeLabels are the labels that the policy matches its nodes by; nil if it
	// matches them by something else.
	NodeLabels map[string]string

	// Mixed lists the resources of its accelerators if there are several, such as
	// GPUs and Neuron devices. They have no sum, so Instance has none then.
	Mixed []string

	// Physical are the nominal resources of its nodes, ready or not, by Kubernetes
	// resource: cpu in millicores, memory in bytes. Partitions count as nodes report
	// them. Ready are those of schedulable nodes: see Schedulable.
	Physical, Ready map[string]resources.Amount
}

// Selects returns the node labels of the ResourceFlavor of the pool.
func (p Pool) Selects(instanceTypeLabel string) map[string]string {
	if p.Grouped || len(p.Types) != 1 {
		return map[string]string{PoolLabel: p.Name}
	}
	labels := map[string]string{instanceTypeLabel: p.Types[0]}
	if p.Split {
		labels[PoolLabel] = p.Name
	}
	return labels
}

// poolNodes accumulates the nodes of one pool.
type poolNodes struct {
	nodes           int64
	types           map[string]Instance
	untyped         bool // some nodes have no type: their reported capacity counts
	sum             Instance
	accelerators    map[string]bool // resource names of accelerators
	physical, ready map[string]resources.Amount
}

func newPoolNodes() *poolNodes {
	return &poolNodes{types: map[string]Instance{}, accelerators: map[string]bool{}, physical: zeroResources(), ready: zeroResources()}
}

func (m *poolNodes) add(node *corev1.Node, instance Instance) {
	m.nodes++
	m.count(instance)
	m.addCapacity(node, instance)
}

// count adds the figures of one instance.
func (m *poolNodes) count(instance Instance) {
	if instance.Type == "" {
		m.untyped = true
	} else {
		m.types[instance.Type] = instance
	}
	if instance.AcceleratorResource != "" {
		m.accelerators[instance.AcceleratorResource] = true
	}
	m.sum = m.sum.plus(instance)
}

// pool returns the pool of the nodes.
func (m *poolNodes) pool(name string) Pool {
	p := Pool{
		Name: name, Nodes: m.nodes, Physical: m.physical, Ready: m.ready,
		Types:    slices.Sorted(maps.Keys(m.types)),
		Grouped:  len(m.types) > 1 || m.untyped,
		Instance: m.sum,
	}
	if !p.Grouped && len(p.Types) == 1 {
		p.Instance = m.types[p.Types[0]]
		return p
	}
	p.Instance.Type = name
	slices.Sort(p.Instance.Partitions)
	p.Instance.Partitions = slices.Compact(p.Instance.Partitions)
	if len(m.accelerators) > 1 {
		p.Mixed = slices.Sorted(maps.Keys(m.accelerators))
		p.Instance.Accelerators, p.Instance.AcceleratorResource = 0, ""
		p.Instance.AcceleratorModel, p.Instance.AcceleratorMemory, p.Instance.Partitions = "", 0, nil
	}
	return p
}

// withoutNodes returns a named pool that has no nodes.
func (c Catalog) withoutNodes(name string) Pool {
	m := newPoolNodes()
	for _, instanceType := range append(KnownTypes(), slices.Sorted(maps.Keys(c.types))...) {
		if _, seen := m.types[instanceType]; !seen && c.wouldMatch(instanceType) == name {
			instance, _ := c.figures(instanceType)
			m.count(instance)
		}
	}
	pool := m.pool(name)
	pool.Named = true
	return pool
}

// empty returns the pool of a type that has no nodes.
func (c Catalog) empty(instanceType string) Pool {
	instance, _ := c.figures(instanceType)
	return c.split(Pool{Name: poolName(instanceType), Instance: instance, Types: []string{instanceType}, Physical: zeroResources(), Ready: zeroResources()})
}

// split marks a pool whose type has nodes in other pools: its flavor must not
// select those.
func (c Catalog) split(p Pool) Pool {
	if !p.Grouped && len(p.Types) == 1 {
		in := c.spread[p.Types[0]]
		p.Split = len(in) > 1 || len(in) == 1 && in[p.Name] == 0
	}
	return p
}

// poolName returns the name of the pool of an instance type. Some clouds have
// types that are no Kubernetes names, such as Standard_ND96asr_v4: their names
// are lower-cased, with hyphens, and a digest keeps them distinct. Every name
// fits into a label.
func poolName(instanceType string) string {
	if _, ok := Known(instanceType); ok || len(validation.IsDNS1123Subdomain(instanceType)) == 0 {
		return instanceType
	}
	legal := illegal.ReplaceAllString(strings.ToLower(instanceType), "-")
	legal = strings.Trim(legal[:min(len(legal), 56)], "-")
	sum := sha256.Sum256([]byte(instanceType))
	return strings.TrimPrefix(legal+"-"+hex.EncodeToString(sum[:3]), "-")
}

var illegal = regexp.MustCompile(`[^a-z0-9]+`)
