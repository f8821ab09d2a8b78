// Package v1alpha1 holds Kuota's two custom resources, ClusterPolicy and
// ComputeAllocation, of the API group kuota.dev. They are the only truth:
// everything that Kuota writes into Kueue follows from them.
//
// What an object alone shows to be wrong is refused by the schema and the CEL
// rules here; what depends on the cluster is told by the conditions.
//
// +kubebuilder:object:generate=true
// +groupName=kuota.dev
package v1alpha1
