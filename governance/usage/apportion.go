package usage

import (
	"cmp"
	"math/bits"
	"slices"
)

// Apportion divides an amount among shares in proportion to their size, none
// more than its size: the floor of each, and what is left by the largest
// remainder, the first among equals. When the amount is more than all shares
// together, each has its size. Nothing is negative.
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

// Spread says how much each taker has of each source, so that all of every
// source is taken and nobody has more than they take: rows are sources, columns
// takers. Each source is divided in proportion to what takers still lack. The
// sources together are not more than the takers take.
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
