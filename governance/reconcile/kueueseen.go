package reconcile

import (
	"context"

	"kuota.dev/kuota/governance/kueueconfig"
)

// KueueSeen is Kueue as it is installed, for people.
type KueueSeen struct {
	kueueconfig.Seen
	Account string // the user that Kueue acts as
	Stopped bool   // whether somebody scaled it to nothing
	Stuck   string // why it does not come up; empty while it may yet
}

// Seen reads Kueue's configuration and how it runs from the API server.
func (r *Kueue) Seen(ctx context.Context) (KueueSeen, error) {
	in, err := r.read(ctx)
	if err != nil {
		return KueueSeen{}, err
	}
	return KueueSeen{Seen: in.asSeen(), Account: in.account(), Stopped: in.stopped(), Stuck: in.stuck()}, nil
}
