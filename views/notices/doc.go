// Package notices renders what a person asked to hear of their own tasks.
package notices
