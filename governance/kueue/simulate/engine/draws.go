package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kueue/pkg/workload"
)

// leastDraws is how many draws an answer has at least.
const leastDraws = 10

// draws simulates as many draws as there is time for. A tenth of the time is left for
// the answer. If one draw takes longer than its part of the time for leastDraws, each of these
// ends early: what starts soon is known all the same, however many Workloads wait.
func draws(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	if deadline, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
	}
	waiting := q.Waiting
	for _, w := range s.Workloads {
		if len(q.Waiting) == 0 && workload.IsActive(w) && !workload.HasQuotaReservation(w) {
			waiting = append(waiting, simulate.WorkloadKey(w))
		}
	}
	var outcomes []*simulate.Outcome
	cut := false
	for i, draw := range q.Draws {
		later, runTimes := submitted(s, q, draw)
		one, cancel := context.WithCancel(ctx)
		if deadline, has := ctx.Deadline(); has && i < leastDraws {
			one, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(leastDraws-i))
		}
		out, err := Run(one, later, Options{Tie: uint64(i), Requeue: true, Arrivals: true, UntilAll: waiting, Partial: i < leastDraws, Horizon: q.Horizon, RunTimes: runTimes, Remaining: draw.Remaining}) //nolint:gosec // an index
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && len(outcomes) >= leastDraws {
			break
		}
		if err != nil {
			return nil, err
		}
		outcomes, cut = append(outcomes, out), cut || out.Cut
	}
	return &simulate.Report{Starts: simulate.Starts(waiting, outcomes), Cut: cut}, nil
}

// submitted returns a snapshot with the Workloads that a draw submits, and how long all
// run.
func submitted(s *simulate.Snapshot, q *simulate.Question, draw simulate.Draw) (*simulate.Snapshot, map[string]time.Duration) {
	if len(draw.Submissions) == 0 {
		return s, draw.Whole
	}
	later, runTimes := *s, make(map[string]time.Duration, len(draw.Whole)+len(draw.Submissions))
	maps.Copy(runTimes, draw.Whole)
	later.Workloads = slices.Clone(s.Workloads)
	for i, one := range draw.Submissions {
		w := *q.Submitted[one.Workload]           // shares what it points to, which is read only
		w.Name = fmt.Sprintf("submitted/%06d", i) // no Workload of the cluster has a slash in its name
		w.UID, w.CreationTimestamp = types.UID(w.Name), metav1.NewTime(s.Time.Add(one.After))
		runTimes[simulate.WorkloadKey(&w)] = one.RunTime
		later.Workloads = append(later.Workloads, &w)
	}
	return &later, runTimes
}
