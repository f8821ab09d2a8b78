package history

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history/historytest"
)

// TestMonth measures the usage of a month of 1,000 teams whose usage changes every hour,
// and prints figures: as the page reads it, and a day as a file does.
func TestMonth(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	t.Run("SQLite", func(t *testing.T) { measureMonth(t, filepath.Join(t.TempDir(), "history.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { measureMonth(t, historytest.Start(t).Database(t)) })
}

func measureMonth(t *testing.T, url string) {
	s := open(t, url, Options{})
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	writeMonth(t, s, url, from)
	berlin := must[*time.Location](t)(time.LoadLocation("Europe/Berlin"))
	q := UsageQuery{Resource: "nvidia.com/gpu", Measures: []Measure{Physical, OwnBound, BorrowedBound, Outside, Unhealthy, Growth, OwnGrowth, LentToCohort}}
	whole := UsageQuery{Teams: []string{""}, Resource: q.Resource, Measures: q.Measures}
	month := func(zone *time.Location) (from, to time.Time) {
		return time.Date(2026, 10, 1, 0, 0, 0, 0, zone), time.Date(2026, 11, 1, 0, 0, 0, 0, zone)
	}
	for name, zone := range map[string]*time.Location{"utc": time.UTC, "berlin": berlin} {
		from, to := month(zone)
		var days []time.Time
		for at := from; !at.After(to); at = at.AddDate(0, 0, 1) {
			days = append(days, at)
		}
		for _, question := range []struct {
			name string
			ask  func() error
		}{
			{"month_teams", func() error { _, err := s.Usage(t.Context(), q, []time.Time{from, to}); return err }},
			{"month_chart", func() error { _, err := s.Usage(t.Context(), whole, days); return err }},
			{"day_teams", func() error { _, err := s.Usage(t.Context(), q, days[3:5]); return err }},
		} {
			var took []time.Duration
			for range 20 {
				begun := time.Now()
				ok(t, question.ask())
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			figure(s, "usage_"+question.name+"_"+name+"_p95", took[18].Seconds()*1000, "ms")
			if took[18] > wantP95 {
				t.Errorf("%s in %s: %s at p95, want at most %s", question.name, zone, took[18], wantP95)
			}
		}
	}
}

// writeMonth writes the rows of 1,000 teams with four measures each with SQL.
func writeMonth(t *testing.T, s *Store, url string, from time.Time) {
	driver, prepare := "pgx", []string{"SET statement_timeout = 0", "SET work_mem = '256MB'"}
	if s.dialect == sqlite {
		driver, prepare = "sqlite", []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -500000", "PRAGMA temp_store = MEMORY"}
	}
	db := must[*sql.DB](t)(sql.Open(driver, url))
	defer db.Close()
	db.SetMaxOpenConns(1)
	numbers := func(n int) string {
		if s.dialect == postgres {
			return fmt.Sprintf("WITH numbers AS (SELECT generate_series(0::BIGINT, %d) AS n) ", n-1)
		}
		return fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) ", n-1)
	}
	begin, hours := from.UnixMilli()-day, 33*24
	statements := prepare
	for _, m := range []Measure{OwnBound, BorrowedBound, Growth, LentToCohort} {
		statements = append(statements, numbers(yearTeams)+fmt.Sprintf("INSERT INTO holders (team, pool, resource, measure) SELECT 'team-' || CAST(n AS TEXT), 'a100', 'nvidia.com/gpu', '%s' FROM numbers", m))
	}
	for _, m := range []Measure{Physical, OwnBound, BorrowedBound, Outside, Unhealthy, Idle} {
		statements = append(statements, fmt.Sprintf("INSERT INTO holders (team, pool, resource, measure) VALUES ('', 'a100', 'nvidia.com/gpu', '%s')", m))
	}
	statements = append(statements,
		numbers(hours)+fmt.Sprintf(`INSERT INTO amount_hours (holder, start, times, amount_ms, known_ms)
			SELECT h.id, %d + n * 3600000, 1, (h.id * 7919 + n * 104729) %% 17 * 3600000, 3600000 FROM holders h CROSS JOIN numbers`, begin),
		"INSERT INTO amount_days SELECT holder, start - start % 86400000, 1, SUM(amount_ms), SUM(known_ms) FROM amount_hours GROUP BY 1, 2",
		"INSERT INTO amounts (holder, began, ended, amount) SELECT holder, start, start + 3600000, amount_ms / 3600000 FROM amount_hours",
		fmt.Sprintf("UPDATE state SET since = %[1]d, seen = %[2]d, detail = %[1]d", begin, begin+int64(hours)*hour))
	if s.dialect == postgres {
		statements = append(statements, "ANALYZE") // as the server does by itself
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
}
