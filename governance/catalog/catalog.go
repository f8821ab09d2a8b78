package catalog

import (
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
)

// InstanceTypeLabel is the node label that names an instance's type, unless
// another is configured.
const InstanceTypeLabel = "node.kubernetes.io/instance-type"

// Input is what a catalog is made from.
type Input struct {
	Nodes             []corev1.Node
	InstanceTypeLabel string
	Pools             []v1alpha1.Pool         // the policy's, those in force
	ReportedTypes     []v1alpha1.ReportedType // what nodes of types outside the table once reported
}

// Catalog is what the cluster is made of at one moment. The zero value has no
// nodes and no policy, and still knows the table.
type Catalog struct {
	in     Input // what it was made from
	label  string
	policy []v1alpha1.Pool             // those that can be: see Clashes
	types  map[string]Instance         // the figures of types that nodes have or had
	spread map[string]map[string]int64 // how many nodes of a type are in which pool
	pools  map[string]Pool             // with nodes, or named, by name
}

// New builds the catalog. A type in the table has the table's figures, always;
// any other has the largest that a node of it ever reported.
func New(in Input) Catalog {
	c := Catalog{
		in:     in,
		label:  in.InstanceTypeLabel,
		types:  instanceTypes(in),
		spread: map[string]map[string]int64{},
		pools:  map[string]Pool{},
	}
	for _, p := range in.Pools {
		twice := slices.ContainsFunc(c.policy, func(q v1alpha1.Pool) bool { return q.Name == p.Name })
		if !twice && c.Clashes(p) == "" {
			c.policy = append(c.policy, p)
		}
	}
	members := map[string]*poolNodes{}
	for i := range in.Nodes {
		node := &in.Nodes[i]
		name := c.PoolOf(node)
		if name == "" {
			continue
		}
		if members[name] == nil {
			members[name] = newPoolNodes()
		}
		instanceType := node.Labels[c.label]
		instance, typed := c.figures(instanceType)
		if typed {
			if c.spread[instanceType] == nil {
				c.spread[instanceType] = map[string]int64{}
			}
			c.spread[instanceType][name]++
		} else {
			instance = reported(node)
		}
		members[name].add(node, instance)
	}
	for _, p := range c.policy {
		if members[p.Name] == nil {
			c.pools[p.Name] = c.split(c.withoutNodes(p.Name))
		}
	}
	for name, m := range members {
		pool := m.pool(name)
		pool.Named = slices.ContainsFunc(c.policy, func(p v1alpha1.Pool) bool { return p.Name == name })
		c.pools[name] = c.split(pool)
	}
	return c
}

// Pool finds the pool that a quota row which names an instance type belongs
// to: the one that all its nodes are in; where they are in several, the type's
// own. A type that no node has belongs to the named pool that would hold it,
// or else is a pool without nodes.
func (c Catalog) Pool(instanceType string) (Pool, bool) {
	switch in := c.spread[instanceType]; len(in) {
	case 0:
		if _, known := c.figures(instanceType); !known {
			return Pool{}, false
		}
		if named := c.wouldHold(instanceType); named != "" {
			return c.pools[named], true
		}
		return c.empty(instanceType), true
	case 1:
		for name := range in {
			return c.pools[name], true
		}
	}
	own := poolName(instanceType)
	pool, ok := c.pools[own]
	return pool, ok && c.spread[instanceType][own] > 0
}

// Ambiguous lists the pools, by name, that an instance type without a pool of
// its own is split over: a row that names the type could mean any of them. It
// is empty for every other type.
func (c Catalog) Ambiguous(instanceType string) []string {
	in := c.spread[instanceType]
	if len(in) < 2 || in[poolName(instanceType)] > 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(in))
}

// Named finds a pool of the cluster policy.
func (c Catalog) Named(pool string) (Pool, bool) {
	found, ok := c.pools[pool]
	return found, ok && found.Named
}

// Find finds any pool by its name, with or without nodes.
func (c Catalog) Find(pool string) (Pool, bool) {
	if found, ok := c.pools[pool]; ok {
		return found, true
	}
	if _, ok := Known(pool); ok {
		return c.empty(pool), true
	}
	for instanceType := range c.types {
		if poolName(instanceType) == pool {
			return c.empty(instanceType), true
		}
	}
	return Pool{}, false
}

// Pools lists the pools that have nodes or are named, by name.
func (c Catalog) Pools() []Pool {
	return slices.SortedFunc(maps.Values(c.pools), func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
}

// figures are what one instance of a type has.
func (c Catalog) figures(instanceType string) (Instance, bool) {
	if instance, ok := Known(instanceType); ok {
		return instance, true
	}
	instance, ok := c.types[instanceType]
	return instance, ok
}
