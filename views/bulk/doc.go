// Package bulk renders how far a change of many objects is.
package bulk
