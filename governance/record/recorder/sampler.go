package recorder

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
)

// sampler observes the cluster and adds what changed to the buffer. It does not
// write, so that a slow database does not delay samples. It runs in one goroutine.
type sampler struct {
	r            *Recorder
	clock        *clock
	buffer       *buffer
	snapshot     *capacity.Snapshot          // of the last sample
	last         map[history.SeriesKey]int64 // its amounts; nil after a gap
	sampledUntil time.Time
	lostAt       time.Time // begin of a gap that has not ended; zero for none
	lostReason   string    // of that gap
	deletedFound bool      // tasks that were deleted while no console ran are recorded
}

func (s *sampler) run(ctx context.Context) {
	tasksChanged, allocationsChanged := s.r.Cluster.TaskChanges.Subscribe(ctx), s.r.Cluster.AllocationChanges.Subscribe(ctx)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		began := time.Now()
		s.sample(ctx)
		if governance.Sleep(ctx, max(minInterval, 3*time.Since(began))) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tasksChanged:
		case <-allocationsChanged:
		case <-beat.C:
		case <-s.buffer.wantTasks: // the last sample left changed tasks behind
		}
	}
}

func (s *sampler) sample(ctx context.Context) {
	if age, ok := s.r.Cluster.Contact.Age(time.Now()); !ok {
		if s.lostAt.IsZero() {
			now, _ := s.clock.now()
			s.lostAt, s.lostReason = governance.Later(s.sampledUntil, now.Add(-age)), reasonUnreachable
		}
		return
	}
	s.sampleAmounts(ctx)
	teams, err := s.r.teams(ctx)
	if err != nil {
		return
	}
	s.sampleTasks(ctx, teams)
	s.sampleScales(ctx, teams)
}

// sampleAmounts adds a sample of the amounts that changed. If none did, it extends
// the time until which the last sample is valid.
func (s *sampler) sampleAmounts(ctx context.Context) {
	snapshot, err := s.r.Capacity.Snapshot(ctx)
	now, beforeLeap := s.clock.now()
	switch {
	case err != nil: // such as a kind that was removed
		if s.lostAt.IsZero() {
			s.lostAt, s.lostReason = s.sampledUntil, reasonUnreachable
		}
		return
	case !s.lostAt.IsZero():
		s.addGap(s.lostAt, now, s.lostReason)
		s.lostAt = time.Time{}
	case !beforeLeap.IsZero():
		s.addGap(governance.Later(s.sampledUntil, beforeLeap), now, "The system clock was set forward.")
	}
	if s.buffer.takeOverflow() && s.last != nil {
		s.addGap(s.sampledUntil, now, reasonUnwritten)
	}
	amounts, changed := s.last, []history.Amount(nil)
	if snapshot != s.snapshot || s.last == nil {
		amounts = Amounts(snapshot)
		changed = diffAmounts(s.last, amounts)
		s.snapshot = snapshot
	}
	if len(changed) == 0 {
		// Only until the API server last answered: later changes may be under way.
		if now = governance.Earlier(now, s.lastContact(now)); !now.After(s.sampledUntil) {
			return
		}
	}
	s.buffer.addSample(history.Sample{At: now, Amounts: changed})
	s.last, s.sampledUntil = amounts, now
}

// lastContact returns when the API server last answered.
func (s *sampler) lastContact(now time.Time) time.Time {
	age, _ := s.r.Cluster.Contact.Age(time.Now())
	return now.Add(-age).Truncate(time.Millisecond)
}

// addGap adds a gap. The next sample contains all amounts.
func (s *sampler) addGap(from, to time.Time, reason string) {
	s.buffer.addGap(history.Gap{From: from, To: to, Reason: reason})
	s.last, s.sampledUntil = nil, to
}

// sampleTasks adds the records of changed tasks.
func (s *sampler) sampleTasks(ctx context.Context, teams clusterstate.Teams) {
	if !s.buffer.acceptsTasks() {
		return
	}
	if !s.deletedFound {
		s.deletedFound = s.findDeleted(ctx)
	}
	changed := s.r.Tasks.Index.TakeChanged(taskBatch)
	records := make([]history.Record, len(changed))
	for i := range changed {
		records[i] = newRecord(changed[i], teams)
	}
	s.buffer.addTasks(records, len(changed) == taskBatch)
}

// sampleScales adds the scale events that were noted.
func (s *sampler) sampleScales(ctx context.Context, teams clusterstate.Teams) {
	space := s.buffer.scaleSpace()
	if space == 0 {
		return
	}
	var events []history.ScaleEvent
	for _, noted := range s.r.scales.take(space) {
		events = append(events, newScaleEvent(noted, teams, s.r.Tasks.Index.ByWorkload))
	}
	s.buffer.addScales(events)
}

// findDeleted records the deletion of tasks that were deleted while no console ran.
func (s *sampler) findDeleted(ctx context.Context) bool {
	live, err := s.r.Store.LiveTasks(ctx)
	if err != nil {
		return false
	}
	now, _ := s.clock.now()
	var deleted []history.Record
	for _, t := range live {
		if !s.r.Tasks.Index.Exists(tasks.Key{Namespace: t.Namespace, UID: t.UID}) {
			t.DeletedAt = now
			deleted = append(deleted, history.Record{Task: t})
		}
	}
	s.buffer.addTasks(deleted, true)
	return true
}

// maxDrift is how far the system clock may run ahead of the monotonic clock before
// it counts as set forward.
const maxDrift = 2 * time.Second

// clock returns times that never go back, in whole milliseconds.
type clock struct {
	wall      func() time.Time     // the system clock
	monotonic func() time.Duration // since a fixed moment; it cannot be set
	base      time.Time            // time at monotonic == offset
	offset    time.Duration
	last      time.Time
}

// newClock returns a clock that starts at notBefore if the system clock is behind
// it, for example because an earlier console wrote while its clock was ahead.
func newClock(wall func() time.Time, monotonic func() time.Duration, notBefore time.Time) *clock {
	return &clock{wall: wall, monotonic: monotonic, base: governance.Later(wall(), notBefore), offset: monotonic()}
}

// now returns the time. If the system clock was set forward, now follows it and
// beforeLeap is the time before that; otherwise beforeLeap is zero. If the system
// clock was set back, now advances with the monotonic clock until the system clock
// has caught up.
func (c *clock) now() (now, beforeLeap time.Time) {
	monotonic := c.monotonic()
	now = c.base.Add(monotonic - c.offset)
	if wall := c.wall(); wall.Sub(now) > maxDrift {
		beforeLeap = now.Truncate(time.Millisecond)
		c.base, c.offset, now = wall, monotonic, wall
	}
	now = governance.Later(now.Truncate(time.Millisecond), c.last)
	c.last = now
	return now, beforeLeap
}
