// Package policy answers the pages about the cluster policy: what it says, what
// a change of it would do, and saving it as the person who is signed in.
//
// It carries nothing out; governance/reconcile does.
package policy
