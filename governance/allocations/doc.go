// Package allocations is what people and the controller ask about compute
// allocations: which there are, what the cluster has against one, and how much
// of each pool is given out. It decides nothing about Kueue; that is desired's.
package allocations
