// Package resources has amounts of resources that cannot overflow. It is read by all
// packages that count, compare or sum quota, requests and usage.
package resources

import (
	"math"
	"math/bits"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is an amount of one resource: cpu in millicores, all others in units, such as
// bytes or devices. Amounts are compared with < and ==, and computed with the methods,
// which saturate: TestAmounts in the root folder finds other arithmetic.
type Amount int64

// Unlimited is an amount that is larger than an int64 can count, as in Kueue. Sums and
// products with it stay Unlimited.
const Unlimited Amount = math.MaxInt64

// least is the opposite of Unlimited.
const least = -Unlimited

var (
	maxCores = *resource.NewQuantity(math.MaxInt64/1000, resource.DecimalSI)
	maxUnits = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
)

// AmountFromQuantity returns a quantity of a resource, rounded up as Kueue does. It is
// Unlimited for a quantity that an int64 cannot count, and never negative: Kubernetes
// accepts no negative requests, capacities and quota.
func AmountFromQuantity(name string, q resource.Quantity) Amount {
	limit, value := maxUnits, q.Value
	if name == string(corev1.ResourceCPU) {
		limit, value = maxCores, q.MilliValue
	}
	switch {
	case q.Sign() <= 0:
		return 0
	case q.Cmp(limit) >= 0:
		return Unlimited
	}
	return Amount(value())
}

// Quantity returns an amount of a resource as a canonical quantity. It reverses
// AmountFromQuantity.
func (a Amount) Quantity(name string) resource.Quantity {
	switch {
	case name == string(corev1.ResourceCPU):
		return *resource.NewMilliQuantity(int64(a), resource.DecimalSI)
	case InBytes(name):
		return *resource.NewQuantity(int64(a), resource.BinarySI)
	}
	return *resource.NewQuantity(int64(a), resource.DecimalSI)
}

// InBytes reports whether a resource is counted in bytes, by Kubernetes or by the policy.
func InBytes(name string) bool {
	if listed, _ := Listed(name); listed.Unit == v1alpha1.UnitBytes {
		return true
	}
	switch corev1.ResourceName(name) {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return true
	}
	return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
}

// Plus returns a + b.
func (a Amount) Plus(b Amount) Amount {
	sum := a + b
	switch {
	case a == Unlimited || b == Unlimited, a > 0 && b > 0 && sum < 0:
		return Unlimited
	case a < 0 && b < 0 && (sum >= 0 || sum < least):
		return least
	}
	return sum
}

// Minus returns a - b. Unlimited minus Unlimited is 0, since neither is known.
func (a Amount) Minus(b Amount) Amount {
	switch {
	case a == Unlimited && b == Unlimited:
		return 0
	case b == Unlimited:
		return least
	}
	return a.Plus(-max(b, least))
}

// Times returns a × n.
func (a Amount) Times(n int64) Amount {
	product, ok := MulDiv(int64(max(a, -a)), max(n, -n), 1)
	switch negative := a < 0 != (n < 0); {
	case (!ok || a == Unlimited && n != 0) && negative:
		return least
	case !ok || a == Unlimited && n != 0:
		return Unlimited
	case negative:
		return Amount(-product)
	}
	return Amount(product)
}

// Per returns how many times b is in a, rounded down. Neither is negative, and b is
// positive.
func (a Amount) Per(b Amount) int64 { return int64(a / b) }

// Fraction returns a × num / den, rounded down; ok is false if it is more than an int64
// can count. None is negative, and den is positive.
func (a Amount) Fraction(num, den Amount) (part Amount, ok bool) {
	n, ok := MulDiv(int64(a), int64(num), int64(den))
	return Amount(n), ok
}

// Sum returns the sum of amounts.
func Sum(amounts ...Amount) (sum Amount) {
	for _, a := range amounts {
		sum = sum.Plus(a)
	}
	return sum
}

// MulDiv returns a × b / c, rounded down, with an exact product. ok is false if
// the result overflows an int64 or c is not positive.
func MulDiv(a, b, c int64) (result int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if c <= 0 || high >= uint64(c) {
		return 0, false
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(quotient), quotient <= math.MaxInt64
}
