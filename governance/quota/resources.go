package quota

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are amounts by Kubernetes resource name: cpu in millicores, memory
// in bytes, everything else in units.
type Resources map[string]resources.Amount

// standard are the resources that every ClusterQueue covers, in their order.
var standard = []string{catalog.GPU, catalog.Neuron, catalog.CPU, catalog.Memory, catalog.Network}

// Compare orders resource names: the standard resources in their order, then all
// others by name.
func Compare(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(standard, name); i >= 0 {
			return i
		}
		return len(standard)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Names returns the names of the resources in the order of Compare.
func (r Resources) Names() []string {
	return slices.SortedFunc(maps.Keys(r), Compare)
}

// Accelerator returns the first accelerator of r, in the order of Compare; "" for none.
func (r Resources) Accelerator() (name string, amount resources.Amount) {
	for _, name := range r.Names() {
		if catalog.IsAccelerator(name) && r[name] > 0 {
			return name, r[name]
		}
	}
	return "", 0
}

// Accelerators returns the number of accelerators of all kinds, for orders and comparisons; pages
// never add up kinds. Each partition counts as one.
func (r Resources) Accelerators() (sum resources.Amount) {
	for name, amount := range r {
		if catalog.IsAccelerator(name) {
			sum = sum.Plus(amount)
		}
	}
	return sum
}

// Quantity returns the amount of one resource as a canonical Kubernetes
// quantity.
func (r Resources) Quantity(name string) resource.Quantity {
	return r[name].Quantity(name)
}

// Add adds other to r. Sums saturate.
func (r Resources) Add(other Resources) {
	for name, amount := range other {
		r[name] = r[name].Plus(amount)
	}
}

// Times returns r × n; ok is false on overflow.
func (r Resources) Times(n int64) (product Resources, ok bool) {
	product = make(Resources, len(r))
	for name, amount := range r {
		if product[name] = amount.Times(n); product[name] == resources.Unlimited {
			return nil, false
		}
	}
	return product, true
}

// percent returns r × p / 100. Each amount is rounded down, memory to 1 MiB if r
// is in whole MiB. ok is false on overflow.
func (r Resources) percent(p int64) (limit Resources, ok bool) {
	limit = make(Resources, len(r))
	for name, amount := range r {
		if limit[name], ok = amount.Fraction(resources.Amount(p), 100); !ok {
			return nil, false
		}
		if name == catalog.Memory && amount%catalog.MiB == 0 {
			limit[name] = limit[name].Minus(limit[name] % catalog.MiB)
		}
	}
	return limit, true
}

// compareProducts compares a × b with c × d exactly. None may be negative.
func compareProducts(a, b, c, d resources.Amount) int {
	highA, lowA := bits.Mul64(uint64(a), uint64(b))
	highC, lowC := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(highA, highC), cmp.Compare(lowA, lowC))
}
