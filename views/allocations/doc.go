// Package allocations renders the list of allocations, and the pages of one allocation with its form, review and deletion.
package allocations
