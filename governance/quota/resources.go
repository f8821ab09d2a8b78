package quota

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"kuota.dev/kuota/governance/catalog"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are amounts by Kubernetes resource name: cpu in thousandths,
// memory in bytes, everything else in pieces.
type Resources map[string]int64

// standard is the order of what every ClusterQueue covers, first.
var standard = []string{catalog.GPU, catalog.Neuron, catalog.CPU, catalog.Memory, catalog.Network}

// Compare orders resource names: those that every queue covers first, in
// their fixed order, then the others by name.
func Compare(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(standard, name); i >= 0 {
			return i
		}
		return len(standard)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Names lists the resources of r in the order of Compare.
func (r Resources) Names() []string {
	return slices.SortedFunc(maps.Keys(r), Compare)
}

// Quantity is the amount of one resource as Kubernetes writes it, in
// canonical form.
func (r Resources) Quantity(name string) resource.Quantity {
	return ResourceQuantity(name, r[name])
}

// Quantity writes an amount of a resource, in the unit of Resources, as
// Kubernetes does, in canonical form.
func ResourceQuantity(name string, amount int64) resource.Quantity {
	switch name {
	case catalog.CPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case catalog.Memory:
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

// InUnit is a quantity in the unit of Resources: the reverse of Quantity.
func ResourceValue(name string, q resource.Quantity) int64 {
	if name == catalog.CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Add adds other to r.
func (r Resources) Add(other Resources) {
	for name, amount := range other {
		r[name] = addCapped(r[name], amount)
	}
}

// Times is n whole instances' worth of r. ok is false when an amount is larger
// than Kubernetes can count.
func (r Resources) Times(n int64) (product Resources, ok bool) {
	product = make(Resources, len(r))
	for name, amount := range r {
		if product[name], ok = mulDiv(amount, n, 1); !ok {
			return nil, false
		}
	}
	return product, true
}

// percent is r × p / 100, each amount rounded down: memory to whole MiB where
// r is in whole MiB, everything else to its unit.
func (r Resources) percent(p int64) (limit Resources, ok bool) {
	limit = make(Resources, len(r))
	for name, amount := range r {
		if limit[name], ok = mulDiv(amount, p, 100); !ok {
			return nil, false
		}
		if name == catalog.Memory && amount%catalog.MiB == 0 {
			limit[name] -= limit[name] % catalog.MiB
		}
	}
	return limit, true
}

// mulDiv is a × b / c rounded down, exact in between. ok is false when the
// result is larger than an int64, or c is 0.
func mulDiv(a, b, c int64) (result int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if c <= 0 || high >= uint64(c) {
		return 0, false
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(quotient), quotient <= 1<<63-1
}

// addCapped adds two amounts and stays at the largest int64 instead of
// overflowing: a sum of quotas is shown, never applied.
func addCapped(a, b int64) int64 {
	sum, carry := bits.Add64(uint64(a), uint64(b), 0)
	if carry != 0 || sum > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(sum)
}

// compareProducts compares a × b with c × d exactly. All are 0 or more.
func compareProducts(a, b, c, d int64) int {
	highA, lowA := bits.Mul64(uint64(a), uint64(b))
	highC, lowC := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(highA, highC), cmp.Compare(lowA, lowC))
}
