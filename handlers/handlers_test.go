package handlers_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// Each kind of error has its status and a sentence for the reader. The cause is only
// logged.
func TestErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7: token abc")
	for kind, want := range map[governance.Kind]int{
		governance.Unavailable: http.StatusServiceUnavailable, governance.NotFound: http.StatusNotFound,
		governance.Forbidden: http.StatusForbidden, governance.Internal: http.StatusInternalServerError,
	} {
		d := &handlerstest.Backend{ReadError: &governance.Error{Kind: kind, Message: "In a person's words.", Err: secret}}
		address := handlerstest.Serve(t, d)
		response, page := handlerstest.Get(t, address+"/tasks")
		if response.StatusCode != want || !strings.Contains(page.Text(), "In a person's words.") {
			t.Errorf("kind %d answers %s: %q", kind, response.Status, page.Find("main").Text())
		}
		if strings.Contains(page.Text(), "10.0.0.7") {
			t.Errorf("kind %d leaks its cause", kind)
		}
		htmlcheck.Page(t, page)
		response, page = handlerstest.Post(t, address+handlerstest.NewURL, handlerstest.AllocationForm("team", "kept"))
		if response.StatusCode != want {
			t.Errorf("kind %d answers a save with %s", kind, response.Status)
		}
		if kind != governance.Internal && page.Find("#team").AttrOr("value", "") != "kept" {
			t.Errorf("kind %d loses the form", kind)
		}
	}
}

// A stream sends its part after a change, and the age of the data in any case.
func TestStream(t *testing.T) {
	d := &handlerstest.Backend{Changed: make(chan struct{}, 1), Trouble: "Kueue is gone."}
	wait := handlerstest.Events(t, handlerstest.Serve(t, d)+"/tasks/events")
	wait("No active tasks")
	wait(d.Trouble)
	wait(`id="cluster-status"`)
	d.Items = []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", State: tasks.Running}, Team: "vision"}}
	d.Changed <- struct{}{}
	wait("train")
}

// In a cluster without nodes, teams, tasks and a policy, each page links to the next step.
func TestFirstRun(t *testing.T) {
	past := handlerstest.NewHistory()
	past.Records = nil
	address := handlerstest.Serve(t, &handlerstest.Backend{Past: past, UserScope: &access.Scope{All: true}})
	for path, want := range map[string]string{
		"/":                   `#pools .empty a[href="/policies"]`,
		"/tasks":              `.empty a[href="/teams"]`,
		"/tasks?tab=finished": `.empty a[href="/tasks/past"]`,
		"/tasks/past":         `.empty a[href="/tasks"]`,
		"/queue":              `.empty a[href="/tasks"]`,
		"/teams":              `.empty a[href="/policies"]`,
		"/policies":           `.empty a[href="/policies/allocations/new"]`,
		"/instances":          `#pools .empty a[href="/policies"]`,
		"/activity":           `.empty a[href="/policies"]`,
		"/usage/prices":       `.empty a[href="/policies/cluster/edit"]`,
		"/alerts/rules":       `.empty a[href="/policies/cluster/edit"]`,
		"/instances/pools":    `.empty a[href="/policies/cluster/edit"]`,
	} {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		if page.Find(want).Length() == 0 {
			t.Errorf("%s lacks %s: %s", path, want, handlerstest.Text(page.Find("main")))
		}
	}
}

// A user of no team, who may be the first one, reads how to become an admin.
func TestFirstAdmin(t *testing.T) {
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{ReadError: &governance.Error{Kind: governance.Outside}})+"/tasks")
	if got := handlerstest.Text(page.Find("details code")); got != "kubectl create clusterrolebinding kuota-admins --clusterrole kuota-admin --user 'ada'" {
		t.Errorf("the page says %q", got)
	}
}
