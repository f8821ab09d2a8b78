package engine

import (
	"context"
	"sync"

	"kuota.dev/kuota/governance/simulate"
)

// Engine answers questions. It keeps what it computed of the last snapshot without
// a change. It is safe for concurrent use.
type Engine struct {
	mu       sync.Mutex
	snapshot *simulate.Snapshot
	outcomes map[uint64]*simulate.Outcome // of that snapshot, by Options.Tie
}

// Answer answers a question about a snapshot.
func (e *Engine) Answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (r *simulate.Report, err error) {
	err = withGates(s.Configuration.FeatureGates, func() error {
		r, err = e.answer(ctx, s, q)
		return err
	})
	return r, err
}

func (e *Engine) answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	var before, after []*simulate.Outcome
	changed := q.Change.Apply(s)
	for tie := range uint64(max(1, q.Ties)) { //nolint:gosec // a few
		options := Options{Tie: tie, Horizon: q.Horizon, RunTimes: q.RunTimes, Remaining: q.Remaining}
		was := &simulate.Outcome{Settled: true}
		if q.OnlyTarget {
			options.Until = q.Target
		} else {
			var err error
			if was, err = e.baseline(ctx, s, options); err != nil {
				return nil, err
			}
		}
		is, err := Run(ctx, changed, options)
		if err != nil {
			return nil, err
		}
		before, after = append(before, was), append(after, is)
	}
	return simulate.Compare(q, before, after), nil
}

// baseline returns the outcome without a change.
func (e *Engine) baseline(ctx context.Context, s *simulate.Snapshot, o Options) (*simulate.Outcome, error) {
	if o.Horizon != 0 || o.RunTimes != nil || o.Remaining != nil {
		return Run(ctx, s, o)
	}
	e.mu.Lock()
	if e.snapshot != s {
		e.snapshot, e.outcomes = s, map[uint64]*simulate.Outcome{}
	}
	known := e.outcomes[o.Tie]
	e.mu.Unlock()
	if known != nil {
		return known, nil
	}
	out, err := Run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.snapshot == s {
		e.outcomes[o.Tie] = out
	}
	return out, nil
}
