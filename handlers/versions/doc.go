// Package versions answers …/revisions: the earlier versions of allocations and of the cluster
// policy.
package versions
