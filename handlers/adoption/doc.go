// Package adoption answers the page that adopts existing ClusterQueues: the plan, the
// review of the selected ones, and the result.
package adoption
