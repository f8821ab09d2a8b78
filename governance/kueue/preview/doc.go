// Package preview computes what a change of an allocation or of the cluster policy
// does to tasks and teams, before it is made.
//
//	allocation, policy ──► desired, before and after ──► simulate.Change ──► Kueue's scheduler
//	                                                                              │
//	                         queries.Preview, what the user may see ◄── report ◄──┘
//
// The objects after a change are those that package desired builds; nothing is
// written, not even as a dry run. Package queries decides what a user sees.
package preview
