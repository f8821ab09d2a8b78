// Package alerts renders the alerts.
package alerts
