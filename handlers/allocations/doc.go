// Package allocations answers /policies: the list of compute allocations with what is done to
// many of them, and the detail page, form, review, hold, resume and deletion of one.
//
//	POST ─→ allocationForm ─parse─→ v1alpha1.ComputeAllocation + errors by path
//	  ↑           │
//	address ←─ values          preview, review, save, conflict, deleted
package allocations
