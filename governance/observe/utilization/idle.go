package utilization

import "time"

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
