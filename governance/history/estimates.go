package history

import (
	"context"
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

// RecordEstimates records the estimates of Workloads that have none yet.
func (s *Store) RecordEstimates(ctx context.Context, estimates []Estimate) error {
	var rows [][]any
	seen := map[string]bool{}
	for _, e := range estimates {
		if !seen[e.WorkloadUID] {
			seen[e.WorkloadUID] = true
			rows = append(rows, []any{e.WorkloadUID, e.TaskUID, e.Team, e.PriorityClass, toMillis(e.MadeAt), e.Low.Milliseconds(), e.High.Milliseconds(), e.Forecast.Milliseconds()})
		}
	}
	return s.write(ctx, "record estimates", func(t *tx) error {
		return t.insert("estimates (part, task, team, class, made, low_ms, high_ms, forecast_ms)", rows, "ON CONFLICT (part) DO NOTHING", nil)
	})
}

// Estimates returns the latest estimates with what happened, the latest first.
func (s *Store) Estimates(ctx context.Context, limit int) (found []Estimate, err error) {
	err = s.read(ctx, "list estimates", func(t *tx) error {
		query := `SELECT e.part, e.task, e.team, e.class, e.made, e.low_ms, e.high_ms, e.forecast_ms,
				COALESCE((SELECT MIN(s.ended) FROM spans s WHERE s.part = e.part AND s.kind = 'wait' AND s.ended >= e.made), 0),
				CASE WHEN t.gone > 0 OR t.ended > 0 THEN 1 ELSE 0 END
			FROM estimates e LEFT JOIN tasks t ON t.uid = e.task ORDER BY e.made DESC, e.part LIMIT ?`
		return t.query(query, []any{limit}, func(scan scanFunc) error {
			var e Estimate
			var made, low, high, forecast, started int64
			err := scan(&e.WorkloadUID, &e.TaskUID, &e.Team, &e.PriorityClass, &made, &low, &high, &forecast, &started, &e.Ended)
			e.MadeAt, e.StartedAt = fromMillis(made), fromMillis(started)
			e.Low, e.High, e.Forecast = time.Duration(low)*time.Millisecond, time.Duration(high)*time.Millisecond, time.Duration(forecast)*time.Millisecond
			found = append(found, e)
			return err
		})
	})
	return found, err
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
	err = s.read(ctx, "list run times", func(t *tx) error {
		query := `SELECT name, team, class, tasks.ran_ms - COALESCE((SELECT CAST(SUM(steps.ran_ms) AS BIGINT) FROM steps WHERE steps.task = tasks.id AND steps.ran_ms > 0), 0)
			FROM tasks WHERE (ended > 0 OR gone > 0) AND tasks.ran_ms > 0 ORDER BY submitted DESC LIMIT ?`
		return t.query(query, []any{limit}, func(scan scanFunc) error {
			var r RunTime
			var ran int64
			err := scan(&r.Name, &r.Team, &r.PriorityClass, &ran)
			if r.Ran = time.Duration(ran) * time.Millisecond; ran > 0 {
				found = append(found, r)
			}
			return err
		})
	})
	return found, err
}
