// Package cluster talks to Kubernetes: one shared cache that everything reads
// from, clients that write, how long ago the API server answered, who is told
// of changes, and the one place where Kubernetes' errors become ours.
//
// It knows no allocation and no task; packages that do are built on it.
package cluster
