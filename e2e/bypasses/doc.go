// Package bypasses contains only tests. They submit workloads that would run outside
// a team's quota, by mistake or on purpose, to a real API server with Kueue and the
// admission policies of deploy/rbac/enforcement.yaml, and check that each is
// rejected. They also check that every valid workload is accepted.
package bypasses
