package engine

import (
	"context"
	"errors"
	"time"

	"kuota.dev/kuota/governance/simulate"

	"sigs.k8s.io/kueue/pkg/workload"
)

// leastDraws is how many draws an answer has at least.
const leastDraws = 10

// draws simulates as many draws of run times as there is time for. A tenth of the
// time is left for the answer.
func draws(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	if deadline, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
	}
	var waiting []string
	for _, w := range s.Workloads {
		if workload.IsActive(w) && !workload.HasQuotaReservation(w) {
			waiting = append(waiting, simulate.WorkloadKey(w))
		}
	}
	var outcomes []*simulate.Outcome
	for i, draw := range q.Draws {
		out, err := Run(ctx, s, Options{Tie: uint64(i), Requeue: true, UntilAll: waiting, Horizon: q.Horizon, RunTimes: draw.Whole, Remaining: draw.Remaining}) //nolint:gosec // an index
		if errors.Is(err, context.DeadlineExceeded) && len(outcomes) >= leastDraws {
			break
		}
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, out)
	}
	return &simulate.Report{Starts: simulate.Starts(outcomes)}, nil
}
