// Package activity answers /activity: who did what.
package activity
