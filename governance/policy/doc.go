// Package policy answers the pages about the cluster policy: what it says, what
// is wrong with it, what a change of it would do, and saving it as the person
// who is signed in. The controller asks it too, which pools may be put in force.
//
// It carries nothing out; governance/reconcile does.
package policy
