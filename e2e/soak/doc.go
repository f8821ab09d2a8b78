// Package soak runs two replicas of the built console against a real API server,
// Kueue, PostgreSQL and Prometheus for half an hour, with 50 changes of Workloads a
// second and 50 open streams, while one part after the other fails. Memory and
// goroutines must not grow, pages must show that their data is old, and all figures
// must be right at the end. make soak runs it.
//
//	load ─── tasks, changes ──▶ API server, Kueue ──watch──▶ replicas a, b ──▶ 50 streams
//	faults ─ API server, Kueue, PostgreSQL, Prometheus, replica b, in turn
//	sampler ◀── memory, goroutines ── replicas
//	at the end: figures of streams, pages, metrics and history = those of the API server
package soak
