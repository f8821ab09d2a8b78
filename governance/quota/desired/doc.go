// Package desired computes the Kubernetes and Kueue objects that follow from allocations,
// departments and the cluster policy.
//
//	Build                      ──> the objects of one allocation
//	NewTree ──> Settle, Cohorts ──> what departments and teams get of what they want, and the Cohorts
//
// It is pure: no client, no context, no
// clock, no map order. The controller applies the objects, reviews preview them,
// and golden files pin them. Package kueueconfig computes the configuration of
// Kueue itself.
package desired
