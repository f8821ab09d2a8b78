// Package timeline derives what happened to one task: events, changes of its size,
// completed waits and runs, and preemption loops. Kueue keeps only the last
// condition of each type, so a Past records the ones that it overwrites.
//
//	Workload changes ─► Past.Update ─┐
//	loop guard ───────► Past.Record ─┴─► Past.Events, Past.Sizes ─► Snapshot.Spans
//
// The package does not lock: the index owns each Past and serializes access. It
// does not redact names: queries does, for each viewer.
package timeline
