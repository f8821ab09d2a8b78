// Package allocations is what people and the controller ask about compute
// allocations: which there are, what the cluster has against one, how much of
// each pool is given out, and what a change would do. It makes, changes and
// deletes them as the person who is signed in. It decides nothing about Kueue;
// that is desired's.
package allocations
