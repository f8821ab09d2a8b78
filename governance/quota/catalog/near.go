package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

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
