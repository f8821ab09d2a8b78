// Package desired says which Kubernetes and Kueue objects follow from an
// allocation, and from the cluster policy. It is a pure function of its input:
// no client, no context, no clock, no map order. The controller applies what it
// returns, the form previews it, and golden files pin it. Kueue's own
// configuration is governance/kueueconfig's.
package desired
