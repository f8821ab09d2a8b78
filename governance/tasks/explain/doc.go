// Package explain computes why a task does not start, and which single changes would
// start it: from the numbers of the cluster, and not from Kueue's messages. It is
// pure: all of its input is in Task and Cluster. It shows no names to anyone; its
// callers redact verdicts.
//
//	Task, Cluster ─► preconditions ─► flavors ─► preemption targets ─► Verdict
//
// Its arithmetic is that of Kueue's scheduler for trees of Cohorts (0.16 to 0.19,
// pkg/cache/scheduler/resource_node.go).
package explain
