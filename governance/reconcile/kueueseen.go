package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/kueueconfig"
)

// KueueSeen is Kueue as it is installed, for people.
type KueueState struct {
	kueueconfig.Current
	Account        string // the user that Kueue acts as
	ScaledToZero   bool   // whether somebody scaled it to nothing
	RolloutFailure string // why it does not come up; empty while it may yet
}

// Seen reads Kueue's configuration and how it runs from the API server.
func (r *KueueReconciler) State(ctx context.Context) (KueueState, error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return KueueState{}, err
	}
	return KueueState{Current: in.current(), Account: in.account(), ScaledToZero: in.scaledToZero(), RolloutFailure: in.rolloutFailure()}, nil
}
