// Package dashboard renders the dashboard with its sections.
package dashboard
