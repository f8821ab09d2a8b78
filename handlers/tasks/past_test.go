package tasks_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
)

// A deleted task keeps its page. Its preemptor is named only to permitted readers.
func TestTaskAfterItsDeletion(t *testing.T) {
	d := &handlerstest.Backend{Past: handlerstest.NewHistory(), UserScope: &handlerstest.OwnScope}
	address := handlerstest.Serve(t, d)
	for _, query := range []string{"", "?uid=u1"} {
		response, page := handlerstest.Get(t, address+"/tasks/ns/job/train"+query)
		htmlcheck.Page(t, page)
		text := handlerstest.Text(page.Find("main"))
		for _, want := range []string{"Succeeded", "deleted · Job · dev · requested 4 GPUs", "Waited 45 m 00 s in 2 waits; the longest was 35 m 00 s", "Ran 1 h 15 m in 2 runs", "Preempted once",
			"by another team Preempted another team reclaims its own quota; it had run for 30 m 00 s", "another team finished"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", query, want, text)
			}
		}
		if response.StatusCode != http.StatusOK || strings.Contains(text, "secret") {
			t.Errorf("%s answers %s, or names others: %s", query, response.Status, text)
		}
	}
	handlerstest.Events(t, address+"/tasks/ns/job/train/events?uid=u1")("task-gone") // for a page that connects again
	everything := access.Scope{All: true}
	d.UserScope = &everything
	if _, page := handlerstest.Get(t, address+"/tasks/ns/job/train"); page.Find(`#task-timeline a[href="/tasks/secret-ns/job/secret-job?uid=u9"]`).Length() != 1 {
		t.Error("who sees all is not told who preempted it")
	}
}

// A task of another team gets the same answer as one that never existed, also by UID
// below an address of one's own team.
func TestPastTasksOfOtherTeamsAreNotFound(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{Past: handlerstest.NewHistory(), UserScope: &handlerstest.OwnScope})
	never, page := handlerstest.Get(t, address+"/tasks/ns/job/never")
	want := handlerstest.Text(page.Find("main"))
	for _, path := range []string{"/tasks/secret-ns/job/secret-job", "/tasks/secret-ns/job/secret-job?uid=u9", "/tasks/ns/job/train?uid=u9", "/tasks/ns/job/secret-job?uid=u9", "/tasks/ns/cronjob/train?uid=u1", "/tasks/ns/job/other?uid=u1"} {
		response, page := handlerstest.Get(t, address+path)
		if got := handlerstest.Text(page.Find("main")); response.StatusCode != never.StatusCode || got != want || never.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s: %s", path, response.Status, got)
		}
	}
	if response, _ := handlerstest.Get(t, address+"/tasks/secret-ns/job/secret-job/events?uid=u9"); response.StatusCode != http.StatusNotFound {
		t.Errorf("the stream answers %s, want 404", response.Status)
	}
}

// Without history, or if it is unavailable, a deleted task gets 404.
func TestUnavailableHistory(t *testing.T) {
	broken := handlerstest.NewHistory()
	broken.Failure = errors.New("disk full at 10.0.0.7")
	d := &handlerstest.Backend{Past: broken, UserScope: &handlerstest.OwnScope, Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "dev-priority", Running: 1}}
	address := handlerstest.Serve(t, d)
	for path, want := range map[string]int{"/tasks/ns/job/train": 503, "/tasks/secret-ns/job/secret-job": 404, "/tasks": 200, "/tasks/past": 200, "/tasks/past.csv": 503, "/teams/vision": 200, "/teams/vision/usage.csv": 503} {
		response, page := handlerstest.Get(t, address+path)
		if response.StatusCode != want || strings.Contains(page.Text(), "10.0.0.7") || want == 200 && !strings.Contains(page.Text(), "istory cannot be read now") && path != "/teams/vision" {
			t.Errorf("%s answers %s: %s", path, response.Status, handlerstest.Text(page.Find("main")))
		}
	}
	off := handlerstest.Serve(t, &handlerstest.Backend{UserScope: &handlerstest.OwnScope})
	if response, _ := handlerstest.Get(t, off+"/tasks/ns/job/train"); response.StatusCode != http.StatusNotFound {
		t.Errorf("without history it answers %s", response.Status)
	}
	if _, page := handlerstest.Get(t, off+"/tasks/past"); !strings.Contains(page.Text(), "No history is kept here") {
		t.Error("it is not said that there is no history")
	}
}

