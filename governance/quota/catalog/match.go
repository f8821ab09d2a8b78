package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/agnivade/levenshtein"
	corev1 "k8s.io/api/core/v1"
)

// PoolOf returns the pool of a node: the first pool of the policy that matches
// it, or else the pool of its instance type. It is empty for a node that no pool
// matches and that has no type.
func (c Catalog) PoolOf(node *corev1.Node) string {
	instanceType := node.Labels[c.label]
	for i := range c.policy {
		if c.matches(&c.policy[i].Match, instanceType, node) {
			return c.policy[i].Name
		}
	}
	if instanceType == "" {
		return ""
	}
	return poolName(instanceType)
}

// Label returns the desired value of PoolLabel on a node; empty if the instance
// type alone determines the pool.
func (c Catalog) Label(node *corev1.Node) string {
	name := c.PoolOf(node)
	if _, named := c.Named(name); named || len(c.spread[node.Labels[c.label]]) > 1 {
		return name
	}
	return ""
}

// Clashes returns why a pool of the policy is invalid; empty if it is valid. The
// catalog leaves out invalid pools.
func (c Catalog) Clashes(p v1alpha1.Pool) string {
	_, known := c.figures(p.Name)
	if known {
		return fmt.Sprintf("%s is an instance type; give the pool another name", p.Name)
	}
	for instanceType := range c.types {
		if poolName(instanceType) == p.Name {
			return fmt.Sprintf("%s is the name of the pool of instance type %s; give this pool another name", p.Name, instanceType)
		}
	}
	if _, circular := p.Match.NodeLabels[PoolLabel]; circular {
		return fmt.Sprintf("Kuota sets label %s; match nodes by another label", PoolLabel)
	}
	return ""
}

// wouldMatch returns the pool of the policy that matches a type without its
// nodes; empty for none.
func (c Catalog) wouldMatch(instanceType string) string {
	for i := range c.policy {
		if c.matches(&c.policy[i].Match, instanceType, nil) {
			return c.policy[i].Name
		}
	}
	return ""
}

// matches reports whether a pool matches a node or, if node is nil, any node of
// the type.
func (c Catalog) matches(m *v1alpha1.PoolMatch, instanceType string, node *corev1.Node) bool {
	switch {
	case len(m.NodeLabels) > 0:
		return node != nil && hasLabels(node, m.NodeLabels)
	case m.Accelerator != "":
		return c.hasModel(m.Accelerator, instanceType, node)
	case m.InstanceFamily != "":
		return family(instanceType) == m.InstanceFamily
	}
	return instanceType != "" && slices.Contains(m.InstanceTypes, instanceType)
}

func hasLabels(node *corev1.Node, labels map[string]string) bool {
	for key, value := range labels {
		if got, ok := node.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// hasModel compares an accelerator model with that of the table. For a type
// outside the table it searches the words of the product label of the node, such
// as NVIDIA-H100-80GB-HBM3; a node without the label has the model of other
// nodes of its type.
func (c Catalog) hasModel(model, instanceType string, node *corev1.Node) bool {
	model = words(model)
	if instance, ok := Known(instanceType); ok {
		return words(instance.AcceleratorModel) == model
	}
	product := c.types[instanceType].AcceleratorModel
	if node != nil && node.Labels[productLabel] != "" {
		product = node.Labels[productLabel]
	}
	return strings.Contains("-"+words(product)+"-", "-"+model+"-")
}

func words(model string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(model)), " ", "-")
}

// family returns the part of an instance type before its size.
func family(instanceType string) string {
	return instanceType[:max(0, strings.LastIndexByte(instanceType, '.'))]
}

// SimilarTypes returns up to three instance types, of nodes and of the table,
// that a mistyped one may mean: types at an edit distance of one, then types
// that nodes have, then the table; the most similar first in each group.
func (c Catalog) SimilarTypes(mistyped string) []string {
	if len(mistyped) > 63 { // no type has such a name, and distance costs length squared
		return nil
	}
	names := KnownTypes()
	for name := range c.types {
		if _, ok := Known(name); !ok {
			names = append(names, name)
		}
	}
	mistyped = strings.ToLower(mistyped)
	type candidate struct {
		name           string
		rank, distance int
	}
	var near []candidate
	for _, name := range names {
		distance := levenshtein.ComputeDistance(mistyped, strings.ToLower(name))
		rank := 2
		switch {
		case distance <= 1:
			rank = 0
		case len(c.spread[name]) > 0:
			rank = 1
		}
		instance, _ := c.figures(name)
		model := strings.ToLower(instance.AcceleratorModel)
		switch {
		case len(mistyped) >= 4 && strings.HasPrefix(strings.ToLower(name), mistyped):
			distance = 1 // "ml.p5" matches every size of p5
		case model != "" && mistyped == model:
			distance = 1 // "h100" matches the types that have it
		}
		if distance <= 4 {
			near = append(near, candidate{name, rank, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var found []string
	for _, n := range near[:min(3, len(near))] {
		found = append(found, n.name)
	}
	return found
}
