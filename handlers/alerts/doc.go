// Package alerts serves /alerts: what needs attention, as a page and as files, and
// silences.
package alerts
