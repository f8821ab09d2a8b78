package history

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history/historytest"
)

// The year that is measured. KUOTA_YEAR_TASKS overrides yearTasks.
const (
	yearTeams = 1000
	yearTasks = 5_000_000
	yearHours = 365 * 24
	wantP95   = 500 * time.Millisecond
)

// TestYear measures the queries of pages on a year with many tasks, and prints figures.
func TestYear(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	tasks := yearTasks
	if text := os.Getenv("KUOTA_YEAR_TASKS"); text != "" {
		tasks = must[int](t)(strconv.Atoi(text))
	}
	t.Run("SQLite", func(t *testing.T) {
		measureYear(t, filepath.Join(t.TempDir(), "history.db"), tasks)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		measureYear(t, historytest.Start(t).Database(t), tasks)
	})
}

func figure(s *Store, name string, value float64, unit string) {
	fmt.Printf("figure history_%s_%s %.1f %s\n", name, strings.ToLower(s.name), value, unit)
}

func measureYear(t *testing.T, url string, tasks int) {
	ctx := context.Background()
	s := open(t, url, Options{})
	begun := time.Now()
	writeYear(t, s, url, tasks)
	figure(s, "year_made", time.Since(begun).Seconds(), "s")
	size := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if s.dialect == postgres {
		size = "SELECT pg_database_size(current_database())"
	}
	var bytes float64
	ok(t, s.reader.QueryRow(size).Scan(&bytes))
	figure(s, "year_size", bytes/1e6, "MB")

	r := rand.New(rand.NewPCG(7, 7))
	end := start.Add(yearHours * time.Hour)
	var all []SeriesKey
	for n := range yearTeams {
		all = append(all, SeriesKey{teamName(n), "a100", "nvidia.com/gpu", Used})
	}
	for _, question := range []struct {
		name string
		ask  func(from, to time.Time) error
	}{
		{"classes_all_teams", func(from, to time.Time) error { _, err := s.ClassStats(ctx, nil, from, to); return err }},
		{"classes_one_team", func(from, to time.Time) error {
			_, err := s.ClassStats(ctx, []string{teamName(r.IntN(yearTeams))}, from, to)
			return err
		}},
		{"classes_50_teams", func(from, to time.Time) error {
			var teams []string
			for range 50 {
				teams = append(teams, teamName(r.IntN(yearTeams)))
			}
			_, err := s.ClassStats(ctx, teams, from, to)
			return err
		}},
		{"series_one_team", func(from, to time.Time) error {
			h := all[r.IntN(yearTeams)]
			_, err := s.Series(ctx, []SeriesKey{h, {h.Team, h.Pool, h.Resource, Quota}}, from, to, 200)
			return err
		}},
		{"totals_one_team", func(from, to time.Time) error {
			h := all[r.IntN(yearTeams)]
			_, err := s.Totals(ctx, []SeriesKey{h, {h.Team, h.Pool, h.Resource, Quota}}, from, to)
			return err
		}},
		{"totals_all_teams", func(from, to time.Time) error { _, err := s.Totals(ctx, all, from, to); return err }},
		{"tasks_one_team", func(from, to time.Time) error {
			_, err := s.Tasks(ctx, Query{Teams: []string{teamName(r.IntN(yearTeams))}, From: from, To: to, Limit: 100})
			return err
		}},
	} {
		var took []time.Duration
		for n := range 120 {
			from, to := ordered(between(r, start, end), between(r, start, end))
			if n%3 == 0 { // the most frequent range: until now
				from, to = end.Add(-time.Duration(1+r.IntN(60*24))*time.Hour-time.Duration(r.IntN(3600))*time.Second), end
			}
			begun := time.Now()
			ok(t, question.ask(from, to))
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		p95 := took[len(took)*95/100]
		figure(s, question.name+"_p50", took[len(took)/2].Seconds()*1000, "ms")
		figure(s, question.name+"_p95", p95.Seconds()*1000, "ms")
		if p95 > wantP95 && question.name != "totals_all_teams" { // it sums up a thousand years
			t.Errorf("%s: %s at p95, want at most %s", question.name, p95, wantP95)
		}
	}
	var took []time.Duration
	for n := range 40 {
		var records []Record
		for k := range 200 {
			record := numbered(int64(n*200 + k))
			uid := fmt.Sprintf("%08x-%d", r.Uint32(), k) // UIDs have no order
			record.Task.UID, record.Task.Team = uid, teamName(r.IntN(yearTeams))
			for i := range record.Events {
				record.Events[i].WorkloadUID = uid
			}
			for i := range record.Spans {
				record.Spans[i].WorkloadUID = uid
			}
			records = append(records, record)
		}
		begun := time.Now()
		ok(t, s.RecordTasks(ctx, records))
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	figure(s, "record_200_tasks_p50", took[20].Seconds()*1000, "ms")
	figure(s, "record_200_tasks_p95", took[38].Seconds()*1000, "ms")
}

func teamName(n int) string { return fmt.Sprintf("team-%03d", n) }

// writeYear writes the rows of a year with SQL.
func writeYear(t *testing.T, s *Store, url string, tasks int) {
	driver, prepare := "pgx", []string{"SET statement_timeout = 0", "SET work_mem = '512MB'", "SET maintenance_work_mem = '512MB'"}
	if s.dialect == sqlite {
		driver, prepare = "sqlite", []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -1000000", "PRAGMA temp_store = MEMORY"}
	}
	db := must[*sql.DB](t)(sql.Open(driver, url))
	defer db.Close()
	db.SetMaxOpenConns(1)
	begin, length := start.UnixMilli(), int64(yearHours)*hour
	end := begin + length
	numbers := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) ", n-1)
	}
	if s.dialect == postgres {
		numbers = func(n int) string {
			return fmt.Sprintf("WITH numbers AS (SELECT generate_series(0::BIGINT, %d) AS n) ", n-1)
		}
	}
	// Hashes of n replace random numbers. Names take their leading zeros from 1000 + k.
	team := func(k string) string { return "'team-' || substr(CAST(1000 + " + k + " AS TEXT), 2)" }
	const hash, class = "((n * 2654435761) % 4294967291)", "CASE n % 5 WHEN 0 THEN 'high' WHEN 1 THEN 'low' ELSE 'normal' END"
	uid := "substr('0000000000' || CAST(" + hash + " AS TEXT), -10) || '-4000-8000-' || CAST(100000000000 + n AS TEXT)"
	if s.dialect == postgres {
		uid = "lpad(CAST(" + hash + " AS TEXT), 10, '0') || '-4000-8000-' || CAST(100000000000 + n AS TEXT)"
	}
	submitted := fmt.Sprintf("%d + n * %d / %d", begin, length, tasks)
	waited, ran := "("+hash+" % 1500) * ("+hash+" % 1511) * 2", "("+hash+" % 4001) * ("+hash+" % 4003)"
	sums := "SUM(waits), SUM(wait_ms), MAX(longest_wait), SUM(runs), SUM(run_ms), MAX(longest_run)"
	statements := []string{
		numbers(tasks) + `INSERT INTO tasks (uid, namespace, kind, name, team, class, priority, queue, state, pools, asked, submitted, ended, gone, preemptions, ran_ms)
			SELECT ` + uid + `, ` + team(hash+" % 1000") + `, 'Job', 'train-' || CAST(n % 9973 AS TEXT), ` + team(hash+" % 1000") + `, ` + class + `, 100, 'team', 'Succeeded',
				'["a100"]', '{"nvidia.com/gpu":8}', ` + submitted + `, ` + submitted + ` + ` + waited + ` + ` + ran + `, 0, 0, ` + ran + ` FROM numbers`,
		"INSERT INTO spans (part, kind, began, ended, team, class) SELECT uid, 'wait', submitted, ended - ran_ms, team, class FROM tasks",
		"INSERT INTO spans (part, kind, began, ended, team, class) SELECT uid, 'run', ended - ran_ms, ended, team, class FROM tasks",
		`INSERT INTO class_hours SELECT team, ended - ended % 3600000, class,
			SUM(CASE kind WHEN 'wait' THEN 1 ELSE 0 END), SUM(CASE kind WHEN 'wait' THEN ended - began ELSE 0 END), MAX(CASE kind WHEN 'wait' THEN ended - began ELSE 0 END),
			SUM(CASE kind WHEN 'run' THEN 1 ELSE 0 END), SUM(CASE kind WHEN 'run' THEN ended - began ELSE 0 END), MAX(CASE kind WHEN 'run' THEN ended - began ELSE 0 END)
			FROM spans GROUP BY 1, 2, 3`,
		"INSERT INTO class_hours SELECT '*', start, class, " + sums + " FROM class_hours GROUP BY start, class",
		"INSERT INTO class_days SELECT team, start - start % 86400000, class, " + sums + " FROM class_hours GROUP BY 1, 2, 3",
		numbers(yearTeams) + "INSERT INTO holders (team, pool, resource, measure) SELECT " + team("n") + ", 'a100', 'nvidia.com/gpu', 'held' FROM numbers",
		"INSERT INTO holders (team, pool, resource, measure) SELECT team, pool, resource, 'quota' FROM holders",
		fmt.Sprintf("INSERT INTO open_amounts (holder, began, amount) SELECT id, %d, 16 FROM holders WHERE measure = 'quota'", begin),
		numbers(yearHours) + fmt.Sprintf(`INSERT INTO amount_hours (holder, start, times, amount_ms, known_ms)
			SELECT h.id, %d + n * 3600000, 1, (h.id * 7919 + n * 104729) %% 17 * 3600000, 3600000 FROM holders h CROSS JOIN numbers WHERE h.measure = 'held'`, ceil(begin, hour)),
		"INSERT INTO amount_days SELECT holder, start - start % 86400000, 1, SUM(amount_ms), SUM(known_ms) FROM amount_hours GROUP BY 1, 2",
		numbers(35*24) + fmt.Sprintf(`INSERT INTO amounts (holder, began, ended, amount)
			SELECT h.id, %[1]d - (n + 1) * 3600000, %[1]d - n * 3600000, n %% 17 FROM holders h CROSS JOIN numbers WHERE h.measure = 'held'`, end),
		fmt.Sprintf("UPDATE state SET since = %d, seen = %d, detail = %d", begin, end, ceil(end-35*day, hour))}
	// Creating the indexes last takes a fraction of the time.
	drop, create := indexes(t, s)
	statements = slices.Concat(prepare, drop, statements, create)
	if s.dialect == postgres {
		statements = append(statements, "ANALYZE") // as the server does by itself
	}
	for _, statement := range statements {
		begun := time.Now()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Logf("%s: %.80s", took.Round(time.Second), statement[max(0, strings.Index(statement, "INSERT")):])
		}
	}
}

// indexes returns the statements that drop the indexes of large tables, and those
// that create them again.
func indexes(t *testing.T, s *Store) (drop, create []string) {
	query := "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('tasks', 'spans')"
	if s.dialect == postgres {
		query = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('tasks', 'spans') AND indexname NOT LIKE '%_pkey'"
	}
	rows := must[*sql.Rows](t)(s.reader.Query(query))
	defer rows.Close()
	for rows.Next() {
		var name, made string
		ok(t, rows.Scan(&name, &made))
		drop, create = append(drop, "DROP INDEX "+name), append(create, made)
	}
	ok(t, rows.Err())
	if len(drop) != 6 {
		t.Fatalf("indexes: %v", drop)
	}
	return drop, create
}
