package submit

import (
	"cmp"
	"slices"

	"kuota.dev/kuota/governance/quota"
)

// LargestNode returns the node that fits a pod best: it lacks the fewest resources, and
// has the most of those that the pod requests. It returns nil without nodes.
func LargestNode(nodes []quota.Resources, each quota.Resources) quota.Resources {
	if len(nodes) == 0 {
		return nil
	}
	lacks := func(node quota.Resources) (n int) {
		for name, amount := range each {
			if amount > node[name] {
				n++
			}
		}
		return n
	}
	return slices.MinFunc(nodes, func(a, b quota.Resources) int {
		if c := cmp.Compare(lacks(a), lacks(b)); c != 0 {
			return c
		}
		for _, name := range each.Names() { // accelerators first
			if c := cmp.Compare(b[name], a[name]); c != 0 {
				return c
			}
		}
		return 0
	})
}
