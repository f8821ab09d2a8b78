// Package record keeps what happened: tasks, usage and figures in history, what people did, and the
// versions of specs.
package record
