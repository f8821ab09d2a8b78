package soak_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"

	"github.com/jackc/pgx/v5"
)

// runVariable is an environment variable that all processes of the run have.
const runVariable = "KUOTA_SOAK_RUN"

// TestSoak runs for the duration in KUOTA_SOAK, and then until the round of faults
// that has begun is complete.
func TestSoak(t *testing.T) {
	if os.Getenv(durationVariable) == "" {
		t.Skip("run by make soak")
	}
	total, err := time.ParseDuration(os.Getenv(durationVariable))
	if err != nil || total < time.Minute {
		t.Fatalf("%s=%s: want a duration of a minute or more, such as 30m", durationVariable, os.Getenv(durationVariable))
	}
	run := clustertest.Name("soak")
	t.Cleanup(func() { checkNoProcess(t, run) }) // runs last
	t.Setenv(runVariable, run)

	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	server := historytest.Start(t)
	database := server.Database(t)
	metrics := newPrometheus(t)
	a := consoles.New(t, c, "soak-a", database, "KUOTA_PROMETHEUS_URL="+metrics.url)
	a.WaitReady()
	a.WaitLeads(clustertest.Patience)
	b := consoles.New(t, c, "soak-b", database, "KUOTA_PROMETHEUS_URL="+metrics.url)
	b.WaitReady()
	admin := consoles.SignIn(t, a)
	l := newLoad(t, c)
	recordedFrom := time.Now().Add(-time.Hour)

	f := &faults{
		t: t, c: c, load: l, a: a, b: b, admin: admin, database: server, prometheus: metrics, plan: planOf(total),
		samplers: []*sampler{{replica: a}, {replica: b}}, longest: map[string]time.Duration{},
	}
	f.answering.Store(true)
	quietBefore, err := f.samplers[0].read(t.Context())
	must(t, err)

	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reading, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var background, open sync.WaitGroup
	for i := range streamCount {
		s := openStream(t, admin, l.page(i), []*consoles.Replica{f.replica(i), f.replica(i + 1)})
		f.pages = append(f.pages, s)
		open.Go(func() { s.run(reading) })
	}
	f.until("streams opened", 10*time.Second, (*stream).fresh)
	for _, s := range f.samplers {
		background.Go(func() { s.run(ctx, began) })
	}
	loaded := time.Now()
	background.Go(func() { l.run(ctx) })
	var shown []time.Duration
	background.Go(func() {
		shown = l.probes(ctx, f.of(l.pageOf(l.canary)), f.answering.Load)
	})

	f.rest(f.plan.warmUp)
	for f.rounds == 0 || time.Since(began) < f.plan.until {
		f.round()
	}
	f.rest(total - time.Since(began))
	stop()
	background.Wait()
	lasted := time.Since(loaded)

	figure("duration", lasted.Seconds(), "s")
	figure("changes", float64(l.changes.Load()), "changes")
	figure("changes_per_second", float64(l.changes.Load())/lasted.Seconds(), "/s")
	figure("changes_not_made", float64(l.failed.Load()), "changes")
	figure("tasks", float64(l.borrower.submitted+l.lender.submitted+l.other.submitted), "tasks")
	figure("rounds_of_faults", float64(f.rounds), "rounds")
	for _, name := range slices.Sorted(maps.Keys(f.longest)) {
		if name == "kills_of_the_leader" {
			figure(name, float64(f.longest[name]), "kills")
			continue
		}
		figure(name, f.longest[name].Seconds(), "s")
	}
	if len(shown) > 0 {
		slices.Sort(shown)
		figure("change_shown_p50", float64(shown[len(shown)/2].Milliseconds()), "ms")
		figure("change_shown_p95", float64(shown[len(shown)*95/100].Milliseconds()), "ms")
		figure("change_shown_max", float64(shown[len(shown)-1].Milliseconds()), "ms")
	} else {
		t.Error("no change was measured on open pages")
	}
	f.pages.figures()
	for _, s := range f.samplers {
		name, samples := s.replica.Name[len("soak-"):], s.after(f.plan.warmUp)
		memoryGrowth.check(t, "heap_"+name, "MB", 1e6, samples, func(s sample) float64 { return s.heap })
		residentGrowth.check(t, "resident_"+name, "MB", 1e6, samples, func(s sample) float64 { return s.resident })
		goroutineGrowth.check(t, "goroutines_"+name, "goroutines", 1, samples, func(s sample) float64 { return s.goroutines })
	}

	l.finish()
	f.checkFigures()
	f.checkHistory(database, recordedFrom)

	hangUp()
	open.Wait()
	f.checkStreamsEnd(quietBefore["go_goroutines"])
	for _, r := range []*consoles.Replica{a, b} {
		r.End(syscall.SIGTERM)
	}
}

func (f *faults) replica(i int) *consoles.Replica { return []*consoles.Replica{f.a, f.b}[i%2] }

// of returns the open pages with an address.
func (f *faults) of(path string) (found streams) {
	for _, s := range f.pages {
		if s.path == path {
			found = append(found, s)
		}
	}
	return found
}

