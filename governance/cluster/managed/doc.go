// Package managed lists the Kubernetes and Kueue objects that Kuota writes, and
// answers three questions about them: is an existing object Kuota's (ByKuota), does
// an object of someone else have the name that an allocation needs (Conflicts),
// and what would writing an object change (DryRun).
//
//	desired.Objects ──> Objects, Unwanted ──> reconcile applies or removes them
//	                                     └──> DryRun ──> reviews of allocations and policies
//
// It writes nothing except dry runs. What the objects contain is package
// desired's.
package managed
