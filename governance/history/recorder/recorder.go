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
	"kuota.dev/kuota/governance/tasks"
)

const (
	pace      = 250 * time.Millisecond // the least time between two looks
	heartbeat = 5 * time.Second        // the longest, while nothing changes
	forgets   = time.Hour              // how often what is too old is dropped
	batch     = 200                    // tasks at a look
)

// Store is what the recorder asks of a history.
type Store interface {
	RecordTasks(ctx context.Context, records []history.Record) error
	AppendSamples(ctx context.Context, moments []history.Sample) error
	RecordGap(ctx context.Context, gap history.Gap) error
	SampledUntil(ctx context.Context) (time.Time, error)
	LiveTasks(ctx context.Context) ([]history.Task, error)
	Forget(ctx context.Context, now time.Time) error
}

// Recorder writes down what it sees of the cluster.
type Recorder struct {
	Store    Store
	Cluster  *cluster.Cluster
	Tasks    *tasks.Service
	Capacity *capacity.Service
	Log      *slog.Logger
	// Wall is the machine's clock; nil is time.Now.
	Clock func() time.Time

	mu    sync.Mutex
	state State
}

// State is how the recorder does.
type State struct {
	Since        time.Time // when it began; zero before
	WrittenUntil time.Time // until when amounts are written; zero before the first
	Pending      int       // moments and tasks that are seen and not written yet
	LastError    string    // why the last attempt to write failed; empty when it did not
}

// State is how it does now.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Run records until ctx ends. It waits for the cluster and for the database.
func (r *Recorder) Run(ctx context.Context) error {
	if r.Clock == nil {
		r.Clock = time.Now
	}
	seen, err := r.begin(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx ended while waiting
	}
	start := time.Now()
	l := &looker{r: r, clock: newClock(func() time.Time { return r.Clock().Round(0) }, func() time.Duration { return time.Since(start) }, seen), lines: &lines{}, told: seen}
	if now, _ := l.clock.now(); !seen.IsZero() {
		l.lines.gap(history.Gap{From: seen, To: now, Reason: "The console was not running or not connected to the cluster."})
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.write(ctx, l.lines)
	}()
	l.run(ctx)
	<-written
	return nil
}

// begin waits until the database says until when it knows everything, and until
// all of the cluster is known.
func (r *Recorder) begin(ctx context.Context) (seen time.Time, err error) {
	for {
		if seen, err = r.Store.SampledUntil(ctx); err == nil {
			break
		}
		r.tell(func(s *State) { s.LastError = err.Error() })
		if err := pause(ctx, retry); err != nil {
			return seen, err
		}
	}
	r.tell(func(s *State) { s.LastError, s.WrittenUntil = "", seen })
	for {
		if _, err := r.Capacity.Snapshot(ctx); err == nil && r.Tasks.HasSynced() {
			r.tell(func(s *State) { s.Since = r.Clock() })
			return seen, nil
		}
		if err := pause(ctx, pace); err != nil {
			return seen, err
		}
	}
}

func (r *Recorder) tell(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// teams are the teams by their namespaces.
func (r *Recorder) teams(ctx context.Context) (map[string]string, error) {
	reader, err := r.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	return clusterstate.Teams(ctx, reader)
}
