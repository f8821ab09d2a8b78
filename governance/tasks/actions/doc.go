// Package actions is what people do to a task that is there: stop it, have it
// go on, change its class, move it to the front of its queue, delete it. All of
// it is written as the person, so that Kubernetes decides and records, and each
// action tells beforehand what it would do. What a task is, and where it stands,
// package tasks knows; this one only writes, and never a job's spec.
package actions
