package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/kueueconfig"
)

// KueueState is how Kueue is installed and whether it runs.
type KueueState struct {
	kueueconfig.Current
	Account        string // username of Kueue's service account
	ScaledToZero   bool   // its Deployment has 0 replicas
	RolloutFailure string // why its rollout failed; empty if it did not
}

// State reads Kueue's configuration and Deployment from the API server.
func (r *KueueReconciler) State(ctx context.Context) (KueueState, error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return KueueState{}, err
	}
	return KueueState{Current: in.current(), Account: in.account(), ScaledToZero: in.scaledToZero(), RolloutFailure: in.rolloutFailure()}, nil
}
