// Package kueueconfig says what Kueue's configuration should be for a
// ClusterPolicy, from the configuration that is seen. It owns the sections
// fairSharing and waitForPodsReady and the gate DisableWaitForPodsReady; every
// other line stays as it stands. It also shows people how to add what no policy
// decides: integrations, resources that are not counted, and gates. It reads and
// writes nothing outside of what it is handed: no client, no context, no clock.
package kueueconfig
