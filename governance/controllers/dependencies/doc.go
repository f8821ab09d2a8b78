// Package dependencies starts tasks after others: it removes the gate of a task once the task
// that it waits for has ended.
package dependencies
