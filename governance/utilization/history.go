package utilization

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/singleflight"
)

const (
	keptFor     = 15 * time.Second // histories
	atOnce      = 2                // questions about history
	mostKept    = 16               // histories
	mostPoints  = 2000             // of one line
	patience    = time.Second      // that a page waits for a history
	longestSpan = 400 * 24 * time.Hour
)

// Span is a time, and how far apart the points of a history are in it. The first is
// at From; none is later than now.
type Range struct {
	From, To time.Time
	Step     time.Duration
}

func (s Range) key() spanKey { return spanKey{s.From.UnixMilli(), s.To.UnixMilli(), s.Step} }

type spanKey struct {
	from, to int64
	step     time.Duration
}

// Line is one gauge over time: shares from 0 to 1, NaN where there is no data.
type Series []float64

// History is what the gauges of a pool showed.
type History struct {
	Times                  []time.Time
	GPU, Neuron            Series // nil for a pool without
	GPUMemory, CPU, Memory Series
	// Trouble is a sentence about what may be missing; empty for nothing.
	Warning string
}

// histories are answers that are kept for a moment. They are by node, so that one
// serves all pools.
type histories struct {
	mu      sync.Mutex
	kept    map[spanKey]kept
	asking  singleflight.Group
	allowed chan struct{}
}

type kept struct {
	at     time.Time
	start  time.Time
	step   time.Duration
	points int
	matrix model.Matrix
	told   string
	err    error
}

func newHistories() histories {
	return histories{kept: map[spanKey]kept{}, allowed: make(chan struct{}, atOnce)}
}

// History is what the gauges of a pool showed; those of all pools, for an empty
// one. It waits for Prometheus a second at most, and answers then with
// what was known before, or with governance.Unavailable while the question goes on.
func (s *Service) History(ctx context.Context, span Range, c Inventory, pool string) (History, error) {
	if now := s.o.Now(); span.To.After(now) && span.Step > 0 { // the points stay where they are
		span.To = span.From.Add(now.Sub(span.From).Truncate(span.Step))
	}
	if length := span.To.Sub(span.From); span.Step < time.Second || length < 0 || length > longestSpan || length/span.Step > mostPoints {
		return History{}, &governance.Error{Kind: governance.Invalid, Op: "ask Prometheus", Message: "This range is not valid. Choose another one."}
	}
	k, err := s.matrix(ctx, span)
	if err != nil {
		return History{}, err
	}
	h := k.history(k.sum(c, pool, s.names()), c.kinds(pool))
	h.Warning = k.told
	return h, nil
}

// names are those of nodes by their addresses, as of now.
func (s *Service) names() *Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return &Reading{}
	}
	return s.last
}

func (s *Service) matrix(ctx context.Context, span Range) (kept, error) {
	h, key := &s.histories, span.key()
	h.mu.Lock()
	before, known := h.kept[key]
	h.mu.Unlock()
	if known && s.o.Now().Sub(before.at) < keptFor {
		return before, before.err
	}
	asked := h.asking.DoChan(fmt.Sprint(key), func() (any, error) {
		h.allowed <- struct{}{}
		defer func() { <-h.allowed }()
		k := s.askHistory(context.WithoutCancel(ctx), span)
		h.keep(key, k)
		s.o.OnChange()
		return k, nil
	})
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case answer := <-asked:
		k := answer.Val.(kept)
		return k, k.err
	case <-wait.C:
	case <-ctx.Done():
	}
	if known && before.err == nil {
		return before, nil
	}
	return kept{}, &governance.Error{Kind: governance.Unavailable, Op: "ask Prometheus", Message: "The history is loading from Prometheus. Reload the page in a moment.", Err: ctx.Err()}
}

func (h *histories) keep(span spanKey, k kept) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.kept[span]; !there && len(h.kept) >= mostKept {
		oldest := span
		for other, o := range h.kept {
			if oldest == span || o.at.Before(h.kept[oldest].at) {
				oldest = other
			}
		}
		delete(h.kept, oldest)
	}
	h.kept[span] = k
}

func (s *Service) askHistory(ctx context.Context, span Range) kept {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	r := prometheus.Range{Start: span.From, End: span.To, Step: span.Step}
	k := kept{start: r.Start, step: r.Step, points: int(r.End.Sub(r.Start)/r.Step) + 1}
	value, warnings, err := s.api.QueryRange(ctx, s.ask.history(), r, prometheus.WithTimeout(s.o.Timeout))
	k.at, k.told = s.o.Now(), s.warned(warnings)
	matrix, ok := value.(model.Matrix)
	if err == nil && !ok {
		err = errNonsense
	}
	if err != nil {
		s.o.Warn("asking Prometheus for a history", err)
		k.err = &governance.Error{Kind: governance.Unavailable, Op: "ask Prometheus", Message: sentence(err, s.o.Timeout), Err: err}
		return k
	}
	k.matrix = matrix
	return k
}
