// Package charts maps series of history to charts.
package charts
