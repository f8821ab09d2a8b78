package history

import (
	"context"
	"fmt"
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
	at := func(group string, bucket int64) *Trend {
		if found[group] == nil {
			found[group] = make([]Trend, buckets)
		}
		return &found[group][bucket]
	}
	where, of := "", []any{}
	if teams != nil {
		where = " AND team IN (" + placeholders(len(teams)) + ")"
		for _, team := range teams {
			of = append(of, team)
		}
	}
	args := append([]any{begin, length, begin, end}, of...)
	err := s.read(ctx, "compute trends", func(t *tx) error {
		waits := fmt.Sprintf(`SELECT bucket, name, n, MIN(CASE WHEN place * 2 >= n THEN took END), MIN(CASE WHEN place * 10 >= n * 9 THEN took END)
			FROM (SELECT bucket, name, took, COUNT(*) OVER (PARTITION BY bucket, name) AS n,
					ROW_NUMBER() OVER (PARTITION BY bucket, name ORDER BY took) AS place
				FROM (SELECT (ended - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name, ended - began AS took
					FROM spans WHERE kind = 'wait' AND looped = 0 AND ended >= ? AND ended < ?%s) AS waits) AS places
			GROUP BY bucket, name, n`, by, where)
		if err := t.query(waits, args, func(scan scanFunc) error {
			var bucket, n, median, p90 int64
			var name string
			if err := scan(&bucket, &name, &n, &median, &p90); err != nil {
				return err
			}
			trend := at(name, bucket)
			trend.Waits, trend.Median, trend.P90 = n, time.Duration(median)*time.Millisecond, time.Duration(p90)*time.Millisecond
			return nil
		}); err != nil {
			return err
		}
		failures := fmt.Sprintf(`SELECT bucket, name, COUNT(*) FROM (SELECT (ended - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name
			FROM tasks WHERE state = 'Failed' AND ended >= ? AND ended < ?%s) AS failed GROUP BY bucket, name`, by, where)
		if err := t.query(failures, args, func(scan scanFunc) error {
			return scanTrend(scan, func(name string, bucket, n int64) { at(name, bucket).Failures = n })
		}); err != nil {
			return err
		}
		// One step stands for several preemptions within a second.
		preemptions := fmt.Sprintf(`SELECT bucket, name, CAST(SUM(n) AS BIGINT) FROM (SELECT (at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS bucket, %s AS name,
				CASE WHEN nth_last >= nth_first AND nth_first > 0 THEN nth_last - nth_first + 1 ELSE 1 END AS n
			FROM steps JOIN tasks ON tasks.id = steps.task WHERE what = 'Preempted' AND at >= ? AND at < ?%s) AS preempted GROUP BY bucket, name`, by, where)
		return t.query(preemptions, args, func(scan scanFunc) error {
			return scanTrend(scan, func(name string, bucket, n int64) { at(name, bucket).Preemptions = n })
		})
	})
	return found, err
}

func scanTrend(scan scanFunc, set func(name string, bucket, n int64)) error {
	var bucket, n int64
	var name string
	err := scan(&bucket, &name, &n)
	if err == nil {
		set(name, bucket, n)
	}
	return err
}
