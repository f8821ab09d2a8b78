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

// PoolLabel is the node label that names the pool of a node, where its
// instance type does not tell.
const PoolLabel = "kuota.dev/pool"

// Pool is a group of nodes that quota is given in.
type Pool struct {
	Name string // also the name of its ResourceFlavor; of a type's own pool, the type's wherever that can name an object

	// Instance has the figures that shares are taken of: one instance's where
	// all nodes are of one type, else sums over its nodes. A named pool without
	// nodes has those of one instance of each of its types.
	Instance Instance
	Types    []string // of its nodes, sorted; without nodes, those that it would hold
	Grouped  bool     // the figures are sums over several types, or over nodes without a type: there is no whole instance of it
	Named    bool     // from the cluster policy
	Split    bool     // its one type has nodes in other pools too
	Nodes    int64    // how many it has now, ready or not

	// Mixed lists the resources of its accelerators where there are several,
	// such as GPUs and Neuron devices. They cannot be summed, so Instance has
	// none then.
	Mixed []string

	// There is what its nodes have nominally, ready or not, by Kubernetes
	// resource: cpu in thousandths, memory in bytes. Partitions count as nodes
	// report them. Ready is what can be lent of it now: see TakesTasks.
	Physical, Ready map[string]int64
}

// Selects are the node labels that the pool's ResourceFlavor asks for.
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

// members gathers the nodes of one pool.
type poolNodes struct {
	nodes        int64
	types        map[string]Instance
	untyped      bool // some nodes have no type, and count for what they report
	sum          Instance
	accelerators map[string]bool // resources that accelerators have
	there, ready map[string]int64
}

func newPoolNodes() *poolNodes {
	return &poolNodes{types: map[string]Instance{}, accelerators: map[string]bool{}, there: zeroResources(), ready: zeroResources()}
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

// pool is what the nodes come to.
func (m *poolNodes) pool(name string) Pool {
	p := Pool{
		Name: name, Nodes: m.nodes, Physical: m.there, Ready: m.ready,
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

// withoutNodes is a named pool that no node is in.
func (c Catalog) withoutNodes(name string) Pool {
	m := newPoolNodes()
	for _, instanceType := range append(KnownTypes(), slices.Sorted(maps.Keys(c.types))...) {
		if _, seen := m.types[instanceType]; !seen && c.wouldHold(instanceType) == name {
			instance, _ := c.figures(instanceType)
			m.count(instance)
		}
	}
	pool := m.pool(name)
	pool.Named = true
	return pool
}

// empty is the own pool of a type while no node is in it.
func (c Catalog) empty(instanceType string) Pool {
	instance, _ := c.figures(instanceType)
	return c.split(Pool{Name: poolName(instanceType), Instance: instance, Types: []string{instanceType}, Physical: zeroResources(), Ready: zeroResources()})
}

// split marks a pool whose type has nodes elsewhere: its flavor must not
// select those.
func (c Catalog) split(p Pool) Pool {
	if !p.Grouped && len(p.Types) == 1 {
		in := c.spread[p.Types[0]]
		p.Split = len(in) > 1 || len(in) == 1 && in[p.Name] == 0
	}
	return p
}

// poolName makes a name of an instance type. Some clouds write types as no
// Kubernetes object may be called, such as Standard_ND96asr_v4: those are put
// into lower case with hyphens, and a digest keeps them apart. A name fits
// into a label.
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
