// Package activity answers the page of who did what.
package activity
