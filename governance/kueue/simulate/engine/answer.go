package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Engine answers questions. It keeps what it computed of the last snapshot without
// a change. It is safe for concurrent use.
type Engine struct {
	mu       sync.Mutex
	snapshot *simulate.Snapshot
	outcomes map[part]*simulate.Outcome // of that snapshot
}

// part is a part of a snapshot, simulated with one order of ties.
type part struct {
	roots string
	tie   uint64
}

// Answer answers a question about a snapshot.
func (e *Engine) Answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (r *simulate.Report, err error) {
	err = withGates(gatesOf(s), func() error {
		r, err = e.answer(ctx, s, q)
		return err
	})
	if r != nil {
		r.UnknownGates = UnknownGates(s.Configuration.FeatureGates)
	}
	return r, err
}

func (e *Engine) answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	if len(q.Draws) > 0 {
		return draws(ctx, s, q)
	}
	var before, after []*simulate.Outcome
	whole, changed, of := s, q.Change.Apply(s), part{}
	if roots, ok := q.Scope(s); ok {
		s, changed, of.roots = s.Within(roots), changed.Within(roots), strings.Join(roots, " ")
	}
	requeue := q.Change
	requeue.Workloads = nil // these Kueue tries without any other
	touched := make(map[string]bool, len(q.Change.Workloads))
	for _, w := range q.Change.Workloads {
		touched[simulate.WorkloadKey(w)] = true
	}
	for tie := range uint64(max(1, q.Ties)) { //nolint:gosec // a few
		options := Options{Tie: tie}
		var is *simulate.Outcome
		var err error
		if of.tie = tie; q.OnlyTarget {
			options.Until = q.Target
		}
		if !q.OnlyTarget || q.Change.Empty() {
			if is, err = e.baseline(ctx, whole, s, of, options); err != nil {
				return nil, err
			}
		}
		was := is
		if q.OnlyTarget {
			was = &simulate.Outcome{Settled: true}
		}
		if !q.Change.Empty() {
			options.Changed, options.Requeue, options.Restarted = touched, !requeue.Empty(), q.Change.Configuration != nil
			if is, err = Run(ctx, changed, options); err != nil {
				return nil, err
			}
		}
		before, after = append(before, was), append(after, is)
	}
	return simulate.Compare(q, before, after), nil
}

// baseline returns the outcome of a part of the whole snapshot without a change. It
// keeps those that came to their end, and answers with one in which nothing happens
// whatever o.Until is.
func (e *Engine) baseline(ctx context.Context, whole, s *simulate.Snapshot, of part, o Options) (*simulate.Outcome, error) {
	e.mu.Lock()
	if e.snapshot != whole {
		e.snapshot, e.outcomes = whole, map[part]*simulate.Outcome{}
	}
	known := e.outcomes[of]
	e.mu.Unlock()
	if known != nil && (o.Until == "" || len(known.Events) == 0) {
		return known, nil
	}
	out, err := Run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.snapshot == whole && (o.Until == "" || out.Settled) {
		e.outcomes[of] = out
	}
	return out, nil
}

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
