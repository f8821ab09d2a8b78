// Package policy serves the pages about the cluster policy: it reads, validates
// and reviews the policy, and saves it as the signed-in user. The controller
// calls ValidatePools to decide which pools it may apply.
//
// Package reconcile carries the policy out.
package policy
