// Package notices serves /notices: what a person asked to hear of their own tasks.
package notices
