// Package activity renders the list of what people did.
package activity
