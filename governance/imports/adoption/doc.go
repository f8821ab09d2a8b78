// Package adoption plans how Kuota takes over ClusterQueues that existed before it.
//
//	ClusterQueues, Cohorts, LocalQueues, flavors, ──NewPlan──► Plan: per ClusterQueue Manage, Observe or
//	priority classes, nodes, Kueue's configuration             Refuse, with its ComputeAllocation; the ClusterPolicy
//
// A ClusterQueue is managed only if an allocation describes it exactly: NewPlan
// builds the objects that follow from the allocation, and compares them with the
// existing ones. All others can be observed, with the reasons.
//
// The package is pure: no client, no context, no clock.
package adoption
