// Package dashboard answers /, the dashboard: the figures of the whole cluster, now and over
// a range of time.
package dashboard
