package handlers_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
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
