// Package desired computes the Kubernetes and Kueue objects that follow from an
// allocation and from the cluster policy. It is pure: no client, no context, no
// clock, no map order. The controller applies the objects, reviews preview them,
// and golden files pin them. Package kueueconfig computes the configuration of
// Kueue itself.
package desired
