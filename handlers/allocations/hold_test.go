package allocations_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// The page that holds a queue describes the effect on its tasks. To stop them, the
// reader types the team's name.
func TestHoldAndResumeAQueue(t *testing.T) {
	const address = "/policies/allocations/vision"
	busy := allocations.DeletionPreview{Waiting: 2, Running: []allocations.Task{{Kind: "Job", Name: "train"}}}
	for name, tc := range map[string]struct {
		was, is    v1alpha1.Activation
		path       string
		idle       bool
		FormValues map[string]string
		refusal    error
		says       []string
		status     int
		location   string
	}{
		"hold":                    {path: "/hold", is: v1alpha1.Hold, status: 303, location: address + "?saved=true", says: []string{"2 tasks wait in the queue", "The running task continues", "Job train", "To stop running tasks, type vision"}},
		"hold, nothing runs":      {path: "/hold", idle: true, is: v1alpha1.Hold, status: 303, location: address + "?saved=true", says: []string{"No task waits"}},
		"drain":                   {path: "/hold", FormValues: map[string]string{"choice": "Drain", "confirm": "vision"}, is: v1alpha1.Drain, status: 303, location: address + "?saved=true"},
		"drain, name not typed":   {path: "/hold", FormValues: map[string]string{"choice": "Drain"}, status: 422},
		"drain, nothing runs now": {path: "/hold", idle: true, FormValues: map[string]string{"choice": "Drain"}, status: 422},
		"resume":                  {path: "/resume", was: v1alpha1.Hold, is: v1alpha1.Active, status: 303, location: address + "?saved=true", says: []string{"Kueue starts them as quota allows", "1 task of the team uses quota"}},
		"a user saved in between": {path: "/hold", refusal: &governance.Error{Kind: governance.Conflict, Message: "Another user changed it in between."}, status: 409},
		"not allowed after all":   {path: "/hold", refusal: &governance.Error{Kind: governance.Forbidden, Message: "You may not do this."}, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			stored := handlerstest.FullAllocation()
			stored.Spec.Activation = tc.was
			d := handlerstest.WithAllocations(stored)
			if !tc.idle {
				d.DepartureResult = busy
			}
			base := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, base+address)
			if page.Find(`a[href="`+address+tc.path+`"]`).Length() != 1 {
				t.Error("the allocation's page does not lead there")
			}
			_, page = handlerstest.Get(t, base+address+tc.path)
			htmlcheck.Page(t, page)
			for _, want := range tc.says {
				if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, want) {
					t.Errorf("the page lacks %q: %s", want, text)
				}
			}
			values := handlerstest.ValuesIn(page, "#action-form")
			for field, value := range tc.FormValues {
				values.Set(field, value)
			}
			d.WriteError = tc.refusal
			response, page := handlerstest.Post(t, base+address+tc.path, values)
			if response.StatusCode != tc.status || response.Header.Get("Location") != tc.location {
				t.Fatalf("answers %s to %q: %s", response.Status, response.Header.Get("Location"), handlerstest.Text(page.Find("main")))
			}
			if tc.status != 303 {
				htmlcheck.Page(t, page)
				if len(d.Updated) > 0 {
					t.Errorf("the allocation was written: %+v", d.Updated)
				}
			} else if got := d.Updated[0].Spec; got.Activation != tc.is || len(got.Quota) != len(stored.Spec.Quota) {
				t.Errorf("written is %+v", got)
			}
		})
	}
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	d.Reader = true
	base := handlerstest.Serve(t, d)
	if response, _ := handlerstest.Get(t, base+address+"/hold"); response.StatusCode != 404 {
		t.Errorf("a reader without permission gets %s", response.Status)
	}
	_, page := handlerstest.Get(t, base+address)
	if page.Find(`a[href$="/hold"]`).Length() > 0 {
		t.Error("a reader without permission gets the link")
	}
}
