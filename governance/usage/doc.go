// Package usage is the arithmetic of what teams hold: what of it is their own
// quota, what is borrowed, and from whom. It is pure: no client, no context, no
// clock; exact integers, never floats.
//
// Kueue (0.19) records neither which tasks borrow nor who lends. So both are
// apportioned, by the rules of Lend and OwnFirst, in a way that adds up.
package usage
