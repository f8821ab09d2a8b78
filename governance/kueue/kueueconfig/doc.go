// Package kueueconfig computes Kueue's configuration for a ClusterPolicy from the
// current one.
//
//	Current + ClusterPolicySpec ──ForPolicy──► Desired (text, arguments, patch)
//	Current + Addition ──────────Add────────► Desired
//
// Kuota sets the sections fairSharing and waitForPodsReady, the gate
// DisableWaitForPodsReady, and admissionFairSharing if the policy has it. All other
// lines stay unchanged. Add shows an admin how
// to add what no policy determines: integrations, excluded resources and gates.
//
// The package is pure: no client, no context, no clock.
package kueueconfig
