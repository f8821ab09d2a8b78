package activity_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// entries returns 250 entries of the own team, with others between them.
func entries() (all []history.Activity) {
	for n := range 250 {
		at := handlerstest.Noon.Add(-time.Duration(n) * time.Minute)
		all = append(all,
			history.Activity{ID: fmt.Sprintf("z%03d", n), At: at, Actor: "mallory", Address: "192.0.2.66", Source: history.SourceConsole, Action: "stop", Kind: "Job", Namespace: "secret-ns", Name: "secret-job", UID: "u9", Team: "secret", Outcome: history.Succeeded},
			history.Activity{ID: fmt.Sprintf("y%03d", n), At: at, Actor: "ada", Address: "192.0.2.7", Source: history.SourceConsole, Action: "stop", Kind: "Job", Namespace: "ns", Name: fmt.Sprintf("train-%03d", n), UID: "u1", Team: "vision", Changes: []string{"spec.active: true → false"}, Outcome: history.Succeeded},
			// A namespace that the team had once.
			history.Activity{ID: fmt.Sprintf("x%03d", n), At: at, Actor: "ada", Source: history.SourceConsole, Action: "delete", Kind: "Job", Namespace: "secret-old", Name: "secret-old", UID: "u8", Team: "vision", Outcome: history.Succeeded},
			history.Activity{ID: fmt.Sprintf("w%03d", n), At: at, Actor: "root", Action: "create", Kind: "ComputeAllocation", Name: "vision", UID: "secret-earlier", Team: "vision", Changes: []string{"secret spec"}, Outcome: history.Refused, Error: "secret error"},
		)
	}
	return all
}

// A member sees what was done in their teams, page by page, each entry once, and as a
// file; a reader who sees all teams sees everything.
func TestActivity(t *testing.T) {
	past := handlerstest.NewHistory()
	d := &handlerstest.Backend{Past: past, UserScope: &handlerstest.OwnScope}
	d.Teams = []string{"vision"}
	past.Entries = entries()
	address := handlerstest.Serve(t, d)
	seen := map[string]int{}
	next := "/activity"
	for pages := 0; next != ""; pages++ {
		if pages > 5 {
			t.Fatal("the pages do not end")
		}
		_, page := handlerstest.Get(t, address+next)
		htmlcheck.Page(t, page)
		if text := page.Text(); strings.Contains(text, "secret") || strings.Contains(text, "192.0.2") || strings.Contains(text, "mallory") {
			t.Errorf("%s names others", next)
		}
		for _, row := range page.Find("#activity-table tbody tr").EachIter() {
			seen[row.AttrOr("id", "")]++
		}
		next = page.Find(`#activity a[rel=next]`).AttrOr("href", "")
	}
	if len(seen) != 250 {
		t.Errorf("%d entries are shown, want 250", len(seen))
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s is shown %d times", id, times)
		}
	}
	response, file := handlerstest.Get(t, address+"/activity.csv")
	text := file.Text()
	if got := strings.Count(text, "train-"); got != 250 || strings.Contains(text, "secret") || strings.Contains(text, "192.0.2") {
		t.Errorf("the file has %d entries, or those of others:\n%.300s", got, text)
	}
	if kind := response.Header.Get("Content-Type"); kind != "text/csv; charset=utf-8" {
		t.Errorf("the file is %s", kind)
	}
	d.UserScope = &access.Scope{All: true}
	_, page := handlerstest.Get(t, address+"/activity")
	if n := page.Find("#actors option").Length(); n != 3 || page.Find(`#activity-table a[href="/policies/allocations/vision"]`).Length() == 0 {
		t.Errorf("%d persons to choose from, want 3, and a link to the allocation", n)
	}
	d.Teams = nil
	if _, page := handlerstest.Get(t, address+"/activity"); page.Find(`#activity-table a[href="/policies/allocations/vision/revisions"]`).Length() == 0 {
		t.Error("the entries of a deleted team do not lead to its versions")
	}
	for _, want := range []string{"mallory", "192.0.2.66", "secret error", "Refused"} {
		if !strings.Contains(page.Find("#activity").Text(), want) {
			t.Errorf("a reader of all teams misses %q", want)
		}
	}
}

// A wrong filter gets a sentence, and history that is away or off is said.
func TestActivityTrouble(t *testing.T) {
	past := handlerstest.NewHistory()
	d := &handlerstest.Backend{Past: past, UserScope: &handlerstest.OwnScope}
	address := handlerstest.Serve(t, d)
	for path, want := range map[string]string{
		"/activity?from=yesterday":                "Write dates as YYYY-MM-DD.",
		"/activity?from=2026-11-02&to=2026-11-01": "The first day is after the last.",
	} {
		if response, page := handlerstest.Get(t, address+path); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page.Find("main").Text(), want) {
			t.Errorf("%s answers %s, want %q", path, response.Status, want)
		}
	}
	past.Failure = fmt.Errorf("disk full at 10.0.0.7")
	if response, page := handlerstest.Get(t, address+"/activity"); response.StatusCode != http.StatusOK || !strings.Contains(page.Text(), "istory cannot be read now") || strings.Contains(page.Text(), "10.0.0.7") {
		t.Errorf("without the database it answers %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	if response, _ := handlerstest.Get(t, address+"/activity.csv"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without the database the file answers %s", response.Status)
	}
}

// All changes of an entry can be read; those after the fifth are folded.
func TestManyChanges(t *testing.T) {
	past := handlerstest.NewHistory()
	var changes []string
	for n := range 30 {
		changes = append(changes, fmt.Sprintf("spec.quota[%d]: 1 → 2", n))
	}
	past.Entries = []history.Activity{{ID: "e", At: handlerstest.Noon, Actor: "root", Action: "update", Kind: "ComputeAllocation", Name: "vision", Changes: changes, Outcome: history.Succeeded}}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{Past: past})+"/activity")
	if all, folded, label := page.Find("#activity-e code").Length(), page.Find("#activity-e details code").Length(), handlerstest.Text(page.Find("#activity-e summary")); all != 30 || folded != 25 || label != "25 more changes" {
		t.Errorf("got %d changes, %d of them folded under %q", all, folded, label)
	}
}
