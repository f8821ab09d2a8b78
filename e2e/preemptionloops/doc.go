// Package preemptionloops has only tests: they show on the real Kueue where it preempts
// in a loop, and what the loop guard does about that. The tests do not use the guard's
// definition of a loop: the oracle counts the preemptions in each Workload's status.
//
//	setting ──create──▶ ClusterQueues of one cohort ──submit──▶ Jobs
//	                                                             │ Kueue
//	oracle ◀──watch── Workloads ◀────────────────────────────────┘
//
// A setting is one cohort, built with package desired, so that its queues are
// those that Kuota writes. Settings have nothing in common except the flavor
// and the priority classes, so that dozens run side by side on one Kueue.
package preemptionloops
