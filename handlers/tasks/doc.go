// Package tasks answers the pages of tasks: the active and finished ones, those that
// only history has, one task with its timeline and the reason why it waits, and the
// actions on it.
package tasks
