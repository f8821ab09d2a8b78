package engine

import (
	"context"
	"strings"
	"sync"

	"kuota.dev/kuota/governance/kueue/simulate"
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
