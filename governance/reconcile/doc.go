// Package reconcile keeps Kueue true to the allocations and the cluster policy:
// it reads, builds, applies, and tells in conditions what came of it.
//
// It deletes only what Kuota made, and never a namespace. A ResourceFlavor
// stays when the last team that used it goes: it costs nothing, and the next
// team needs it. Of what is not Kuota's it changes only the label of a node's
// pool, the priority of tasks that are ranked anew, and the lines of Kueue's own
// configuration that the policy decides.
package reconcile
