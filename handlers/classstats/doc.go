// Package classstats answers /classes.csv and computes its table by priority class for other
// pages: tasks now, and average waits and runs over a range, from history or, without it,
// from memory.
package classstats
