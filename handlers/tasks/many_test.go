package tasks_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// sweep has five tasks, one of which cannot be stopped.
func sweep() *handlerstest.Backend {
	d := &handlerstest.Backend{}
	for name, state := range map[string]tasks.State{"a": tasks.Running, "b": tasks.Running, "c": tasks.Pending, "d": tasks.Pending, "e": tasks.Succeeded} {
		t := &tasks.Task{Namespace: "ns", Kind: "Job", Name: name, UID: "u" + name, State: state}
		if state == tasks.Running {
			t.Usage = quota.Resources{"nvidia.com/gpu": 2}
		}
		d.Items = append(d.Items, queries.Item{Task: t, Team: "vision"})
	}
	slices.SortFunc(d.Items, func(a, b queries.Item) int { return strings.Compare(a.Name, b.Name) })
	d.ActionsBackend.ObstacleOf = map[string]string{"e": "It has ended."}
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) {
		return queries.Preview{Settled: true, Omitted: []simulate.Omission{}}, nil
	}
	return d
}

// ended follows the progress of a change until it ended.
func ended(t *testing.T, address string, response *http.Response) (page *goquery.Document) {
	t.Helper()
	if response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(response.Header.Get("Location"), "/bulk/") {
		t.Fatalf("got %s to %q, want the progress", response.Status, response.Header.Get("Location"))
	}
	_, page = handlerstest.Get(t, address+response.Header.Get("Location"))
	htmlcheck.Page(t, page)
	handlerstest.EventsUntil(t, address+response.Header.Get("Location")+"/events", func(html string) bool {
		return strings.Contains(html, "All ") || strings.Contains(html, " done, ")
	})
	_, page = handlerstest.Get(t, address+response.Header.Get("Location"))
	return page
}

// Selected tasks are reviewed together, and only those of the review are changed. What changed
// meanwhile is reported.
func TestStopMany(t *testing.T) {
	d := sweep()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks?team=vision")
	htmlcheck.Page(t, page)
	if n := page.Find("input.row-select[form=many]").Length(); n != 5 || page.Find("#many button[value=stop]").Length() != 1 {
		t.Fatalf("got %d check boxes", n)
	}
	form := handlerstest.ValuesIn(page, "#many")
	form["task"], form["do"] = []string{"ua", "uc", "ud", "ue"}, []string{"stop"}
	response, page := handlerstest.Post(t, address+"/tasks/many", form)
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	text := handlerstest.Text(page.Find("main"))
	for _, want := range []string{"Stop 3 tasks", "1 running, 2 waiting.", "lose 2 GPUs at once", "Left out, because this cannot be done to them: 1 task.", "e: It has ended."} {
		if !strings.Contains(text, want) {
			t.Errorf("the review: got %q, want %q", text, want)
		}
	}
	if page.Find("#preview").Length() != 1 {
		t.Error("the review has no effect on other tasks")
	}
	review := handlerstest.ValuesIn(page, "#action-form")
	if got := review["task"]; !slices.Equal(got, []string{"ua", "uc", "ud"}) {
		t.Fatalf("the review is about %q", got)
	}
	d.ActionsBackend.ObstacleOf["c"] = "It is stopped."                                              // since the review
	d.Items = slices.DeleteFunc(d.Items, func(i queries.Item) bool { return i.Name == "d" })         // deleted
	d.Items = append(d.Items, queries.Item{Task: &tasks.Task{Name: "f", UID: "uf"}, Team: "vision"}) // matches the filter now
	response, _ = handlerstest.Post(t, address+"/tasks/many", review)
	page = ended(t, address, response)
	if got := d.ActionsBackend.Done; !slices.Equal(got, []string{"stop a ua"}) {
		t.Errorf("done: %q", got)
	}
	if text := handlerstest.Text(page.Find("#bulk")); !strings.Contains(text, "1 done, 2 not.") || !strings.Contains(text, "It is stopped.") || !strings.Contains(text, "It was deleted meanwhile.") {
		t.Errorf("the progress: got %q", text)
	}
}

// All that the filters match can be selected, and filters are those of the list.
func TestAllThatMatch(t *testing.T) {
	d := sweep()
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks?team=vision&q=lr&status=Pending")
	form := handlerstest.ValuesIn(page, "#many")
	form["task"], form["all"], form["do"] = []string{"ua"}, []string{"true"}, []string{"resume"}
	_, page = handlerstest.Post(t, address+"/tasks/many", form)
	if q := d.Query; !slices.Equal(d.QueriedTeams, []string{"vision"}) || q.Text != "lr" || !slices.Equal(q.States, []tasks.State{tasks.Pending}) || !q.All || len(q.UIDs) != 0 {
		t.Errorf("asked %+v of %v", q, d.QueriedTeams)
	}
	if got := handlerstest.ValuesIn(page, "#action-form")["task"]; !slices.Equal(got, []string{"uc", "ud"}) {
		t.Errorf("the review is about %q, want those that match", got)
	}
	if up := page.Find(".up a").AttrOr("href", ""); up != "/tasks?q=lr&status=Pending&team=vision" {
		t.Errorf("the way back is %s", up)
	}
}

