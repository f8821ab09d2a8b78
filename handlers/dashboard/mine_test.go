package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// The dashboard of a member begins with the tasks of their teams; that of a reader of the whole
// cluster does not.
func TestMine(t *testing.T) {
	d := &handlerstest.Backend{}
	d.Items = []queries.Item{{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", State: tasks.Pending, SubmittedBy: "ada"}, Team: "vision"}}
	d.Teams = []string{"vision"}
	address := handlerstest.Serve(t, d)
	if _, page := handlerstest.Get(t, address+"/"); page.Find("#mine").Length() != 0 {
		t.Error("a reader of the whole cluster has tasks of their teams")
	}
	member := access.ScopeOf("ns")
	d.UserScope = &member
	_, page := handlerstest.Get(t, address+"/")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#mine")); !strings.Contains(text, "train Pending Waiting for quota. vision ada") || page.Find(`#mine a[href="/teams/vision/submit"]`).Length() != 1 {
		t.Errorf("got %q", text)
	}
	if first := page.Find("#dashboard .card").First().AttrOr("id", ""); first != "mine" {
		t.Errorf("the first card is %q, want mine", first)
	}
	for i := range 9 {
		name := fmt.Sprint(i)
		d.Items = append(d.Items, queries.Item{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "w" + name, UID: "w" + name, State: tasks.Pending}, Team: "vision"},
			queries.Item{Task: &tasks.Task{Namespace: "ns", Kind: "Job", Name: "r" + name, UID: "r" + name, State: tasks.Running}, Team: "vision"})
	}
	_, page = handlerstest.Get(t, address+"/")
	if got, want := page.Find("#mine tbody th").Text(), "trainw0w1w2w3r0r1r2"; strings.Join(strings.Fields(got), "") != want {
		t.Errorf("of ten that wait and nine that run, got %q, want %q", got, want)
	}
	d.Items = nil
	_, page = handlerstest.Get(t, address+"/")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#mine")); !strings.Contains(text, "No active tasks") {
		t.Errorf("without tasks: got %q", text)
	}
}
