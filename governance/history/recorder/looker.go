package recorder

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/history"
)

// looker sees what changes, and writes nothing itself, so that a slow database
// makes nothing less exact.
type looker struct {
	r     *Recorder
	clock *clock
	lines *lines
	last  map[history.SeriesKey]int64 // amounts that were told
	told  time.Time                   // until when
	away  time.Time                   // since when the API server does not answer; zero while it does
	swept bool                        // tasks that went while nobody looked are known
}

func (l *looker) run(ctx context.Context) {
	some, others := l.r.Cluster.TaskChanges.Subscribe(ctx), l.r.Cluster.AllocationChanges.Subscribe(ctx)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		l.look(ctx)
		if pause(ctx, pace) != nil {
			return
		}
		select { // a look that left tasks behind is followed by another
		case <-ctx.Done():
			return
		case <-some:
		case <-others:
		case <-beat.C:
		case <-l.lines.wanting():
		}
	}
}

func (l *looker) look(ctx context.Context) {
	if contact, ok := l.r.Cluster.Contact.Age(time.Now()); !ok {
		if l.away.IsZero() {
			now, _ := l.clock.now()
			l.away = later(l.told, now.Add(-contact))
		}
		return
	}
	l.amounts(ctx)
	l.tasks(ctx)
}

// amounts notes who holds what, where that changed, and else until when it is so.
func (l *looker) amounts(ctx context.Context) {
	snapshot, err := l.r.Capacity.Snapshot(ctx)
	now, leapt := l.clock.now()
	switch {
	case err != nil: // such as a kind that went away
		if l.away.IsZero() {
			l.away = l.told
		}
		return
	case !l.away.IsZero():
		l.blind(l.away, now, "The API server did not answer.")
		l.away = time.Time{}
	case !leapt.IsZero():
		l.blind(later(l.told, leapt), now, "The system clock was set forward.")
	}
	if l.lines.overflown() && l.last != nil {
		l.blind(l.told, now, unwritten)
	}
	amounts := Amounts(snapshot)
	changed := changes(l.last, amounts)
	if len(changed) == 0 {
		// The API server answered since; a change that is under way will say so later.
		if now = earlier(now, l.contact(now)); !now.After(l.told) {
			return
		}
	}
	l.lines.moment(history.Sample{At: now, Amounts: changed})
	l.last, l.told = amounts, now
}

// contact is when the API server answered last.
func (l *looker) contact(now time.Time) time.Time {
	age, _ := l.r.Cluster.Contact.Age(time.Now())
	return now.Add(-age).Truncate(time.Millisecond)
}

// blind notes a time of which nothing is known. All amounts are told anew.
func (l *looker) blind(from, to time.Time, why string) {
	l.lines.gap(history.Gap{From: from, To: to, Reason: why})
	l.last, l.told = nil, to
}

// tasks notes what changed of tasks.
func (l *looker) tasks(ctx context.Context) {
	if !l.lines.takes() {
		return
	}
	teams, err := l.r.teams(ctx)
	if err != nil {
		return
	}
	if !l.swept {
		l.swept = l.sweep(ctx)
	}
	seen := l.r.Tasks.TakeChanged(batch)
	records := make([]history.Record, len(seen))
	for i := range seen {
		records[i] = record(seen[i], teams)
	}
	l.lines.records(records, len(seen) == batch)
}

// sweep notes the tasks that left the cluster while nobody looked.
func (l *looker) sweep(ctx context.Context) bool {
	there, err := l.r.Store.LiveTasks(ctx)
	if err != nil {
		return false
	}
	now, _ := l.clock.now()
	var gone []history.Record
	for _, t := range there {
		if !l.r.Tasks.HasTask(t.Namespace, t.UID) {
			t.DeletedAt = now
			gone = append(gone, history.Record{Task: t})
		}
	}
	l.lines.records(gone, true)
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
