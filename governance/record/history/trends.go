package history

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// TrendKey is what Trends groups tasks by.
type TrendKey string

// The groups of trends.
const (
	ByClass TrendKey = "class" // priority class; "" is none
	ByTeam  TrendKey = "team"  // "" is none
)

// Trend is what happened to the tasks of one group in one interval.
type Trend struct {
	Waits       int64 // that ended
	Median, P90 time.Duration
	Failures    int64 // tasks that failed
	Preemptions int64
}

// Trends returns, by group, the trend of each of buckets equal intervals of [from, to),
// of these teams or, for nil, of all. Waits count by their end and without those of
// preemption loops. Median and P90 are waits that occurred: at most half, and a tenth, of
// the waits of the interval were longer.
func (s *Store) Trends(ctx context.Context, by TrendKey, teams []string, from, to time.Time, buckets int) (map[string][]Trend, error) {
	found := map[string][]Trend{}
	if by != ByClass && by != ByTeam || buckets < 1 || !from.Before(to) || teams != nil && len(teams) == 0 {
		return found, nil
	}
	begin, length := toMillis(from), max(1, to.Sub(from).Milliseconds()/int64(buckets))
	end := begin + length*int64(buckets)
	var where conditions
	if teams != nil {
		where.in("team", teams)
	}
	args := append([]any{begin, length, begin, end}, where.args...)
	err := s.read(ctx, "compute trends", func(t *tx) error {
		// set calls do with the trend of each row of a query, whose last columns are read to into.
		set := func(query string, do func(*Trend), into ...any) error {
			return t.query(query, args, func(scan scanFunc) error {
				var bucket int64
				var group string
				if err := scan(append([]any{&bucket, &group}, into...)...); err != nil {
					return err
				}
				if found[group] == nil {
					found[group] = make([]Trend, buckets)
				}
				do(&found[group][bucket])
				return nil
			})
		}
		var n int64
		var median, p90 time.Duration
		waits := fmt.Sprintf(`SELECT bucket, name, n, MIN(CASE WHEN place * 2 >= n THEN took END), MIN(CASE WHEN place * 10 >= n * 9 THEN took END)
			FROM (SELECT bucket, name, took, COUNT(*) OVER (PARTITION BY bucket, name) AS n,
					ROW_NUMBER() OVER (PARTITION BY bucket, name ORDER BY took) AS place
				FROM (SELECT (ended - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name, ended - began AS took
					FROM spans WHERE kind = 'wait' AND looped = 0 AND ended >= ? AND ended < ? AND %s) AS waits) AS places
			GROUP BY bucket, name, n`, by, where.String())
		if err := set(waits, func(t *Trend) { t.Waits, t.Median, t.P90 = n, median, p90 }, &n, durationColumn(&median), durationColumn(&p90)); err != nil {
			return err
		}
		failures := fmt.Sprintf(`SELECT bucket, name, COUNT(*) FROM (SELECT (ended - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name
			FROM tasks WHERE state = 'Failed' AND ended >= ? AND ended < ? AND %s) AS failed GROUP BY bucket, name`, by, where.String())
		if err := set(failures, func(t *Trend) { t.Failures = n }, &n); err != nil {
			return err
		}
		// One step stands for several preemptions within a second.
		preemptions := fmt.Sprintf(`SELECT bucket, name, CAST(SUM(n) AS BIGINT) FROM (SELECT (at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name,
				CASE WHEN nth_last >= nth_first AND nth_first > 0 THEN nth_last - nth_first + 1 ELSE 1 END AS n
			FROM steps JOIN tasks ON tasks.id = steps.task WHERE what = 'Preempted' AND at >= ? AND at < ? AND %s) AS preempted GROUP BY bucket, name`, by, where.String())
		return set(preemptions, func(t *Trend) { t.Preemptions = n }, &n)
	})
	return found, err
}

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
