// Package quota is the arithmetic of allocations: what a row comes to when its
// gaps are filled in proportion, what may be borrowed on top, and what is
// wrong with it.
//
// The form, the controller and the tests call the same functions. It is pure:
// no client, no context, no clock; exact integers, never floats.
package quota
