package usage

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"kuota.dev/kuota/governance/quota/resources"
)

// Apportion divides an amount into parts in proportion to sizes, each at most
// its size. Each part is rounded down, and the remaining units go to the largest
// remainders, the first of equal ones. If the amount exceeds the sum of sizes,
// each part is its size. Nothing may be negative.
func Apportion(amount resources.Amount, sizes []resources.Amount) []resources.Amount {
	parts := make([]resources.Amount, len(sizes))
	sum := resources.Sum(sizes...)
	if amount >= sum {
		copy(parts, sizes)
		return parts
	}
	remainders := make([]uint64, len(sizes))
	order := make([]int, len(sizes))
	left := amount
	for i, size := range sizes {
		high, low := bits.Mul64(uint64(amount), uint64(size))
		part, remainder := bits.Div64(high, low, uint64(sum)) // amount < sum, so that it fits
		parts[i], remainders[i], order[i] = resources.Amount(part), remainder, i
		left = left.Minus(parts[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:min(left, resources.Amount(len(order)))] { // fewer than have a remainder
		parts[i] = parts[i].Plus(1)
	}
	return parts
}

// Spread returns how much each taker gets of each source: rows are sources,
// columns are takers. Each source is divided in proportion to what the takers
// still need, so that every source is used up and no taker gets more than it
// takes. The sum of sources must not exceed the sum of takers.
func Spread(sources, takers []resources.Amount) [][]resources.Amount {
	lacking := slices.Clone(takers)
	rows := make([][]resources.Amount, len(sources))
	for i, source := range sources {
		rows[i] = Apportion(source, lacking)
		for j, amount := range rows[i] {
			lacking[j] = lacking[j].Minus(amount)
		}
	}
	return rows
}

// Percent returns part / whole with two decimals, such as "53.33 %", rounded
// half up; "–" without a whole.
func Percent[T ~int64](part, whole T) string {
	if whole <= 0 || part < 0 {
		return "–"
	}
	high, low := bits.Mul64(uint64(part), 20_000) // in half hundredths of a percent
	if high >= uint64(whole) {
		return "over 1,000,000 %"
	}
	halves, _ := bits.Div64(high, low, uint64(whole))
	hundredths := (halves + 1) / 2
	return fmt.Sprintf("%d.%02d %%", hundredths/100, hundredths%100)
}
