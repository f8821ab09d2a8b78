package history

import (
	"context"
	"slices"
	"time"
)

// Estimate is an estimate of when a Workload starts: the first one for each.
type Estimate struct {
	WorkloadUID, TaskUID string
	Team, PriorityClass  string
	MadeAt               time.Time
	Low, High            time.Duration // the range, from MadeAt on
	Forecast             time.Duration // the wait from MadeAt on
	StartedAt            time.Time     // zero if it has not started; RecordEstimates ignores it
	Ended                bool          // the task was deleted or finished; RecordEstimates ignores it
}

// row returns the columns of an estimate that is made.
func (e *Estimate) row() []any {
	return []any{&e.WorkloadUID, &e.TaskUID, &e.Team, &e.PriorityClass, timeColumn(&e.MadeAt), durationColumn(&e.Low), durationColumn(&e.High), durationColumn(&e.Forecast)}
}

// RecordEstimates records the estimates of Workloads that have none yet.
func (s *Store) RecordEstimates(ctx context.Context, estimates []Estimate) error {
	var rows [][]any
	seen := map[string]bool{}
	for _, e := range estimates {
		if !seen[e.WorkloadUID] {
			seen[e.WorkloadUID] = true
			rows = append(rows, e.row())
		}
	}
	return s.write(ctx, "record estimates", func(t *tx) error {
		return t.insert("estimates (part, task, team, class, made, low_ms, high_ms, forecast_ms)", rows, "ON CONFLICT (part) DO NOTHING", nil)
	})
}

// Estimates returns the latest estimates with what happened, the latest first.
func (s *Store) Estimates(ctx context.Context, limit int) ([]Estimate, error) {
	row := func(e *Estimate) []any { return append(e.row(), timeColumn(&e.StartedAt), &e.Ended) }
	return readList(ctx, s, "list estimates", row, `SELECT e.part, e.task, e.team, e.class, e.made, e.low_ms, e.high_ms, e.forecast_ms,
			COALESCE((SELECT MIN(s.ended) FROM spans s WHERE s.part = e.part AND s.kind = 'wait' AND s.ended >= e.made), 0),
			CASE WHEN t.gone > 0 OR t.ended > 0 THEN 1 ELSE 0 END
		FROM estimates e LEFT JOIN tasks t ON t.uid = e.task ORDER BY e.made DESC, e.part LIMIT ?`, limit)
}

// RunTime is how long a task ran at its end, from its last admission on.
type RunTime struct {
	Name, Team, PriorityClass string
	Ran                       time.Duration
}

// RunTimes returns the last run of each of the tasks that were submitted last and have
// ended: limit tasks at most. Runs that Kueue ended are not contained, because the
// tasks run again.
func (s *Store) RunTimes(ctx context.Context, limit int) (found []RunTime, err error) {
	row := func(r *RunTime) []any { return []any{&r.Name, &r.Team, &r.PriorityClass, durationColumn(&r.Ran)} }
	found, err = readList(ctx, s, "list run times", row, `SELECT name, team, class, tasks.ran_ms - COALESCE((SELECT CAST(SUM(steps.ran_ms) AS BIGINT) FROM steps WHERE steps.task = tasks.id AND steps.ran_ms > 0), 0)
		FROM tasks WHERE (ended > 0 OR gone > 0) AND tasks.ran_ms > 0 ORDER BY submitted DESC LIMIT ?`, limit)
	return slices.DeleteFunc(found, func(r RunTime) bool { return r.Ran <= 0 }), err
}
