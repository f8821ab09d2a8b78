package recorder

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/queries"
)

const (
	minInterval    = 250 * time.Millisecond // between two samples
	heartbeat      = 3 * time.Second        // interval of samples while nothing changes; part of the gap when another replica takes over
	forgetInterval = time.Hour              // between deletions of what exceeds the retention
	taskBatch      = 200                    // tasks per sample and per transaction
	followInterval = 5 * time.Second        // between reads of what the leader recorded
	// takeoverMemory is how long a replica that does not lead remembers deleted tasks
	// and scale events, for the case that the leader ends before it recorded them.
	takeoverMemory = time.Minute
)

// Store is the part of history.Store that the recorder writes to.
type Store interface {
	history.Asider
	RecordTasks(ctx context.Context, records []history.Record) error
	RecordScaleEvents(ctx context.Context, events []history.ScaleEvent) (added []history.ScaleEvent, err error)
	RecordTrainingStarts(ctx context.Context, starts []history.TrainingStart) error
	AppendSamples(ctx context.Context, samples []history.Sample) error
	RecordGap(ctx context.Context, gap history.Gap) error
	BeginTerm(ctx context.Context) (sampledUntil time.Time, err error)
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
	// Leader elects the replica that records; nil means that there is only one.
	Leader *leader.Leader
	// Trainings returns the last start of each training that Prometheus has; nil without one, and
	// while it has no data.
	Trainings func(ctx context.Context) []history.TrainingStart
	// Clock is the system clock; nil is time.Now.
	Clock func() time.Time

	scales scaleLog

	mu    sync.Mutex
	state State
}

// Observe makes the recorder note from now on what changes. It is called before the
// cluster runs.
func (r *Recorder) Observe() {
	r.Tasks.Index.Record()
	r.Cluster.HandleElasticJobs(&r.scales)
}

// State is the state of a Recorder.
type State struct {
	Since        time.Time // when this replica began to record; zero while it does not
	WrittenUntil time.Time // time of the last sample that was written, also by another replica; zero before the first
	Pending      int       // samples, gaps and tasks that are not written yet
	LastError    string    // of the last attempt to write; empty if it succeeded
}

// State returns the current state. It is safe for concurrent use.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Run records while this replica leads, until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	if r.Clock == nil {
		r.Clock = time.Now
	}
	if r.Leader != nil {
		go r.follow(ctx)
	}
	again := false
	r.Leader.Lead(ctx, func(ctx context.Context) {
		if again { // what was not written then may be unknown to others
			r.Tasks.Index.RecordAll()
		}
		again = true
		r.scales.noteAll()
		r.record(ctx)
		r.update(func(s *State) { s.Since, s.Pending, s.LastError = time.Time{}, 0, "" })
		pending.Set(0)
		_ = governance.Sleep(ctx, retryInterval) // another replica began to record, although this one leads
	})
	return nil
}

// follow reads what another replica recorded, while this one does not lead.
func (r *Recorder) follow(ctx context.Context) {
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, followInterval) {
		if r.Leader.State().Leads {
			continue
		}
		r.Tasks.Index.ForgetDeleted(r.Clock().Add(-takeoverMemory))
		r.scales.forget(r.Clock().Add(-takeoverMemory))
		sampledUntil, err := r.Store.SampledUntil(ctx)
		r.update(func(s *State) {
			switch {
			case !s.Since.IsZero(): // it records now
			case err != nil:
				s.LastError = err.Error()
			default:
				s.LastError, s.WrittenUntil = "", sampledUntil
				writtenUntil.Store(max(writtenUntil.Load(), sampledUntil.UnixMilli()))
			}
		})
	}
}

// record records until ctx ends or another replica begins a term. It first waits for
// the caches and the database.
func (r *Recorder) record(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sampledUntil, err := r.waitForSync(ctx)
	if err != nil {
		return // ctx ended while waiting
	}
	start := time.Now()
	s := &sampler{
		r:            r,
		clock:        newClock(func() time.Time { return r.Clock().Round(0) }, func() time.Duration { return time.Since(start) }, sampledUntil),
		buffer:       newBuffer(),
		sampledUntil: sampledUntil,
		lostAt:       sampledUntil, // the gap ends with the first sample
		lostReason:   reasonNotRecording,
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		r.write(ctx, s.buffer)
	}()
	var recording sync.WaitGroup
	recording.Go(func() { r.recordStarts(ctx) })
	s.run(ctx)
	<-written
	recording.Wait()
}

// Reasons of gaps.
const (
	reasonNotRecording = "The console was not running, not connected to the cluster, or another replica took over."
	reasonUnreachable  = "The API server did not answer."
)

// waitForSync waits until the caches and the database answer, begins a term in the
// database, and returns the time of the last recorded sample.
func (r *Recorder) waitForSync(ctx context.Context) (sampledUntil time.Time, err error) {
	for {
		if _, err := r.Capacity.Snapshot(ctx); err == nil && r.Tasks.Index.HasSynced() {
			break
		}
		if err := governance.Sleep(ctx, minInterval); err != nil {
			return sampledUntil, err
		}
	}
	for {
		if sampledUntil, err = r.Store.BeginTerm(ctx); err == nil {
			r.update(func(s *State) { s.LastError, s.WrittenUntil, s.Since = "", sampledUntil, r.Clock() })
			return sampledUntil, nil
		}
		r.update(func(s *State) { s.LastError = err.Error() })
		if err := governance.Sleep(ctx, retryInterval); err != nil {
			return sampledUntil, err
		}
	}
}

func (r *Recorder) update(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
}

// teams reads the teams.
func (r *Recorder) teams(ctx context.Context) (clusterstate.Teams, error) {
	reader, err := r.Cluster.Reader()
	if err != nil {
		return clusterstate.Teams{}, err
	}
	return clusterstate.ReadTeams(ctx, reader)
}
