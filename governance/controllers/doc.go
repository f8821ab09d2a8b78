// Package controllers has what changes the cluster by itself: the controllers of Kuota's resources, of
// elastic jobs and of preemption loops. Only the leader runs them.
package controllers
