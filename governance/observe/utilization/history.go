package utilization

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/singleflight"
)

const (
	historyTTL           = 15 * time.Second
	maxHistories         = 64 // in the cache
	maxConcurrentQueries = 2  // for histories
	maxPoints            = 2000
	maxWait              = time.Second // of a page for a history
	longestRange         = 400 * 24 * time.Hour
)

// Range is a time range and the distance of the points in it. The first point is at
// From; none is later than now.
type Range struct {
	From, To time.Time
	Step     time.Duration
}

func (r Range) key() string { return fmt.Sprint(r.From.UnixMilli(), r.To.UnixMilli(), r.Step) }

// Series is one gauge over time: shares from 0 to 1; NaN without data.
type Series []float64

// History contains the gauges of a pool over time.
type History struct {
	Times                  []time.Time
	GPU, Neuron            Series // nil for a pool without such devices
	GPUMemory, CPU, Memory Series
	// Warning is a sentence about incomplete data; empty for none.
	Warning string
}

// historyCache caches query results for historyTTL. Those of nodes are by node, so that one
// serves all pools. singleflight merges equal queries.
type historyCache struct {
	queries singleflight.Group
	slots   chan struct{} // limits concurrent queries

	mu      sync.Mutex
	results map[string]historyResult // by query and Range.key
}

// historyResult is the result of one query.
type historyResult struct {
	at      time.Time // of the query
	start   time.Time
	step    time.Duration
	points  int
	matrix  model.Matrix
	warning string
	err     error
}

func newHistoryCache() historyCache {
	return historyCache{results: map[string]historyResult{}, slots: make(chan struct{}, maxConcurrentQueries)}
}

// History returns the gauges of a pool over time; of all pools if pool is empty. It
// waits for Prometheus a second at most. Then it returns the previous result, or
// governance.Unavailable, and the query continues.
func (s *Service) History(ctx context.Context, r Range, inventory Inventory, pool string) (History, error) {
	r, err := s.valid(r)
	if err != nil {
		return History{}, err
	}
	result, err := s.historyResult(ctx, s.queries.history(), r)
	if err != nil {
		return History{}, err
	}
	h := result.history(result.sum(inventory, pool, s.nodeNames()), inventory.kinds(pool))
	h.Warning = result.warning
	return h, nil
}

// valid returns a range that ends now at the latest, or an error for one that is not queried.
func (s *Service) valid(r Range) (Range, error) {
	if now := s.o.Now(); r.To.After(now) && r.Step > 0 { // keep the points of r
		r.To = r.From.Add(now.Sub(r.From).Truncate(r.Step))
	}
	if length := r.To.Sub(r.From); r.Step < time.Second || length < 0 || length > longestRange || length/r.Step > maxPoints {
		return r, &governance.Error{Kind: governance.Invalid, Op: "query Prometheus", Message: "This range is not valid. Choose another one."}
	}
	return r, nil
}

// nodeNames returns the last Reading, which maps node addresses to names.
func (s *Service) nodeNames() *Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return &Reading{}
	}
	return s.last
}

// historyResult returns the result of a query for r from the cache or from Prometheus.
func (s *Service) historyResult(ctx context.Context, asked string, r Range) (historyResult, error) {
	cache, key := &s.histories, asked+" "+r.key()
	cache.mu.Lock()
	before, known := cache.results[key]
	cache.mu.Unlock()
	if known && s.o.Now().Sub(before.at) < historyTTL {
		return before, before.err
	}
	query := cache.queries.DoChan(key, func() (any, error) {
		cache.slots <- struct{}{}
		defer func() { <-cache.slots }()
		result := s.queryHistory(context.WithoutCancel(ctx), asked, r)
		cache.add(key, result)
		s.o.OnChange()
		return result, nil
	})
	wait := time.NewTimer(maxWait)
	defer wait.Stop()
	select {
	case answer := <-query:
		result := answer.Val.(historyResult)
		return result, result.err
	case <-wait.C:
	case <-ctx.Done():
	}
	if known && before.err == nil {
		return before, nil
	}
	return historyResult{}, &governance.Error{Kind: governance.Unavailable, Op: "query Prometheus", Message: "The history is loading from Prometheus. Reload the page in a moment.", Err: ctx.Err()}
}

// add adds a result and evicts the oldest one if the cache is full.
func (c *historyCache) add(key string, result historyResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, exists := c.results[key]; !exists && len(c.results) >= maxHistories {
		delete(c.results, slices.MinFunc(slices.Collect(maps.Keys(c.results)), func(a, b string) int { return c.results[a].at.Compare(c.results[b].at) }))
	}
	c.results[key] = result
}

func (s *Service) queryHistory(ctx context.Context, asked string, r Range) historyResult {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	result := historyResult{start: r.From, step: r.Step, points: int(r.To.Sub(r.From)/r.Step) + 1}
	value, warnings, err := s.api.QueryRange(ctx, asked, prometheus.Range{Start: r.From, End: r.To, Step: r.Step}, prometheus.WithTimeout(s.o.Timeout))
	result.at, result.warning = s.o.Now(), s.warningText(warnings)
	matrix, ok := value.(model.Matrix)
	if err == nil && !ok {
		err = errResultType
	}
	if err != nil {
		s.o.Warn("Prometheus range query failed", err)
		result.err = &governance.Error{Kind: governance.Unavailable, Op: "query Prometheus", Message: errorText(err, s.o.Timeout), Err: err}
		return result
	}
	result.matrix = matrix
	return result
}

// IdleTimes remembers since when tasks are idle. Its zero value knows none.
type IdleTimes struct {
	at    time.Time // of the last reading
	since map[string]time.Time
}

// Next takes the idle tasks of the next reading, and returns since when each is idle, by
// its task: for at least after, before which a reading says nothing, or since an earlier
// reading from which on it was idle in all. If more than after lies between two readings,
// the first says nothing about the second.
func (t *IdleTimes) Next(at time.Time, idle []IdleTask, after time.Duration) map[string]time.Time {
	since := make(map[string]time.Time, len(idle))
	for _, task := range idle {
		since[task.Task] = at.Add(-after)
		if before, was := t.since[task.Task]; was && at.Sub(t.at) <= after {
			since[task.Task] = before
		}
	}
	t.at, t.since = at, since
	return since
}
