// Package reconcile keeps Kueue true to the allocations: it reads, builds,
// applies, prunes, and tells in conditions what came of it.
//
// It deletes only what carries Kuota's label, and never a namespace.
package reconcile
