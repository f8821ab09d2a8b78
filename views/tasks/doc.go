// Package tasks renders the lists of tasks and the pages of one task.
package tasks
