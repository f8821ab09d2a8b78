// Package tasks reads Kueue Workloads as what people know them for: tasks,
// with a state, a reason, and what they hold or ask for.
package tasks
