// Package catalog computes the instance types of the cluster, from a table and
// from what nodes report, and the pools of its nodes.
//
//	nodes + policy pools + reported types ──> New ──> Catalog ──> Pool, PoolOf, NodeResources
//
// It is pure: callers pass the nodes.
package catalog
