// Package revisions records the history of policies and allocations: each spec as
// a ControllerRevision, with who changed it, when and why, and the difference to
// the one before.
//
//	watch event ──Record──► ControllerRevision ──Service──► versions pages
//
// It changes no policy and no allocation. An older spec is restored by the form
// and its review, like any other change.
package revisions
