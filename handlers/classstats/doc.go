// Package classstats computes the table by priority class: tasks now, and average
// waits and runs over a range, from history or, without it, from memory.
package classstats
