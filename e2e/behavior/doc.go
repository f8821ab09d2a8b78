// Package behavior has tests only. They watch on the real Kueue what Kuota
// promises: that idle compute is lent and taken back, that shares and ranks
// hold, that a queue can be held and drained. The figures are those seen by
// experiment on Kueue 0.19.2.
//
// Each test is a story: teams are given quota through ComputeAllocations,
// submit Jobs, and the story says what they hold and what waits. Every story
// has a pool of its own, of an instance type that no other test uses, since all
// teams share one cohort and flavors do not mix. That is why stories run side
// by side. Two things belong to the whole cluster and divide them into phases:
// fair sharing, which is a setting of Kueue, and the cluster policy.
package behavior
