// Package clusterstate reads the parts of the cluster's state that most of the domain
// needs: the cluster policy, the catalog of nodes, and the team of each
// namespace.
//
//	informer cache ──> client.Reader ──> Policy, Catalog, Teams ──> pages, controllers
//
// It owns no cache and no object: every function reads through the reader that
// its caller passes. What it returns may share memory with the cache and is
// read-only.
package clusterstate
