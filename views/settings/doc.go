// Package settings renders the settings.
package settings
