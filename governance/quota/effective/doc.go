// Package effective computes what is active of an allocation: its spec, with what an open
// window and the budget replace. Only the controller asks the clock, at each boundary, and
// writes the result into the status; everybody else reads the status, so that all agree.
//
//	spec + windows + time ──At──▶ State ──▶ status.active
//	                                              │
//	spec ─────────────────────────Spec────────────┴──▶ the spec that Kueue objects follow from
//
// The package writes nothing.
package effective
