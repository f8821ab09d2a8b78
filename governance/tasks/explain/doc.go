// Package explain says why a task waits: from the numbers of the cluster, and
// not from sentences that Kueue wrote. It is pure: what it knows is in Cluster.
//
// Its arithmetic is that of Kueue's scheduler for queues that share one cohort
// without a parent (0.16 to 0.19, pkg/cache/scheduler/resource_node.go). Of
// cohorts within cohorts it says that it does not know.
package explain
