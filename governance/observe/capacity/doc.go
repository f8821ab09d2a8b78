// Package capacity computes snapshots of the capacity and the usage of nodes,
// pools and teams.
//
//	informer cache (nodes, queues, cohort, allocations) ──┐
//	tasks.Occupied (requests and usage by node and queue) ─┴─> input ──> summing ──> Snapshot ──> Within(scope)
//
// A snapshot is computed on the first request after a change, and shared by all
// readers. Package usage has the arithmetic. This package writes nothing.
package capacity