// Finished and other tasks are submitted again, each under a new name that the progress has.
func TestAgainMany(t *testing.T) {
	d := sweep()
	d.SubmitBackend.Manifest = "kept"
	d.Items[1].Team = ""
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks?tab=finished")
	if n := page.Find("#many button[value=again]").Length(); n != 1 {
		t.Fatalf("the finished tasks have %d buttons", n)
	}
	_, page = handlerstest.Post(t, address+"/tasks/many", url.Values{"do": {"again"}, "task": {"ua", "ub", "ue"}})
	text := handlerstest.Text(page.Find("main"))
	for _, want := range []string{"Submit 2 tasks again", "Each gets a new name", "b: It belongs to no team."} {
		if !strings.Contains(text, want) {
			t.Errorf("the review: got %q, want %q", text, want)
		}
	}
	response, _ := handlerstest.Post(t, address+"/tasks/many", handlerstest.ValuesIn(page, "#action-form"))
	page = ended(t, address, response)
	slices.Sort(d.SubmitBackend.Repeated)
	if want := []string{"a of vision as a-2", "e of vision as e-2"}; !slices.Equal(d.SubmitBackend.Repeated, want) || len(d.ActionsBackend.Done) != 0 {
		t.Errorf("submitted %q and did %q, want %q", d.SubmitBackend.Repeated, d.ActionsBackend.Done, want)
	}
	if link := page.Find("#bulk a[href='/tasks/ns/job/e-2']"); link.Text() != "e as e-2" {
		t.Errorf("the progress: got %q", handlerstest.Text(page.Find("#bulk")))
	}
	d.SubmitBackend.Manifest = ""
	_, page = handlerstest.Post(t, address+"/tasks/many", url.Values{"do": {"again"}, "task": {"ua"}})
	if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, "cannot be submitted again here") {
		t.Errorf("without permission: got %q", text)
	}
}

// A class and a deletion are confirmed.
func TestConfirmMany(t *testing.T) {
	d := sweep()
	address := handlerstest.Serve(t, d)
	post := func(do string, pairs ...string) (*http.Response, *goquery.Document) {
		values := url.Values{"do": {do}, "task": {"ua", "uc"}, "reviewed": {"true"}}
		return handlerstest.Post(t, address+"/tasks/many", handlerstest.WithValues(values, pairs...))
	}
	for name, tc := range map[string]struct {
		do    string
		pairs []string
		error string
	}{
		"no class":           {"class", []string{"asked", "true"}, "Choose a priority class."},
		"an unknown class":   {"class", []string{"asked", "true", "choice", "x"}, "Choose a priority class."},
		"deletion untyped":   {"delete", nil, "Type 2 exactly."},
		"deletion of others": {"delete", []string{"confirm", "3"}, "Type 2 exactly."},
	} {
		response, page := post(tc.do, tc.pairs...)
		if text := handlerstest.Text(page.Find(".error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, tc.error) {
			t.Errorf("%s: got %s, %q", name, response.Status, text)
		}
		htmlcheck.Page(t, page)
	}
	if len(d.ActionsBackend.Done) != 0 {
		t.Fatalf("done: %q", d.ActionsBackend.Done)
	}
	_, page := post("class", "reviewed", "")
	if page.Find("#preview").Length() != 0 || page.Find("#choice-high-priority").Length() != 1 {
		t.Errorf("without a class: got %q, want the choice and no effect", handlerstest.Text(page.Find("main")))
	}
	chosen := handlerstest.ValuesIn(page, "#action-form")
	chosen.Set("choice", "high-priority")
	_, page = handlerstest.Post(t, address+"/tasks/many", chosen)
	if page.Find("#preview").Length() != 1 || !strings.Contains(handlerstest.Text(page.Find("main")), "They get the priority class high.") {
		t.Errorf("with a class: got %q, want its effect", handlerstest.Text(page.Find("main")))
	}
	response, _ := handlerstest.Post(t, address+"/tasks/many", handlerstest.ValuesIn(page, "#action-form"))
	ended(t, address, response)
	response, _ = post("delete", "confirm", "2")
	ended(t, address, response)
	slices.Sort(d.ActionsBackend.Done)
	if want := []string{"class high-priority a ua", "class high-priority c uc", "delete a ua", "delete c uc"}; !slices.Equal(d.ActionsBackend.Done, want) {
		t.Errorf("done: %q", d.ActionsBackend.Done)
	}
}

// Nothing selected, or nothing that can be done, is a sentence and no form.
func TestNothingSelected(t *testing.T) {
	d := sweep()
	address := handlerstest.Serve(t, d)
	for want, list := range map[string][]string{"Select tasks in the list first.": nil, "This cannot be done to any of the selected tasks. e: It has ended.": {"ue"}} {
		_, page := handlerstest.Post(t, address+"/tasks/many", url.Values{"do": {"stop"}, "task": list})
		htmlcheck.Page(t, page)
		if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, want) || page.Find("#action-form").Length() != 0 {
			t.Errorf("%v: got %q", list, text)
		}
	}
	for _, do := range []string{"", "scale", "x"} {
		if response, _ := handlerstest.Post(t, address+"/tasks/many", url.Values{"do": {do}, "task": {"ua"}}); response.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: got %s, want the list", do, response.Status)
		}
	}
	d.ReadOnly = "Another team runs this."
	if _, page := handlerstest.Get(t, address+"/tasks"); page.Find(".row-select, #many").Length() != 0 {
		t.Error("a console that changes nothing has check boxes")
	}
}
