// Package gitops tells from the metadata of an object whether Flux or Argo CD
// manages it, so that nobody changes it behind their back: they would put it
// back.
//
// It is pure: no client, no context, no clock.
package gitops
