// Package advice finds the single changes that start a waiting task, each verified
// by a simulation of Kueue's scheduler. Package explain derives the same from
// numbers, at once and without certainty.
//
//	snapshot, task ──► Find ── question with a change ──► simulate ──► Report ──┐
//	                    ▲                                                       │
//	                    └── smaller figure, other class, other task ◄───────────┘
package advice
