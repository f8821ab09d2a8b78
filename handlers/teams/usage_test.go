package teams_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func TestTeamUsage(t *testing.T) {
	p := handlerstest.NewHistory()
	key := func(m history.Measure) history.SeriesKey {
		return history.SeriesKey{Team: "vision", Pool: handlerstest.H100, Resource: catalog.GPU, Measure: m}
	}
	p.Held = map[history.SeriesKey]int64{key(history.Used): 10, key(history.Borrowed): 2, key(history.Quota): 15}
	d := &handlerstest.Backend{Past: p, Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}, Changed: make(chan struct{}, 1)}
	for i, place := range []int{1, 2, 3} {
		d.Items = append(d.Items, queries.Item{Task: &tasks.Task{UID: string(rune('a' + i)), Name: "job-" + string(rune('a'+i)), Namespace: "hyperpod-ns-vision", Kind: "Job", State: tasks.Pending, WaitingSince: handlerstest.Noon}, Position: place, Brief: &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: handlerstest.H100, Resource: catalog.GPU}, Needed: 5, Available: 2}}})
	}
	d.Waiting = 1200
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "dev-priority", Running: 2, Pending: 3}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision?range=24h")
	htmlcheck.Page(t, page)
	for selector, wants := range map[string][]string{
		"#team-shares":       {"2 running", "3 waiting", handlerstest.H100 + " GPUs 15 8 1 without a node 8 0 2 5 53.33 %", "vCPU 0 4 0 4 0 0 –"},
		"#queue-table tbody": {"1st job-a 3 GPUs short.", "2nd job-b", "3rd job-c"},
		"#team-queue":        {"the first 3 of 1,200"},
		"#team-facts":        {"Members"},
		"#classes":           {"dev 2 3", "1 h 00 m"},
		"#team-history":      {"GPUs", "the last 24 hours", "Own", "Borrowed", "Quota"},
		"#team-past":         {"train Job Succeeded deleted"},
	} {
		text := handlerstest.Text(page.Find(selector))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", selector, want, text)
			}
		}
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/teams/vision/events?range=24h" {
		t.Errorf("the stream is %s", stream)
	}
	wait := handlerstest.Events(t, address+"/teams/vision/events")
	wait(`id="team-usage"`)
	if text := handlerstest.Download(t, address+"/teams/vision/usage.csv?from=2026-11-20T00:00&to=2026-11-20T10:00"); !strings.Contains(text, "vision,"+handlerstest.H100+",nvidia.com/gpu,GPU-hours,2026-11-20T00:00:00Z,2026-11-20T10:00:00Z,10.000,150.000,100.000,80.000,20.000") {
		t.Errorf("the file is %s", text)
	}
	hidden := &handlerstest.Backend{Past: p, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	hidden.SubmitBackend.Hidden = true
	off := handlerstest.Serve(t, hidden)
	for _, path := range []string{"/teams/vision", "/teams/vision/events", "/teams/vision/usage.csv"} {
		if response, page := handlerstest.Get(t, off+path); response.StatusCode != http.StatusNotFound || strings.Contains(page.Text(), handlerstest.H100) {
			t.Errorf("%s answers %s", path, response.Status)
		}
	}
	if idle := page.Find("#shares-table tbody .meter-idle").First().AttrOr("width", ""); idle != "33.33%" {
		t.Errorf("5 idle of 15 are drawn over %q", idle)
	}
}

