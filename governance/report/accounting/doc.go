// Package accounting reports who used which compute over a range of time, and what it
// cost, from history only: teams and pools that were deleted remain in it. Amounts are
// integers, amount × ms, so that the lines of a pool add up to what its nodes had.
//
//	history ──Usage──▶ Reports ──▶ Line by pool, resource, and team or kind
//	policy  ──Prices──┘            (a price that changes divides an interval)
package accounting
