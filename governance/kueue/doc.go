// Package kueue has what Kuota knows of Kueue: its configuration, its admission policies, the
// usage of its Workloads, and its scheduler, simulated.
package kueue
