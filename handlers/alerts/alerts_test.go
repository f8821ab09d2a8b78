package alerts_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func sample() alerts.State {
	description, _ := alerts.Describe(alerts.TaskWaits)
	at := handlerstest.Noon
	firing := alerts.Alert{Alert: history.Alert{ID: "a", Rule: "task-waits", Team: "vision", Summary: "=2 tasks wait.", Since: at, Fired: at}, Description: description}
	resolved := firing
	resolved.ID, resolved.Resolved = "b", at.Add(time.Minute)
	return alerts.State{Firing: []alerts.Alert{firing}, Resolved: []alerts.Alert{resolved}, Thresholds: alerts.Defaults, Silences: []history.Silence{{ID: "s1", Actor: "ada", Until: at}}}
}

// The page, the files and the header have the same alerts, and an admin silences them.
func TestAlerts(t *testing.T) {
	backend := &handlerstest.AlertsBackend{State: sample(), Firing: 1, Admin: true}
	address := handlerstest.Serve(t, &handlerstest.Backend{Alerts: backend})
	response, page := handlerstest.Get(t, address+"/alerts")
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find("#alerts-firing-table tbody tr").Length() != 1 || page.Find("#alerts-resolved-table tbody tr").Length() != 1 || page.Find("#alert-rules-table tbody tr").Length() != len(alerts.Rules) {
		t.Errorf("the page has %s: %s", response.Status, page.Find("main").Text())
	}
	if text := page.Find("#alerts-count").Text(); strings.Join(strings.Fields(text), " ") != "1 firing" {
		t.Errorf("the header has %q", text)
	}
	_, csv := handlerstest.Get(t, address+"/alerts.csv")
	if text := csv.Text(); !strings.Contains(text, "task-waits,warning,firing,vision,,'=2 tasks wait.") || !strings.Contains(text, "resolved") {
		t.Errorf("the CSV file has %q", text)
	}
	_, body := handlerstest.Get(t, address+"/alerts.json")
	var answer struct {
		Alerts []struct{ Rule, State, Team string }
	}
	if err := json.Unmarshal([]byte(body.Text()), &answer); err != nil || len(answer.Alerts) != 2 || answer.Alerts[1].State != "resolved" {
		t.Errorf("the JSON file has %v, %v", answer, err)
	}

	resolved := backend.State.Resolved[0]
	resolved.Departments = []string{"robots", "research"}
	backend.State.Resolved = []alerts.Alert{resolved}
	_, page = handlerstest.Get(t, address+"/alerts?department=research")
	if page.Find("#alerts-firing-table, #alerts-resolved-table").Find("tbody tr").Length() != 1 || page.Find("#department option[selected]").AttrOr("value", "") != "research" {
		t.Errorf("of the department the page has %s", page.Find("main").Text())
	}
	if _, csv = handlerstest.Get(t, address+"/alerts.csv?department=research"); strings.Contains(csv.Text(), "firing,vision") || !strings.Contains(csv.Text(), "resolved,vision,robots,") {
		t.Errorf("of the department the CSV file has %q", csv.Text())
	}

	for name, tc := range map[string]struct {
		form  url.Values
		wrong string
	}{
		"unknown rule": {url.Values{"rule": {"x"}, "duration": {"1h"}, "reason": {"kept"}}, "Choose a rule"},
		"no duration":  {url.Values{"rule": {"task-waits"}, "reason": {"kept"}}, "Choose how long"},
		"long reason":  {url.Values{"duration": {"1h"}, "reason": {strings.Repeat("a", 501)}}, "at most 500"},
	} {
		tc.form.Set("action", "silence")
		tc.form.Set("as", "ada")
		response, page := handlerstest.Post(t, address+"/alerts", tc.form)
		kept, _ := page.Find("#reason").Attr("value")
		if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page.Find("[role=alert]").Text(), tc.wrong) || kept != tc.form.Get("reason") {
			t.Errorf("%s: got %s with %q, reason %q", name, response.Status, page.Find("[role=alert]").Text(), kept)
		}
	}
	response, _ = handlerstest.Post(t, address+"/alerts", url.Values{"action": {"silence"}, "as": {"ada"}, "rule": {"task-waits"}, "team": {"vision"}, "duration": {"1d"}, "reason": {" known "}})
	if response.StatusCode != http.StatusSeeOther || len(backend.Silenced) != 1 || backend.Silenced[0].Reason != "known" || time.Until(backend.Silenced[0].Until) < 23*time.Hour {
		t.Errorf("a silence is answered %s: %v", response.Status, backend.Silenced)
	}
	response, _ = handlerstest.Post(t, address+"/alerts", url.Values{"action": {"test"}, "as": {"ada"}, "receiver": {"ops"}})
	if response.StatusCode != http.StatusSeeOther || backend.Tested != "ops" {
		t.Errorf("a test is answered %s: %q", response.Status, backend.Tested)
	}
	response, _ = handlerstest.Post(t, address+"/alerts", url.Values{"action": {"end"}, "as": {"ada"}, "silence": {"s1"}})
	if response.StatusCode != http.StatusSeeOther || backend.Ended != "s1" {
		t.Errorf("the end of a silence is answered %s: %q", response.Status, backend.Ended)
	}
}

// A user who may not silence is offered no form.
func TestReader(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{Alerts: &handlerstest.AlertsBackend{State: sample()}})
	_, page := handlerstest.Get(t, address+"/alerts")
	if page.Find("main form").Length() != 0 {
		t.Error("the page offers a form")
	}
	response, _ := handlerstest.Post(t, address+"/alerts", url.Values{"action": {"silence"}, "as": {"ada"}})
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("an invalid form of a user who may not silence is answered %s", response.Status)
	}
	address = handlerstest.Serve(t, &handlerstest.Backend{})
	if response, page := handlerstest.Get(t, address+"/alerts"); response.StatusCode != http.StatusOK || page.Find(".notice").Length() == 0 {
		t.Errorf("without history the page is answered %s", response.Status)
	}
}
