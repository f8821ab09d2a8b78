// Package capacity is what the cluster has and who holds it, as of now: nodes,
// pools and teams, summed up from the watches whenever something changed and
// somebody asks.
package capacity