// A held team has a badge with the cause and the end, on its page and in both lists.
func TestHeldTeam(t *testing.T) {
	d := &handlerstest.Backend{Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	address := handlerstest.Serve(t, d)
	pages := map[string]string{"/teams/vision": "#team-held", "/teams": "#team-vision", "/": "#team-vision"}
	for path, selector := range pages {
		if _, page := handlerstest.Get(t, address+path); strings.Contains(page.Find(selector).Text(), "Held") {
			t.Errorf("%s shows an active team as held", path)
		}
	}
	for i := range d.CapacityBackend.Snapshot.Teams {
		if of := &d.CapacityBackend.Snapshot.Teams[i]; of.Name == "vision" {
			of.Held, of.HeldText = "Held", "An admin put the queue on hold."
		}
	}
	for path, selector := range pages {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		held := page.Find(selector)
		if got := handlerstest.Text(held); held.Find(".tag.tone-idle").Length() != 1 || !strings.Contains(got, "Held An admin put the queue on hold.") {
			t.Errorf("%s shows %q", path, got)
		}
	}
}

// The page of a team lists its idle tasks, and none of another team, with a button for
// those who may stop them, also behind one of which that is not known. Lists and the page
// of the task mark them.
func TestIdleTasksOfATeam(t *testing.T) {
	notebook := tasks.Address{Namespace: "hyperpod-ns-vision", Kind: "StatefulSet", Name: "ada", UID: "u-1"}
	other := tasks.Address{Namespace: "hyperpod-ns-other", Kind: "Deployment", Name: "theirs", UID: "u-2"}
	d := &handlerstest.Backend{
		CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}, HardwareBackend: handlerstest.HardwareBackend{IdleTasks: []tasks.Address{notebook, other}}, Changed: make(chan struct{}, 1),
		Items: []queries.Item{{Task: &tasks.Task{Namespace: notebook.Namespace, Kind: notebook.Kind, Name: notebook.Name, UID: notebook.UID, State: tasks.Running}, Team: "vision"}, {Task: &tasks.Task{Namespace: notebook.Namespace, Kind: "Job", Name: "busy", UID: "u-3", State: tasks.Running}, Team: "vision"}},
	}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#idle-table tbody")); got != "ada StatefulSet 1 30 m 1.0 % Stop" {
		t.Errorf("got the idle tasks %q", got)
	}
	if href := page.Find("#idle-table tbody td a").AttrOr("href", ""); href != "/tasks/hyperpod-ns-vision/statefulset/ada/stop" {
		t.Errorf("Stop leads to %q", href)
	}
	handlerstest.Events(t, address+"/teams/vision/events")("team-idle")

	_, page = handlerstest.Get(t, address+"/tasks")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#task-u-1 .idle")); got != "idle for at least 30 m" || page.Find(".idle").Length() != 1 {
		t.Errorf("the list marks %q", got)
	}
	_, page = handlerstest.Get(t, address+"/tasks/hyperpod-ns-vision/statefulset/ada")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#task")); !strings.Contains(got, "Its accelerators have been idle for at least 30 m: none was busier than 1.0 %.") {
		t.Errorf("the page of the task is %q", got)
	}

	d.HardwareBackend.IdleTasks = append([]tasks.Address{{Namespace: notebook.Namespace, Kind: "StatefulSet", Name: "odd", UID: "u-0"}}, d.HardwareBackend.IdleTasks...)
	d.Items = append(d.Items, queries.Item{Task: &tasks.Task{Namespace: notebook.Namespace, Kind: "StatefulSet", Name: "odd", UID: "u-0", State: tasks.Running}, Team: "vision"})
	d.ActionsBackend.OddTask = "odd"
	_, page = handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision")
	if got := handlerstest.Text(page.Find("#idle-table tbody")); got != "odd StatefulSet 1 30 m 1.0 % ada StatefulSet 1 30 m 1.0 % Stop" {
		t.Errorf("behind one that cannot be checked: got %q", got)
	}
	d.HardwareBackend.IdleTasks = d.HardwareBackend.IdleTasks[1:]

	d.ActionsBackend.MayNotStop = true
	_, page = handlerstest.Get(t, address+"/teams/vision")
	if got := handlerstest.Text(page.Find("#idle-table tbody")); got != "ada StatefulSet 1 30 m 1.0 %" {
		t.Errorf("without permission: got %q", got)
	}
	d.ActionsBackend.MayNotStop, d.ReadOnly = false, "HyperPod governs this cluster."
	if _, page = handlerstest.Get(t, address+"/teams/vision"); page.Find("#idle-table tbody td a").Length() > 0 {
		t.Error("a task can be stopped though nothing is written")
	}
	d.HardwareBackend.IdleTasks = nil
	if _, page = handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision"); page.Find("#team-idle").Length() > 0 {
		t.Error("the page of a team without idle tasks lists some")
	}
}
