package catalog

import (
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
)

// InstanceTypeLabel is the default node label of the instance type.
const InstanceTypeLabel = "node.kubernetes.io/instance-type"

// Input is everything that a catalog is computed from.
type Input struct {
	Nodes             []corev1.Node
	InstanceTypeLabel string
	Pools             []v1alpha1.Pool         // the applied pools of the policy
	ReportedTypes     []v1alpha1.ReportedType // largest capacity ever reported for types outside the table
}

// Catalog is the instance types and pools of the cluster at one moment. It is
// immutable. The zero value has no nodes and no policy, but the table of
// instance types.
type Catalog struct {
	in     Input // kept for With
	label  string
	policy []v1alpha1.Pool             // the valid pools of the policy: see Clashes
	types  map[string]Instance         // figures of the types that nodes have or had
	spread map[string]map[string]int64 // nodes of a type by pool
	pools  map[string]Pool             // with nodes, or named, by name
}

// New computes the catalog. A type in the table has the figures of the table,
// always; any other type has the largest figures that one of its nodes ever
// reported.
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
	for _, p := range c.policy {
		pool := c.pools[p.Name]
		pool.NodeLabels = p.Match.NodeLabels
		c.pools[p.Name] = pool
	}
	return c
}

// Pool returns the pool of a quota row that names an instance type: the pool
// that all its nodes are in or, if they are in several, the pool of the type
// itself. A type without nodes belongs to the named pool that would match it, or
// else is a pool without nodes.
func (c Catalog) Pool(instanceType string) (Pool, bool) {
	switch in := c.spread[instanceType]; len(in) {
	case 0:
		if _, known := c.figures(instanceType); !known {
			return Pool{}, false
		}
		if named := c.wouldMatch(instanceType); named != "" {
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

// Ambiguous returns the pools, by name, of an instance type whose nodes are in
// several pools and none in a pool of its own, so that a row that names the type
// could mean any of them. It is empty for every other type.
func (c Catalog) Ambiguous(instanceType string) []string {
	in := c.spread[instanceType]
	if len(in) < 2 || in[poolName(instanceType)] > 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(in))
}

// Named returns a pool of the cluster policy.
func (c Catalog) Named(pool string) (Pool, bool) {
	found, ok := c.pools[pool]
	return found, ok && found.Named
}

// Find returns any pool by name, with or without nodes.
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

// Pools returns the pools that have nodes or are named, sorted by name.
func (c Catalog) Pools() []Pool {
	return slices.SortedFunc(maps.Values(c.pools), func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
}

// figures returns the resources of one instance of a type.
func (c Catalog) figures(instanceType string) (Instance, bool) {
	if instance, ok := c.types[instanceType]; ok {
		return instance, true // with the partitions that its nodes report
	}
	return Known(instanceType)
}

// With returns the catalog with more pools in the policy, for forms that create
// pools when they are saved.
func (c Catalog) With(pools ...v1alpha1.Pool) Catalog {
	if len(pools) == 0 {
		return c
	}
	in := c.in
	in.Pools = slices.Concat(in.Pools, pools)
	return New(in)
}

// OnNodes reports whether nodes limit the quota of a resource, because some report it or did.
// No node reports what only Kueue counts, such as licenses and devices by their classes.
func (c Catalog) OnNodes(resource string) bool {
	if BuiltIn(resource) {
		return true
	}
	for _, instance := range c.types {
		if instance.AcceleratorResource == resource {
			return true
		}
	}
	for _, pool := range c.pools {
		if _, ok := pool.Physical[resource]; ok {
			return true
		}
	}
	return false
}

// Unlisted returns the resources that nodes report and quota does not cover, sorted.
func (c Catalog) Unlisted() []string {
	found := map[string]bool{}
	for i := range c.in.Nodes {
		for name := range c.in.Nodes[i].Status.Allocatable {
			if !IsQuotaResource(string(name)) {
				found[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// QuotaResources returns the resources that quota covers, without partitions.
func QuotaResources() []string {
	names := append([]string{CPU, Memory, Network}, acceleratorResources...)
	for _, r := range resources.AllListed() {
		names = append(names, r.Name)
	}
	return names
}
