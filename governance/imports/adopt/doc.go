// Package adopt carries out plans of package adoption: it creates the policy and the
// allocations that describe existing ClusterQueues, and releases teams. The
// controller takes over the ClusterQueues, and only if no spec changes; this package
// writes nothing else than policies and allocations.
//
//	Service ── as the signed-in user ──┐
//	kuota adopt ── as the kubeconfig ──┴─► Adopt, Release
package adopt
