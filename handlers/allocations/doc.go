// Package allocations answers the pages of compute allocations: their list at
// /policies, and the detail page, form, review, hold, resume and deletion of one.
//
//	POST ─→ allocationForm ─parse─→ v1alpha1.ComputeAllocation + errors by path
//	  ↑           │
//	address ←─ values          preview, review, save, conflict, deleted
package allocations
