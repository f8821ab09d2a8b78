package tasks_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func upcoming() queries.Upcoming {
	at := time.Now().Add(-2 * time.Hour)
	short := &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}, Needed: 8, Available: 6}}
	item := func(name string) queries.Item {
		return queries.Item{Team: "vision", Brief: short, Task: &tasks.Task{UID: name, Name: name, Namespace: "ns", Kind: "Job", State: tasks.Pending, PriorityClass: "train-priority", Priority: 80, Submitted: at, WaitingSince: at, Requests: quota.Resources{"nvidia.com/gpu": 8, "cpu": 1500}}}
	}
	held := item("held")
	held.Brief = &explain.Verdict{Constraint: explain.QueueStopped}
	return queries.Upcoming{At: at.Add(time.Hour), Page: 2, Pages: 13, Total: 1234, Waiting: 2000, FairSharing: true, Teams: []string{"vision"}, PriorityClasses: []string{"", "train-priority"}, Items: []queries.UpcomingItem{
		{Item: item("=first"), Order: 1, ClusterQueuePosition: 2}, {Item: item("second"), Order: 2, Shared: true}, {Item: held},
	}}
}

func answer(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// The page, the CSV file and the JSON have the same rows, words and numbers.
func TestUpcoming(t *testing.T) {
	d := &handlerstest.Backend{Upcoming: upcoming()}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/queue?team=vision&class=-&page=2&unknown=x")
	htmlcheck.Page(t, page)
	if q := d.UpcomingQuery; !slices.Equal(q.Teams, []string{"vision"}) || !slices.Equal(q.PriorityClasses, []string{""}) || q.Page != 2 || q.All {
		t.Errorf("query: got %+v, want team vision and no class", q)
	}
	rows := page.Find("#upcoming-table tbody tr")
	for i, want := range [][]string{{"=first", "2 GPUs short.", "1", "8 GPUs", "2nd"}, {"second", "2 GPUs short.", "Shared queue"}, {"held", "Its queue is on hold.", "–"}} {
		for _, part := range want {
			if text := rows.Eq(i).Text(); !strings.Contains(text, part) {
				t.Errorf("row %d: got %q, want %q in it", i, text, part)
			}
		}
	}
	if note := page.Find("#upcoming-list").Text(); !strings.Contains(note, "1,234 of 2,000 tasks waiting") || !strings.Contains(note, "lower share") {
		t.Errorf("card: got %q, want the number of tasks and the lower share", note)
	}
	if pager := handlerstest.Text(page.Find(".pager")); !strings.Contains(pager, "101–103 of 1,234") || page.Find(`.pager a[href="/queue?class=-&page=3&team=vision"]`).Length() == 0 {
		t.Errorf("pager: got %q, want the part of the list and the next page", pager)
	}
	if page.Find(`a[href="/queue.csv?class=-&team=vision"]`).Length() == 0 || page.Find(`a[href="/queue.json?class=-&page=2&team=vision"]`).Length() == 0 {
		t.Error("files: got no links with the same filters")
	}

	_, csv := answer(t, address+"/queue.csv?team=vision")
	for _, want := range []string{"order,namespace,kind,name,team,priority class,priority,GPUs,", ",waited s,position,reason\n", "1,ns,Job,'=first,vision,train,80,8,", ",3600,2,2 GPUs short.\n", ",3600,,2 GPUs short.\n", "\n,ns,Job,held,"} {
		if !strings.Contains(csv, want) {
			t.Errorf("CSV: got %s, want %q in it", csv, want)
		}
	}

	if !d.UpcomingQuery.All {
		t.Error("CSV: got one page, want all tasks")
	}

	response, text := answer(t, address+"/queue.json")
	var list struct {
		Waiting, Page, Pages int
		Tasks                []struct {
			Order, Position     int
			Name, Reason, Path  string
			PriorityClass, Team string
			WaitedSeconds       float64
			Requests            map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		t.Fatalf("JSON: got %s: %v", text, err)
	}
	if first := list.Tasks[0]; list.Waiting != 1234 || list.Page != 2 || list.Pages != 13 || d.UpcomingQuery.All || len(list.Tasks) != 3 || first.Order != 1 || first.Position != 2 || first.Reason != "2 GPUs short." || first.Requests["cpu"] != 1.5 || first.WaitedSeconds != 3600 || first.PriorityClass != "train" || first.Path != "/tasks/ns/job/=first" {
		t.Errorf("JSON: got %s", text)
	}
	if list.Tasks[1].Position != 0 || list.Tasks[2].Order != 0 {
		t.Errorf("JSON: got %s, want no position in a shared queue and no order of a held one", text)
	}
}

func TestUpcomingErrors(t *testing.T) {
	d := &handlerstest.Backend{ReadError: &governance.Error{Kind: governance.Unavailable, Message: "The cluster does not list."}}
	address := handlerstest.Serve(t, d)
	for _, path := range []string{"/queue", "/queue.csv", "/queue.json"} {
		if response, text := answer(t, address+path); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "The cluster does not list.") {
			t.Errorf("%s: got status %d, want 503 with the reason", path, response.StatusCode)
		}
	}
}
