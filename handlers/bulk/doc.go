// Package bulk answers /bulk/{id}: how far a change of many objects is.
package bulk
