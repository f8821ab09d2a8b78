package recorder

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks/queries"
)

const (
	minInterval    = 250 * time.Millisecond // between two samples
	heartbeat      = 5 * time.Second        // interval of samples while nothing changes
	forgetInterval = time.Hour              // between deletions of what exceeds the retention
	taskBatch      = 200                    // tasks per sample and per transaction
)

// Store is the part of history.Store that the recorder writes to.
type Store interface {
	RecordTasks(ctx context.Context, records []history.Record) error
	AppendSamples(ctx context.Context, samples []history.Sample) error
	RecordGap(ctx context.Context, gap history.Gap) error
	SampledUntil(ctx context.Context) (time.Time, error)
	LiveTasks(ctx context.Context) ([]history.Task, error)
	Forget(ctx context.Context, now time.Time) error
}

// Recorder records the cluster. Its fields must not change while it runs.
type Recorder struct {
	Store    Store
	Cluster  *cluster.Cluster
	Tasks    *queries.Service
	Capacity *capacity.Service
	Log      *slog.Logger
	// Clock is the system clock; nil is time.Now.
	Clock func() time.Time

	mu    sync.Mutex
	state State
}

// State is the state of a Recorder.
type State struct {
	Since        time.Time // when recording began; zero before
	WrittenUntil time.Time // time of the last sample that was written; zero before the first
	Pending      int       // samples, gaps and tasks that are not written yet
	LastError    string    // of the last attempt to write; empty if it succeeded
}

// State returns the current state. It is safe for concurrent use.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Run records until ctx ends. It first waits for the caches and the database.
func (r *Recorder) Run(ctx context.Context) error {
	if r.Clock == nil {
		r.Clock = time.Now
	}
	sampledUntil, err := r.waitForSync(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx ended while waiting
	}
	start := time.Now()
	s := &sampler{
		r:            r,
		clock:        newClock(func() time.Time { return r.Clock().Round(0) }, func() time.Duration { return time.Since(start) }, sampledUntil),
		buffer:       newBuffer(),
		sampledUntil: sampledUntil,
	}
	if now, _ := s.clock.now(); !sampledUntil.IsZero() {
		s.buffer.addGap(history.Gap{From: sampledUntil, To: now, Reason: "The console was not running or not connected to the cluster."})
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.write(ctx, s.buffer)
	}()
	s.run(ctx)
	<-written
	return nil
}

// waitForSync waits until the database and the caches answer, and returns the time
// of the last recorded sample.
func (r *Recorder) waitForSync(ctx context.Context) (sampledUntil time.Time, err error) {
	for {
		if sampledUntil, err = r.Store.SampledUntil(ctx); err == nil {
			break
		}
		r.update(func(s *State) { s.LastError = err.Error() })
		if err := sleep(ctx, retryInterval); err != nil {
			return sampledUntil, err
		}
	}
	r.update(func(s *State) { s.LastError, s.WrittenUntil = "", sampledUntil })
	for {
		if _, err := r.Capacity.Snapshot(ctx); err == nil && r.Tasks.Index.HasSynced() {
			r.update(func(s *State) { s.Since = r.Clock() })
			return sampledUntil, nil
		}
		if err := sleep(ctx, minInterval); err != nil {
			return sampledUntil, err
		}
	}
}

func (r *Recorder) update(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
}

// sleep returns after d, or with an error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// teamsByNamespace returns the teams by namespace.
func (r *Recorder) teamsByNamespace(ctx context.Context) (map[string]string, error) {
	reader, err := r.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	return clusterstate.Teams(ctx, reader)
}
