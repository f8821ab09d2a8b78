package classstats_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

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
