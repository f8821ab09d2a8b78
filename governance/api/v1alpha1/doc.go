// Package v1alpha1 contains the API group kuota.dev with its kinds: ClusterPolicy,
// ComputeAllocation and Department, from which the controllers derive all objects of Kueue, and
// ElasticJob, from which they derive Jobs.
//
// The schema and its CEL rules reject objects that are invalid by themselves. The
// conditions report problems that depend on the cluster.
//
// +kubebuilder:object:generate=true
// +groupName=kuota.dev
package v1alpha1
