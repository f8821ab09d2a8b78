// Package versions answers the pages of earlier versions of allocations and of the
// cluster policy.
package versions
