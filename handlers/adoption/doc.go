// Package adoption answers /policies/adopt: the plan that adopts existing ClusterQueues,
// the review of the selected ones, and the result.
package adoption
