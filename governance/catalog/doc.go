// Package catalog knows what the cluster is made of: the figures of instance
// types, from a table and from what nodes report, and the pools that nodes
// form. It is pure: nodes are handed to it.
package catalog
