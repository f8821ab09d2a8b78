// Package simulate answers what Kueue would do, by Kueue's own scheduler.
//
// A [Snapshot] has the objects that the scheduler reads. A [Change] turns one
// snapshot into another, and package engine runs the scheduler on both until it
// has nothing left to do. What differs between the two [Outcome]s is the effect of
// the change:
//
//	Snapshot ───────────────► engine.Run ──► Outcome ──┐
//	    │                                              ├──► Compare ──► Report
//	    └─ Change.Apply ────► engine.Run ──► Outcome ──┘
//
// The package uses no client and no clock. It does not import Kueue's scheduler,
// which sets feature gates of its whole process: package engine does, in a child
// process.
package simulate
