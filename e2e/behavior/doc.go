// Package behavior contains only tests: they verify on the real Kueue what Kuota
// promises. Idle compute is lent and reclaimed, shares and priorities apply, and
// a queue can be held and drained. The numbers were observed on Kueue 0.19.2.
//
// Each test is a scenario: it creates teams with ComputeAllocations, submits
// Jobs, and asserts on the usage of each team and on the tasks that are pending.
// All teams share one cohort, but quota of different flavors is independent.
// Each scenario therefore has a pool of an instance type of its own, and
// scenarios run in parallel. Two settings apply to the whole cluster and divide
// the scenarios into phases: fair sharing, which is part of Kueue's
// configuration, and the cluster policy.
package behavior
