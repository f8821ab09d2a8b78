// Package settings answers /settings: how the console, Kueue and the cluster are set up.
package settings
