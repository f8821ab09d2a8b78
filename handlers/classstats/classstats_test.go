package classstats_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// Trends come from history within the scope of the reader, by class or by team, and an
// interval in which no wait ended is a gap.
func TestTrends(t *testing.T) {
	p := handlerstest.NewHistory()
	p.TrendGroups = map[string]history.Trend{"": {Waits: 1, Median: time.Minute, P90: time.Minute}, "vision": {Waits: 3, Median: 90 * time.Second, P90: time.Hour, Failures: 2, Preemptions: 1200}}
	d := &handlerstest.Backend{Past: p, UserScope: &handlerstest.OwnScope, Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/?by=team&range=1h")
	htmlcheck.Page(t, page)
	if p.TrendsBy != history.ByTeam || !slices.Equal(p.TrendsOf, []string{"vision"}) {
		t.Errorf("asked by %s of %q, want by team of vision", p.TrendsBy, p.TrendsOf)
	}
	for id, want := range map[string]string{"trend-wait": "1 m 30 s", "trend-wait-p90": "1 h 00 m", "trend-failures": "2", "trend-preemptions": "1,200"} {
		rows := page.Find("#" + id + "-table tbody tr")
		if got := handlerstest.Text(rows.First()); !strings.Contains(got, want) {
			t.Errorf("%s: got %q in the last interval, want %s", id, got, want)
		}
		if got := handlerstest.Text(rows.Eq(1)); strings.Contains(id, "wait") && !strings.Contains(got, "no data") {
			t.Errorf("%s: got %q where no wait ended, want a gap", id, got)
		}
	}
	if head := handlerstest.Text(page.Find("#trend-wait-table thead")); !strings.Contains(head, "vision, seconds") || !strings.Contains(head, "No team") {
		t.Errorf("lines: got %q, want vision and no team", head)
	}
	if link := page.Find(`#trends .ranges a[aria-current="true"]`).Text(); link != "By team" || page.Find(`#trends a[href="/?range=1h#trends"]`).Length() != 1 || page.Find(`.filters input[name="by"][value="team"]`).Length() != 1 {
		t.Errorf("links: got %q current, want by team, a link to classes, and the choice kept in the form", link)
	}
	p.TrendGroups = nil
	if _, page = handlerstest.Get(t, address+"/?range=24h"); !strings.Contains(handlerstest.Text(page.Find("#trends")), "No task ended a wait") || p.TrendsBy != history.ByClass {
		t.Errorf("without data: got %q by %s", handlerstest.Text(page.Find("#trends")), p.TrendsBy)
	}
}

// Averages by priority class come from history, within the scope of the reader.
func TestClassesFromHistory(t *testing.T) {
	p := handlerstest.NewHistory()
	d := &handlerstest.Backend{Past: p, UserScope: &handlerstest.OwnScope, Teams: []string{"vision"}}
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "dev-priority", Running: 1, RunningFor: 3 * time.Hour, Runs: 7, AverageRun: time.Second}, {PriorityClass: "", Pending: 1}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks?range=30d")
	htmlcheck.Page(t, page)
	table := handlerstest.Text(page.Find("#classes-table tbody"))
	if !strings.Contains(table, "1 h 00 m 45 s 3 h 00 m 1 m 00 s") || strings.Contains(table, "secret") {
		t.Errorf("the table is %s", table)
	}
	if page.Find(`#task-list a[href="/tasks/past"]`).Length() != 1 {
		t.Error("nothing leads to past tasks")
	}
	if note := page.Find("#classes .note").Text(); !strings.Contains(note, "20 Nov 2026, 12:00:00 UTC, when history begins") || !p.From.Equal(handlerstest.Noon) {
		t.Errorf("got %q, asked from %s", note, p.From)
	}
	if page.Find(`.ranges a[href="/tasks?range=1y"]`).Length() != 1 || page.Find(`.ranges [aria-current="true"]`).Text() != "30 d" {
		t.Error("the ranges are others")
	}
	asked := p.Asked
	handlerstest.Get(t, address+"/tasks?range=30d")
	if p.Asked != asked {
		t.Error("history is asked again at once")
	}
	everything := access.Scope{All: true}
	d.UserScope = &everything
	if _, page := handlerstest.Get(t, address+"/tasks"); !strings.Contains(handlerstest.Text(page.Find("#classes-table tbody")), "secret") {
		t.Error("who sees all does not see all classes")
	}
}

// Of many classes, the table has those with tasks.
func TestManyClasses(t *testing.T) {
	d := &handlerstest.Backend{}
	for i := range 50 {
		d.List.ByPriorityClass = append(d.List.ByPriorityClass, index.PriorityClassRow{PriorityClass: fmt.Sprintf("c%02d-priority", i), Pending: i / 48})
	}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks")
	if rows, left := page.Find("#classes-table tbody tr").Length(), handlerstest.Text(page.Find("#classes-left")); rows != 2 || left != "The table leaves out classes without tasks: 48 of 50." {
		t.Errorf("got %d rows, and %q", rows, left)
	}
}

// All priorities by number are one row, which leads to their tasks.
func TestNumbersAreOneRow(t *testing.T) {
	p := handlerstest.NewHistory()
	p.Classes = map[string][]history.ClassStats{"": {
		{Class: "kuota-priority-42", Waits: 1, WaitMillis: 60_000, LongestWait: time.Minute}, {Class: "kuota-priority-7", Waits: 3, WaitMillis: 3 * 180_000, LongestWait: time.Hour},
	}}
	d := &handlerstest.Backend{Past: p}
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "dev-priority", Running: 1}, {PriorityClass: "kuota-priority-42", Running: 1}, {PriorityClass: "kuota-priority-0", Pending: 2}, {PriorityClass: "", Pending: 1}}
	d.List.PriorityClasses = []string{"dev-priority", "kuota-priority-42", "kuota-priority-0", ""}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#class-0-99")); page.Find("#classes-table tbody tr").Length() != 3 || !strings.Contains(got, "Numbers 0–99 1 2 0") || !strings.Contains(got, "2 m 30 s") || !strings.Contains(got, "1 h 00 m") {
		t.Errorf("got %q in %s", got, handlerstest.Text(page.Find("#classes-table")))
	}
	if got := handlerstest.Text(page.Find("#class option")); got != "All classes dev Numbers 0–99 42 0 No priority class" {
		t.Errorf("the filter has %q", got)
	}
	handlerstest.Get(t, address+"/tasks?class=0-99")
	if got := d.Query.PriorityClasses; len(got) != 100 || got[42] != "kuota-priority-42" {
		t.Errorf("asked for %q", got)
	}
	handlerstest.Get(t, address+"/tasks?class=42")
	if got := d.Query.PriorityClasses; !slices.Equal(got, []string{"kuota-priority-42"}) {
		t.Errorf("asked for %q", got)
	}
}