const (
	dashboardPage = "/?resource=nvidia.com%2Fgpu"
	teamsPage     = "/teams?resource=nvidia.com%2Fgpu"
)

func (l *load) pageOf(team *team) string { return "/tasks?team=" + team.name }

// page returns the address of the i-th open page.
func (l *load) page(i int) string {
	switch i % 10 {
	case 0, 1, 2:
		return dashboardPage
	case 3, 4:
		return teamsPage
	case 5:
		return l.pageOf(l.borrower)
	case 6:
		return l.pageOf(l.canary)
	case 7:
		return "/tasks"
	}
	return fmt.Sprintf("/tasks/%s/job/%s", l.held.namespace(), jobName(i))
}

// checkFigures fails the test unless both replicas, their metrics and the open pages
// have the figures that the API server has.
func (f *faults) checkFigures() {
	f.t.Helper()
	clustertest.Eventually(f.t, 30*time.Second, func(ctx context.Context) error {
		states := map[string]int{}
		for _, team := range f.load.teams() {
			want, err := f.load.expect(ctx, team)
			if err != nil {
				return err
			}
			for _, state := range want.states {
				states[state]++
			}
			resource := "nvidia.com/gpu"
			if team.hold {
				resource = "aws.amazon.com/neurondevice"
			}
			for _, r := range []*consoles.Replica{f.a, f.b} {
				if err := f.checkTeam(ctx, r, team, resource, want); err != nil {
					return fmt.Errorf("replica %s: %w", r.Name, err)
				}
			}
			if team.hold {
				continue
			}
			for _, s := range append(f.of(dashboardPage), f.of(teamsPage)...) {
				row := s.row("team-" + team.name)
				if len(row) != 8 {
					return fmt.Errorf("page %s has the row %q for team %s", s.path, row, team.name)
				}
				got := []string{row[1], row[2], row[3], row[6], row[7]}
				if line := want.line(); !slices.Equal(got, line) {
					return fmt.Errorf("page %s, team %s: got quota, used, borrowed, running, waiting %q, want %q", s.path, team.name, got, line)
				}
			}
		}
		for _, s := range f.samplers {
			values, err := s.read(ctx)
			if err != nil {
				return err
			}
			for _, state := range []string{"Running", "Pending", "Stopped", "Succeeded", "Starting", "Stopping", "Preempted", "Failed"} {
				if got := values[`kuota_tasks{state="`+state+`"}`]; got != float64(states[state]) {
					return fmt.Errorf("metrics of replica %s: got %g tasks that are %s, want %d", s.replica.Name, got, state, states[state])
				}
			}
		}
		return nil
	})
}

// line returns the figures as pages show them.
func (e expected) line() []string {
	return []string{fmt.Sprint(e.quota), fmt.Sprint(e.used), fmt.Sprint(e.borrowed), fmt.Sprint(e.running), fmt.Sprint(e.waiting)}
}

// checkTeam returns an error unless the CSV files of a replica have the figures and
// the tasks of a team.
func (f *faults) checkTeam(ctx context.Context, r *consoles.Replica, team *team, resource string, want expected) error {
	teams, err := table(ctx, f.admin, r.Address+"/teams.csv?resource="+resource)
	if err != nil {
		return err
	}
	got := []string{}
	for _, row := range teams {
		if row["team"] == team.name {
			got = []string{row["allocated"], row["held"], row["borrowed"], row["running tasks"], row["waiting tasks"]}
		}
	}
	if !slices.Equal(got, want.line()) {
		return fmt.Errorf("team %s: got quota, used, borrowed, running, waiting %q, want %q", team.name, got, want.line())
	}
	states := map[string]string{}
	for _, query := range []string{"", "&tab=finished"} {
		tasks, err := table(ctx, f.admin, r.Address+"/tasks.csv?team="+team.name+query)
		if err != nil {
			return err
		}
		for _, row := range tasks {
			states[row["name"]] = row["status"]
		}
	}
	for name, state := range want.states {
		if states[name] != state {
			return fmt.Errorf("team %s, task %s: got status %q, want %s", team.name, name, states[name], state)
		}
	}
	return nil
}

