// Package gitops detects from the metadata of an object whether Flux or Argo CD
// manages it. They would revert a change by the console, so it is refused.
//
// It is pure: no client, no context, no clock.
package gitops
