package quota

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"kuota.dev/kuota/governance/catalog"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are amounts by Kubernetes resource name: cpu in millicores, memory
// in bytes, everything else in units.
type Resources map[string]int64

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
func (r Resources) Accelerator() (name string, amount int64) {
	for _, name := range r.Names() {
		if catalog.IsAccelerator(name) && r[name] > 0 {
			return name, r[name]
		}
	}
	return "", 0
}

// Quantity returns the amount of one resource as a canonical Kubernetes
// quantity.
func (r Resources) Quantity(name string) resource.Quantity {
	return ResourceQuantity(name, r[name])
}

// ResourceQuantity returns an amount in the unit of Resources as a canonical
// Kubernetes quantity.
func ResourceQuantity(name string, amount int64) resource.Quantity {
	switch name {
	case catalog.CPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case catalog.Memory:
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

// ResourceValue returns a quantity in the unit of Resources. It reverses
// ResourceQuantity.
func ResourceValue(name string, q resource.Quantity) int64 {
	if name == catalog.CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Add adds other to r. A sum that overflows stays at the largest int64.
func (r Resources) Add(other Resources) {
	for name, amount := range other {
		r[name] = addCapped(r[name], amount)
	}
}

// Times returns r × n; ok is false on overflow.
func (r Resources) Times(n int64) (product Resources, ok bool) {
	product = make(Resources, len(r))
	for name, amount := range r {
		if product[name], ok = mulDiv(amount, n, 1); !ok {
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
		if limit[name], ok = mulDiv(amount, p, 100); !ok {
			return nil, false
		}
		if name == catalog.Memory && amount%catalog.MiB == 0 {
			limit[name] -= limit[name] % catalog.MiB
		}
	}
	return limit, true
}

// mulDiv returns a × b / c, rounded down, with an exact product. ok is false if
// the result overflows an int64 or c is not positive.
func mulDiv(a, b, c int64) (result int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if c <= 0 || high >= uint64(c) {
		return 0, false
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(quotient), quotient <= 1<<63-1
}

// addCapped returns a + b, or the largest int64 instead of overflowing. Sums of
// quota are only displayed, never applied.
func addCapped(a, b int64) int64 {
	sum, carry := bits.Add64(uint64(a), uint64(b), 0)
	if carry != 0 || sum > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(sum)
}

// compareProducts compares a × b with c × d exactly. None may be negative.
func compareProducts(a, b, c, d int64) int {
	highA, lowA := bits.Mul64(uint64(a), uint64(b))
	highC, lowC := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(highA, highC), cmp.Compare(lowA, lowC))
}
