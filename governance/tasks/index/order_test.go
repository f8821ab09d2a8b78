package index

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/tasks"
)

// An order has the tasks that were put and not removed, sorted, whatever came between two
// reads, also with equal keys.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	compare := func(a, b *tasks.Task) int { return cmp.Compare(a.Priority, b.Priority) }
	o, is := newOrder(compare), map[*tasks.Task]bool{}
	for range 500 {
		for range random.IntN(20) {
			if all := slices.Collect(maps.Keys(is)); len(all) > 0 && random.IntN(2) == 0 {
				one := all[random.IntN(len(all))]
				o.remove(one)
				delete(is, one)
			} else {
				one := &tasks.Task{Priority: random.Int32N(10), UID: string(rune('a' + random.IntN(26)))}
				o.put(one)
				is[one] = true
			}
		}
		list := o.list()
		if !slices.IsSortedFunc(list, compare) || len(list) != len(is) || slices.ContainsFunc(list, func(one *tasks.Task) bool { return !is[one] }) {
			t.Fatalf("got %d tasks, want %d, sorted", len(list), len(is))
		}
		if o.empty() != (len(is) == 0) {
			t.Fatalf("empty: got %t with %d tasks", o.empty(), len(is))
		}
	}
}
