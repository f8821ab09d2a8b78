// Package loopguard detects preemption loops of Kueue and breaks them.
//
// In a preemption loop Kueue preempts one workload, the victim, again and again
// for another, the preemptor, which it never admits: each time the victim is
// requeued, it is admitted before the preemptor. Under fair sharing Kueue 0.19
// does so about once a second, without end.
//
// The package owns the detection, the mark on a held Workload, and the state of
// loops. It writes spec.active and the mark of a victim, and nothing else. It
// decides nothing about quota, and knows neither pages nor history: a Watcher
// receives loops and steps.
//
//	watch of Workloads ──► detector ──► Loop ──► Guard.Reconcile ──► hold, release
//	                          ▲                        │
//	                          └── preemptor admitted ──┘
//
// The states of a loop:
//
//	                   3 preemptions                 preemptor admitted,
//	                   without admission             or the limit of the hold
//	(nothing) ───────────────────────────► detected ──► held ──► released
//	                                           ▲          ▲          │
//	                 Warn, or a kind that      │          └──────────┤ the same pair again
//	                 cannot be held: stays ────┘                     ▼
//	                                                               over, after a minute without a preemption
package loopguard
