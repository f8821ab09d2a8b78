// Package quota computes the quota of allocations: it validates rows, fills in the
// amounts that they omit, and derives borrowing limits.
//
//	ComputeAllocationSpec + catalog ──> Resolve ──> Resolved: FlavorQuotas per pool
//	status of the allocation ─────────> Applied ──┘
//	all allocations ──────────────────> Allocated ──> PoolResources ──> Exceeding
//
// Forms, controllers and tests call the same functions. They are pure: no client,
// no context, no clock, and exact integers instead of floats.
package quota
