// Package allocations serves the pages about compute allocations: it reads those
// that a user may see, reviews a change, and creates, changes and deletes
// allocations as the signed-in user.
//
//	form ──> Review: validate ──> conflicts ──> dry run as user ──> dry run of the objects ──> Review
//	     └─> Create, Update, Delete: the same checks ──> write as user ──> audit
//
// Package desired decides which objects follow from an allocation, and package
// reconcile writes them. This package writes only allocations, and pools through
// PoolCreator.
package allocations
