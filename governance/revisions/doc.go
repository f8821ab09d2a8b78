// Package revisions keeps what policies and allocations were: each spec as a
// ControllerRevision with who changed it, when and why, and says how one differs
// from the one before.
//
// It changes no policy and no allocation: an older spec is restored through the
// form and its review, like any other change.
package revisions
