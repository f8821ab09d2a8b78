// Package reconcile keeps Kueue true to the allocations: it reads, builds,
// applies, and tells in conditions what came of it.
//
// It deletes only what Kuota made, and never a namespace. A ResourceFlavor
// stays when the last team that used it goes: it costs nothing, and the next
// team needs it.
package reconcile
