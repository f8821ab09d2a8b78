// Package spec reads, validates, compares and describes the specs of policies and allocations.
// Nothing in it reads the cluster.
package spec
