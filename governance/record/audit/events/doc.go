// Package events reads audit events of API servers: what people and programs did to tasks and
// allocations without the console becomes entries of package activity. Above all they say who
// deleted a task, which nothing else in Kubernetes does.
package events
