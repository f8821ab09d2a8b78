// Package tasks answers the pages of tasks: the active and finished tasks, those
// that only history has, one task with its timeline and the reason why it waits, and
// the actions on it. It explains verdicts of package explain in words, and computes
// none.
package tasks