// Events that the index dropped come from history, and none is shown twice.
func TestTimelineIsCompletedFromHistory(t *testing.T) {
	by := timeline.Event{WorkloadUID: "w1", At: handlerstest.Noon.Add(40*time.Minute + 300*time.Millisecond), Type: timeline.Preempted, Reason: "InCohortReclamation", Ran: -1}
	d := &handlerstest.Backend{Past: handlerstest.NewHistory(), Items: []queries.Item{{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", State: tasks.Running, Submitted: handlerstest.Noon, Evictions: 1}, Team: "vision"}}}
	d.MoreDetail = func(detail *queries.Detail) {
		detail.Omitted = 1
		detail.Timeline = []timeline.Event{{At: handlerstest.Noon, Type: timeline.Submitted}, {WorkloadUID: "w1", At: handlerstest.Noon.Add(75 * time.Minute), Type: timeline.Admitted, Ran: -1}}
	}
	address := handlerstest.Serve(t, d) + "/tasks/ns/job/train"
	_, page := handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	list := page.Find("#task-timeline")
	if lines := list.Find("li").Length(); lines != 5 || strings.Contains(handlerstest.Text(list), "more, before") || list.Find(`a[href*="secret-job"]`).Length() != 1 {
		t.Errorf("%d lines: %s", lines, handlerstest.Text(list))
	}
	d.MoreDetail = func(detail *queries.Detail) { detail.Timeline = []timeline.Event{by} }
	if _, page = handlerstest.Get(t, address); page.Find("#task-timeline li").Length() != 5 || !strings.Contains(handlerstest.Text(page.Find("#task-timeline")), "by Preempted secret-job another team reclaims its own quota; it had run for 30 m 00 s") {
		t.Errorf("got %s", handlerstest.Text(page.Find("#task-timeline")))
	}
	d.Past = nil
	if _, page = handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train"); page.Find("#task-timeline li").Length() != 1 {
		t.Error("history is told of that there is not")
	}
}

// A timeline has what was done to the task that no condition of Kueue shows, with who did it, as
// long as the task exists and afterwards.
func TestTimelineHasActivity(t *testing.T) {
	past := handlerstest.NewHistory()
	of := func(minutes time.Duration, uid, action string, outcome history.Outcome, changes ...string) history.Activity {
		return history.Activity{ID: action, At: handlerstest.Noon.Add(minutes * time.Minute), Actor: action + "-person", Address: "192.0.2.7", Action: action, UID: uid, Changes: changes, Outcome: outcome}
	}
	past.Entries = []history.Activity{
		of(80, "u1", "scale", history.Succeeded, "spec.replicas: 2 → 5"),
		of(70, "u1", "change-class", history.Refused, `spec.priorityClass: "dev-priority" → "refused"`),
		of(60, "u1", "change-class", history.Succeeded, "impersonated user: grace", "metadata.labels.kueue.x-k8s.io/priority-class: set to prod-priority", "spec.parallelism: set to 3"),
		of(50, "u1", "resume", history.Succeeded, "spec.active: false → true"),
		of(45, "u1", "stop", history.Succeeded, "spec.active: true → false"),
		of(20, "u1", "front", history.Succeeded, `spec.priorityClass: – → "dev-priority"`),
		of(15, "u2", "front", history.Succeeded, `spec.priorityClass: – → "other"`),
	}
	d := &handlerstest.Backend{Past: past, UserScope: &handlerstest.OwnScope}
	address := handlerstest.Serve(t, d) + "/tasks/ns/job/train"
	for _, exists := range []bool{false, true} {
		if exists {
			d.Items = []queries.Item{{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", State: tasks.Running, Submitted: handlerstest.Noon}, Team: "vision"}}
		}
		_, page := handlerstest.Get(t, address)
		htmlcheck.Page(t, page)
		var got []string
		for _, line := range page.Find("#task-timeline li").EachIter() {
			if text := handlerstest.Text(line); strings.Contains(text, "-person") {
				got = append(got, text)
			}
		}
		want := []string{
			"Scaled to 5 20 Nov 2026, 13:20:00 UTC by scale-person", "Priority class changed to prod 20 Nov 2026, 13:00:00 UTC by change-class-person",
			"Resumed 20 Nov 2026, 12:50:00 UTC by resume-person", "Moved to front with the class dev 20 Nov 2026, 12:20:00 UTC by front-person",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("exists %t (-want +got):\n%s", exists, diff)
		}
	}
}

func TestPastTasks(t *testing.T) {
	p := handlerstest.NewHistory()
	again := handlerstest.DeletedTask
	again.UID, again.State, again.DeletedAt = "u2", "Pending", handlerstest.Noon.Add(time.Minute)
	p.Records = append(p.Records, again)
	d := &handlerstest.Backend{Past: p, UserScope: &handlerstest.OwnScope, Teams: []string{"vision"}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks/past?q=Tr&class=-&kind=Job&team=vision&from=2026-11-01&to=2026-11-30")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#past-table tbody")); page.Find("#past-table tbody tr").Length() != 2 || !strings.Contains(text, "Deleted while pending") || strings.Contains(text, "secret") {
		t.Errorf("it lists %s", text)
	}
	if q := p.Queries[len(p.Queries)-1]; !slices.Equal(q.Teams, []string{"vision"}) || !slices.Equal(q.PriorityClasses, []string{""}) || q.Kind != "Job" || q.NameContains != "Tr" || !q.Finished || q.To.Sub(q.From) != 30*24*time.Hour {
		t.Errorf("asked is %+v", q)
	}
	for _, path := range []string{"/tasks/past", "/tasks/past?team=secret-team", "/tasks/past.csv", "/tasks/past.csv?team=secret-team", "/tasks/past?page=3"} {
		if _, page := handlerstest.Get(t, address+path); strings.Contains(page.Text(), "secret-job") || strings.Contains(page.Text(), "secret-ns") {
			t.Errorf("%s names others: %s", path, page.Text())
		}
	}
	if text := handlerstest.Download(t, address+"/tasks/past.csv"); !strings.Contains(text, "ns,Job,train,u1,vision,Succeeded,dev,10,4,0,0,0,"+handlerstest.H100+",2026-11-20T12:00:00Z,2026-11-20T14:00:00Z,2026-11-20T15:00:00Z,4500,1") {
		t.Errorf("the file is %s", text)
	}
	if response, page := handlerstest.Get(t, address+"/tasks/past?from=yesterday"); response.StatusCode != 422 || page.Find("#days-error").Length() != 1 {
		t.Errorf("an odd day answers %s", response.Status)
	}
	if _, page := handlerstest.Get(t, address+"/tasks/ns/job/train"); page.Find(`#same-name a[href="/tasks/ns/job/train?uid=u2"]`).Length() != 1 {
		t.Error("the other of the name is not linked")
	}
}
