package teams_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

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
