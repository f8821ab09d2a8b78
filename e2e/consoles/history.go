package consoles

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history"

	"github.com/jackc/pgx/v5"
)

// CheckGaps fails the test unless there are at least so many gaps in history, none
// longer than longest. It returns the length of the longest.
func CheckGaps(t testing.TB, store *history.Store, from time.Time, atLeast int, longest time.Duration) (most time.Duration) {
	t.Helper()
	gaps, err := store.Gaps(t.Context(), from, time.Now().Add(time.Hour))
	must(t, err)
	for _, gap := range gaps {
		t.Logf("gap of %s from %s: %s", gap.To.Sub(gap.From).Round(time.Millisecond), gap.From.Format(time.TimeOnly), gap.Reason)
		most = max(most, gap.To.Sub(gap.From))
		if gap.To.Sub(gap.From) > longest {
			t.Errorf("gap from %s to %s: got %s, want at most %s", gap.From, gap.To, gap.To.Sub(gap.From), longest)
		}
	}
	if len(gaps) < atLeast {
		t.Errorf("got %d gaps, want one for each of %d changes of the leader", len(gaps), atLeast)
	}
	return most
}

// CheckIntervals fails the test if a usage interval is recorded twice, or if time is
// missing that is no gap.
func CheckIntervals(t testing.TB, database string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), database)
	must(t, err)
	defer connection.Close(context.Background()) //nolint:errcheck // the test ends
	rows, err := connection.Query(t.Context(), `
		WITH intervals AS (
			SELECT holder, began, ended, lag(ended) OVER (PARTITION BY holder ORDER BY began, ended) AS before
			FROM (SELECT holder, began, ended FROM amounts UNION ALL SELECT holder, began, (SELECT greatest(seen, began) FROM state) FROM open_amounts) AS both_kinds
		)
		SELECT concat_ws(' ', h.team, h.pool, h.resource, h.measure), before, began FROM intervals JOIN holders h ON h.id = holder
		WHERE before > began OR before < began AND NOT EXISTS (SELECT FROM gaps g WHERE g.began <= before AND g.ended >= intervals.began)
		ORDER BY began LIMIT 10`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var holder string
		var before, began int64
		must(t, rows.Scan(&holder, &before, &began))
		if before > began {
			t.Errorf("series %s: intervals overlap by %dms at %s", holder, before-began, time.UnixMilli(began))
		} else {
			t.Errorf("series %s: %dms before %s are neither recorded nor a gap", holder, began-before, time.UnixMilli(began))
		}
	}
	must(t, rows.Err())
}

// CheckTasks fails the test unless each task is recorded with one wait and one run.
func CheckTasks(t testing.TB, store *history.Store, team string, from time.Time, tasks int) {
	t.Helper()
	clustertest.Eventually(t, Patience, func(ctx context.Context) error {
		sums, err := store.ClassStats(ctx, []string{team}, from, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		var waits, runs int64
		for _, s := range sums {
			waits, runs = waits+s.Waits, runs+s.Runs
		}
		if waits != int64(tasks) || runs != int64(tasks) {
			return fmt.Errorf("recorded %d waits and %d runs of %d tasks", waits, runs, tasks)
		}
		return nil
	})
}
