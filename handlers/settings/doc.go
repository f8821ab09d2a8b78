// Package settings answers the page on how the console, Kueue and the cluster are set
// up.
package settings
