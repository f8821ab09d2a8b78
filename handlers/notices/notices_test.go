package notices_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/notices"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/google/go-cmp/cmp"
)

// The page shows what a person asked for and can choose, says what is lost, and saves what is
// checked.
func TestNotices(t *testing.T) {
	t.Parallel()
	d := &handlerstest.Backend{PersonNotices: &handlerstest.NoticesBackend{State: notices.State{
		Settings: notices.Settings{On: []notices.Event{notices.End}, To: []string{"mail", "old"}}, Email: "ada@example.com", Until: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Receivers: []notices.Receiver{{Name: "mail", Type: "Email"}, {Name: "vision", Type: "Slack", Team: "vision"}, {Name: "other", Type: "Email", Problem: "No address."}}, Lost: []string{"old"},
	}}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/notices")
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{
		"#to-mail-hint": "E-mail to ada@example.com.", "#to-vision-hint": "Slack, tasks of team vision. Its readers see your name and your tasks.", "#to-other-hint": "No address.",
		".notice-warn": "You get no notices by old any more: it is not allowed now, it is of a team that you do not see, or you have no verified address.",
	} {
		if got := handlerstest.Text(page.Find(selector)); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
	if got, want := handlerstest.ValuesIn(page, "#notices-form"), (url.Values{"as": {"ada"}, "on": {"end"}, "to": {"mail"}}); !cmp.Equal(got, want) {
		t.Errorf("the form has %v, want %v", got, want)
	}
	if page.Find("#to-other[disabled]").Length() != 1 || page.Find(`a.user[href="/notices"]`).Length() != 1 || d.PersonNotices.Pages != 1 {
		t.Errorf("got %s after %d pages", handlerstest.Text(page.Find("header")), d.PersonNotices.Pages)
	}
	response, _ := handlerstest.Post(t, address+"/notices", url.Values{"as": {"ada"}, "on": {"end", "fail"}, "to": {"vision"}})
	if want := (&notices.Settings{On: []notices.Event{"end", "fail"}, To: []string{"vision"}}); response.StatusCode != http.StatusSeeOther || !cmp.Equal(d.PersonNotices.Wanted, want) {
		t.Errorf("got %s and %v, want %v", response.Status, d.PersonNotices.Wanted, want)
	}
	d.PersonNotices.Failure = &governance.Error{Kind: governance.Invalid, Fields: []governance.FieldError{{Path: "to", Message: "choose a receiver"}}}
	response, page = handlerstest.Post(t, address+"/notices", url.Values{"as": {"ada"}, "on": {"fail"}})
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#to-error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "Choose how you are notified") || page.Find("#on-fail[checked]").Length() != 1 {
		t.Errorf("got %s and %q", response.Status, got)
	}
}

// Without a receiver the page says who can allow one, and how; without notices, why.
func TestNoReceivers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		notices *handlerstest.NoticesBackend
		admin   bool
		want    string
	}{
		"a member":   {&handlerstest.NoticesBackend{}, false, "An admin can allow one"},
		"an admin":   {&handlerstest.NoticesBackend{}, true, "edit the receivers"},
		"no sign-in": {nil, true, "without sign-in or without history"},
	} {
		_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{PersonNotices: tc.notices, Alerts: &handlerstest.AlertsBackend{Admin: tc.admin}})+"/notices")
		htmlcheck.Page(t, page)
		if got := handlerstest.Text(page.Find("main")); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if links := page.Find(`main a[href="/alerts/rules"]`).Length(); links > 0 != (tc.admin && tc.notices != nil) {
			t.Errorf("%s: %d links to the receivers", name, links)
		}
	}
}

// The API reads and sets the same.
func TestAPI(t *testing.T) {
	t.Parallel()
	d := &handlerstest.Backend{PersonNotices: &handlerstest.NoticesBackend{State: notices.State{Receivers: []notices.Receiver{{Name: "mail", Type: "Email", Problem: "No address."}}}}}
	address := handlerstest.Serve(t, d) + "/api/v1/notices"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(`{"on": ["start"], "to": ["mail"]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	want := map[string]any{"on": []any{}, "to": []any{}, "receivers": []any{map[string]any{"name": "mail", "type": "Email", "problem": "No address."}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (&notices.Settings{On: []notices.Event{"start"}, To: []string{"mail"}}); !cmp.Equal(d.PersonNotices.Wanted, want) {
		t.Errorf("set is %v, want %v", d.PersonNotices.Wanted, want)
	}
}
