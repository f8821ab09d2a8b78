// Package describe puts the specs of allocations and policies into the words of
// the pages: single values (Prioritization, Amounts, PoolMatch …) and the
// differences between two versions of a spec (AllocationChanges, PolicyChanges),
// as reviews, revisions and the audit show them.
//
// It reads no cluster. A value without words, such as one that the schema does
// not have, is returned as it is.
package describe
