package usage

import (
	"cmp"
	"math/bits"
	"slices"
)

// Apportion divides an amount into parts in proportion to sizes, each at most
// its size. Each part is rounded down, and the remaining units go to the largest
// remainders, the first of equal ones. If the amount exceeds the sum of sizes,
// each part is its size. Nothing may be negative.
func Apportion(amount int64, sizes []int64) []int64 {
	parts := make([]int64, len(sizes))
	var sum int64
	for _, size := range sizes {
		sum += size
	}
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
		parts[i], remainders[i], order[i] = int64(part), remainder, i
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] { // fewer than have a remainder
		parts[i]++
	}
	return parts
}

// Spread returns how much each taker gets of each source: rows are sources,
// columns are takers. Each source is divided in proportion to what the takers
// still need, so that every source is used up and no taker gets more than it
// takes. The sum of sources must not exceed the sum of takers.
func Spread(sources, takers []int64) [][]int64 {
	lacking := slices.Clone(takers)
	rows := make([][]int64, len(sources))
	for i, source := range sources {
		rows[i] = Apportion(source, lacking)
		for j, amount := range rows[i] {
			lacking[j] -= amount
		}
	}
	return rows
}
