// Package usage divides the usage of teams into own quota and borrowed quota, and
// apportions borrowed quota to lenders. It is pure: no client, no context, no
// clock, and exact integers instead of floats.
//
// Kueue 0.19 records neither which tasks borrow nor which queue lends. ApportionLoans
// and BorrowedInOrder compute both so that the parts add up.
package usage
