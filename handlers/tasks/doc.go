// Package tasks answers /tasks and /queue: the active and finished tasks, those that only
// history has, the order of waiting tasks, one task with its timeline and the reason why
// it waits, its logs, and the actions on it. It explains verdicts of package explain in words, and computes
// none.
package tasks