// table reads a CSV file with a line of names.
func table(ctx context.Context, client *http.Client, address string) (rows []map[string]string, err error) {
	text, err := consoles.Get(ctx, client, address)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	for i := 1; i < len(records); i++ {
		row := map[string]string{}
		for column, name := range records[0] {
			row[name] = records[i][column]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// checkHistory fails the test unless each task is recorded with one wait and one run,
// sums equal what they are sums of, and all time is recorded or a gap.
func (f *faults) checkHistory(database string, from time.Time) {
	t := f.t
	t.Helper()
	store, err := history.Open(t.Context(), database, history.Options{})
	must(t, err)
	defer store.Close()
	connection, err := pgx.Connect(t.Context(), database)
	must(t, err)
	defer connection.Close(context.Background()) //nolint:errcheck // the test ends
	defer logRepeated(t, connection)
	for _, team := range []*team{f.load.borrower, f.load.lender, f.load.other} {
		e, err := f.load.expect(t.Context(), team)
		must(t, err)
		// The wait of a task ends with its admission, and its run with its end.
		clustertest.Eventually(t, consoles.Patience, func(ctx context.Context) error {
			sums, err := store.ClassStats(ctx, []string{team.name}, from, time.Now().Add(time.Hour))
			if err != nil {
				return err
			}
			var waits, runs int64
			for _, s := range sums {
				waits, runs = waits+s.Waits, runs+s.Runs
			}
			if waits != int64(team.submitted+e.running) || runs != int64(team.submitted) {
				return fmt.Errorf("team %s: recorded %d waits and %d runs, want %d and %d", team.name, waits, runs, team.submitted+e.running, team.submitted)
			}
			return nil
		})
	}
	for _, sums := range []string{"class_hours", "class_days"} {
		var different int
		must(t, connection.QueryRow(t.Context(), `
			WITH recorded AS (
				SELECT team, class, count(*) FILTER (WHERE kind = 'wait') AS waits, count(*) FILTER (WHERE kind = 'run') AS runs,
					coalesce(sum(ended - began) FILTER (WHERE kind = 'wait'), 0) AS wait_ms, coalesce(sum(ended - began) FILTER (WHERE kind = 'run'), 0) AS run_ms
				FROM spans WHERE looped = 0 GROUP BY team, class
			), summed AS (
				SELECT team, class, sum(waits) AS waits, sum(runs) AS runs, sum(wait_ms) AS wait_ms, sum(run_ms) AS run_ms FROM `+sums+` WHERE team <> '*' GROUP BY team, class
			)
			SELECT count(*) FROM recorded FULL JOIN summed USING (team, class)
			WHERE (recorded.waits, recorded.runs, recorded.wait_ms, recorded.run_ms) IS DISTINCT FROM (summed.waits, summed.runs, summed.wait_ms, summed.run_ms)`).Scan(&different))
		if different > 0 {
			t.Errorf("%s differs from the recorded waits and runs for %d teams and priority classes", sums, different)
		}
	}
	consoles.CheckIntervals(t, database)
	longest := consoles.CheckGaps(t, store, from, 0, f.longest["api_server_down_max"]+historyBound)
	figure("history_gap_max", longest.Seconds(), "s")
}

// logRepeated logs, if the test has failed, the history of tasks with more than one
// wait or run.
func logRepeated(t *testing.T, connection *pgx.Conn) {
	if !t.Failed() {
		return
	}
	rows, err := connection.Query(context.Background(), `
		WITH repeated AS (SELECT DISTINCT part FROM spans GROUP BY part, kind HAVING count(*) > 1 ORDER BY part LIMIT 5)
		SELECT part, began AS at, kind || ' of ' || (ended - began) || ' ms' FROM spans JOIN repeated USING (part)
		UNION ALL SELECT part, at, tasks.name || ' of ' || tasks.team || ': ' || what || ' ' || reason || ' ' || text FROM steps JOIN repeated USING (part) JOIN tasks ON tasks.id = steps.task
		ORDER BY part, at`)
	if err != nil {
		t.Log(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var workload, event string
		var at int64
		if err := rows.Scan(&workload, &at, &event); err != nil {
			t.Log(err)
			return
		}
		t.Logf("Workload %s, %s: %s", workload, time.UnixMilli(at).Format("15:04:05.000"), event)
	}
}

// checkStreamsEnd fails the test unless the replicas notice that all pages are closed,
// and replica a returns to the goroutines that it had before they were opened.
func (f *faults) checkStreamsEnd(before float64) {
	f.t.Helper()
	f.admin.CloseIdleConnections()
	for _, s := range f.samplers {
		clustertest.Eventually(f.t, 30*time.Second, func(ctx context.Context) error {
			values, err := s.read(ctx)
			if err != nil {
				return err
			}
			for name, value := range values {
				if strings.HasPrefix(name, "kuota_stream_clients{") && value != 0 {
					return fmt.Errorf("replica %s: %s is %g after all pages were closed", s.replica.Name, name, value)
				}
			}
			if s.replica == f.a {
				if now, limit := values["go_goroutines"], before*1.1+20; now > limit {
					return fmt.Errorf("replica a has %g goroutines after all pages were closed, %g before they were opened, want at most %.0f", now, before, limit)
				}
			}
			return nil
		})
	}
}

// checkNoProcess fails the test if a process of the run is left.
func checkNoProcess(t *testing.T, run string) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Error(err)
	}
	mark := []byte("\x00" + runVariable + "=" + run + "\x00")
	left := 0
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), mark) {
			continue // it has ended, or belongs to another user
		}
		pid := filepath.Base(filepath.Dir(file))
		if n, err := strconv.Atoi(pid); err != nil || n == os.Getpid() {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		t.Errorf("process %s, %s, is left", pid, strings.TrimSpace(string(name)))
		left++
	}
	figure("processes_left", float64(left), "processes")
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}
