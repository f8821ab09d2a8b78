// Package progress reads how far a training is from the lines that it writes into its
// log, and finds the work that interruptions cost.
//
// A line is JSON with the event "progress", as the Python package kuota.elastic and any
// other program writes it: docs/tasks.md describes its fields. Metrics of Prometheus with
// the same values become a Progress in package utilization.
//
//	log ──► Last ──────────────────┐
//	Prometheus ──► utilization ────┴─► Progress ──► pages, alerts
//	                                      └───────► Interruptions ──► history
//
// The package is pure: it reads no log by itself.
package progress
