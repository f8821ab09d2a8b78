// Package index keeps all tasks in memory, ready to be filtered, sorted and
// counted. Watches of Workloads, jobs, pods and namespaces fill it; a change costs
// what its own task costs, and a query what its answer costs.
//
//	Workloads ─► slimmer ─┐
//	jobs ─► slimJob ──────┼─► rebuild(task) ─► orders, queues, usage, tallies,
//	pods ─► slimPod ──────┘                    positions, timeline, recording
//
// An Index is safe for concurrent use. The tasks and lists that it returns are never
// changed: read only. It does not decide who sees what, and reads nothing from the
// API server: queries does.
package index
