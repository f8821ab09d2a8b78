package allocations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

// manyTeams has n teams, of which the pages preview changes.
func manyTeams(n int) *handlerstest.Backend {
	d := someTeams(n)
	d.PreviewBackend.Previewed = func(context.Context) (queries.Preview, error) {
		return queries.Preview{Settled: true, Omitted: []simulate.Omission{}}, nil
	}
	return d
}

// selectTeams checks teams of the list at path, and does what the button says.
func selectTeams(t *testing.T, address, path, do string, teams ...string) (*http.Response, *goquery.Document) {
	t.Helper()
	_, page := handlerstest.Get(t, address+path)
	form := handlerstest.ValuesIn(page, "#many")
	form["team"], form["do"] = teams, []string{do}
	if len(teams) == 0 {
		form["all"] = []string{"true"}
	}
	response, page := handlerstest.Post(t, address+"/policies/many", form)
	htmlcheck.Page(t, page)
	return response, page
}

// outcome starts what a page reviews, and returns what its progress shows in the end.
func outcome(t *testing.T, address string, review url.Values) string {
	t.Helper()
	response, page := handlerstest.Post(t, address+"/policies/many", review)
	to := response.Header.Get("Location")
	if response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/bulk/") {
		t.Fatalf("got %s to %q: %s", response.Status, to, handlerstest.Text(page.Find("main")))
	}
	handlerstest.EventsUntil(t, address+to+"/events", func(html string) bool { return strings.Contains(html, "All ") || strings.Contains(html, " done, ") })
	_, page = handlerstest.Get(t, address+to)
	htmlcheck.Page(t, page)
	return handlerstest.Text(page.Find("main"))
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q", what, text, want)
		}
	}
}

// Selected teams are reviewed together, and only those of the review are changed. What changed
// meanwhile is reported.
func TestHoldMany(t *testing.T) {
	d := manyTeams(20)
	d.DepartureResult = allocations.DeletionPreview{Running: make([]allocations.Task, 2), Waiting: 3}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies")
	if n := page.Find("input.row-select[form=many][name=team]").Length(); n != 20 {
		t.Fatalf("got %d check boxes", n)
	}
	response, page := selectTeams(t, address, "/policies?sort=weight", "hold", "team-0001", "team-0002", "team-0003", "team-0004", "team-0007", "nobody")
	if response.StatusCode != http.StatusOK || page.Find("#preview").Length() != 1 || !slices.Equal(d.PreviewBackend.Together, []int{4}) {
		t.Fatalf("%s, and previews of %v", response.Status, d.PreviewBackend.Together)
	}
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Hold the queues of 4 teams", "team-0001, team-0002, team-0003, team-0004.", "8 running, 12 waiting", "Left out, because this cannot be done to them: 1 team.", "team-0007: Its queue is on hold already.")
	if up := page.Find(".up a").AttrOr("href", ""); up != "/policies?sort=weight" {
		t.Errorf("the way back is %s", up)
	}
	review := handlerstest.WithValues(handlerstest.ValuesIn(page, "#action-form"), "reason", "maintenance")
	d.Change("team-0002", func(a *v1alpha1.ComputeAllocation) { a.Spec.Description = "theirs" })
	d.Touch("team-0003") // a write of the status is no change
	d.Allocations = slices.DeleteFunc(d.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == "team-0004" })
	contains(t, "the progress", outcome(t, address, review), "Hold the queues of 2 teams", "2 done, 2 not.", "team-0002 team-0002 Not done It was changed meanwhile.", "team-0004 team-0004 Not done It was deleted meanwhile.")
	var got []string
	for _, a := range d.Updated {
		got = append(got, fmt.Sprint(a.Name, " ", a.Spec.Activation, " ", a.Annotations[v1alpha1.AnnotationReason]))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"team-0001 Hold maintenance", "team-0003 Hold maintenance"}, got); diff != "" || d.User.Name != "ada" {
		t.Errorf("saved as %s (-want +got):\n%s", d.User.Name, diff)
	}
}

// All that the filters match are resumed, and what one team rejects keeps no other from it.
func TestResumeAllThatMatch(t *testing.T) {
	d := manyTeams(300)
	address := handlerstest.Serve(t, d)
	_, page := selectTeams(t, address, "/policies?status=Held", "resume")
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Resume the queues of 30 teams", "and 10 more.")
	d.Change("team-0008", func(a *v1alpha1.ComputeAllocation) { a.Spec.Activation = v1alpha1.Hold }) // matches the filter now
	contains(t, "the progress", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "All 30.")
	for _, a := range d.Updated {
		if a.Spec.Activation != v1alpha1.Active || !strings.HasSuffix(a.Name, "7") {
			t.Errorf("saved %s as %s", a.Name, a.Spec.Activation)
		}
	}
	_, page = selectTeams(t, address, "/policies", "hold", "team-0001", "team-0002")
	d.WriteError = &governance.Error{Kind: governance.Forbidden, Message: "Only on Mondays."}
	contains(t, "a rejected change", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "0 done, 2 not.", "Only on Mondays.")
}

// A weight is chosen first, and what it does is reviewed.
func TestWeightOfMany(t *testing.T) {
	d := manyTeams(20)
	address := handlerstest.Serve(t, d)
	_, page := selectTeams(t, address, "/policies", "weight", "team-0003", "team-0005", "team-0009")
	if page.Find("#preview").Length() != 0 || page.Find("#weight").Length() != 1 {
		t.Fatalf("without a weight: got %q", handlerstest.Text(page.Find("main")))
	}
	form := handlerstest.ValuesIn(page, "#action-form")
	for _, typed := range []string{"", "101", "x"} {
		response, page := handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "weight", typed))
		htmlcheck.Page(t, page)
		if response.StatusCode != http.StatusUnprocessableEntity || page.Find("#weight").AttrOr("value", "") != typed || !strings.Contains(handlerstest.Text(page.Find("#weight-error")), "0 to 100") {
			t.Errorf("weight %q: got %s, %q", typed, response.Status, handlerstest.Text(page.Find("#weight-error")))
		}
	}
	_, page = handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "weight", "5"))
	htmlcheck.Page(t, page)
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Change the weight of 2 teams", "Their fair-share weights are 3 to 9 now, and 5 afterwards.", "team-0005: It has this weight already.")
	contains(t, "the progress", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "All 2.")
	for _, a := range d.Updated {
		if a.Spec.FairShareWeight != 5 || a.Name == "team-0005" {
			t.Errorf("saved %s with weight %d", a.Name, a.Spec.FairShareWeight)
		}
	}
}

// A department is chosen first, of those that the reader governs and that have enough left for all.
func TestMoveMany(t *testing.T) {
	d := manyTeams(20)
	address := handlerstest.Serve(t, d)
	if _, page := handlerstest.Get(t, address+"/policies"); page.Find("#many button[value=move]").Length() != 0 {
		t.Error("without departments: teams can be moved to one")
	}
	d.Departments.List = []v1alpha1.Department{handlerstest.Department("research", "", 5), handlerstest.Department("sales", "", 20)}
	d.Allocations[1].Spec.Department, d.Allocations[2].Spec.Department = "sales", "sales"
	_, page := selectTeams(t, address, "/policies", "move", "team-0001", "team-0002", "team-0003", "team-0004")
	contains(t, "the choice", handlerstest.Text(page.Find("main")), "Move 4 teams to a department", "research · 5 of 5 L4 left", "sales · 16 of 20 L4 left")
	if page.Find("#preview").Length() != 0 {
		t.Error("a preview without a department")
	}
	form := handlerstest.ValuesIn(page, "#action-form")
	for typed, want := range map[string]string{"nowhere": "Department nowhere does not exist", "research": "In pool ml.g6.12xlarge they have 8 GPUs, and department research has 5 GPUs left"} {
		response, page := handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "department", typed))
		htmlcheck.Page(t, page)
		contains(t, typed, handlerstest.Text(page.Find("#department-error")), want)
		if n := len(handlerstest.ValuesIn(page, "#action-form")["seen"]); response.StatusCode != http.StatusUnprocessableEntity || n != 4 || page.Find("#department option[selected]").AttrOr("value", "") != typed {
			t.Errorf("department %s: got %s with %d teams", typed, response.Status, n)
		}
	}
	_, page = handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "department", "sales"))
	htmlcheck.Page(t, page)
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Move 2 teams to department sales", "team-0001: It is there already.", "count in the department")
	if page.Find("#preview").Length() != 1 || !slices.Equal(d.PreviewBackend.Together, []int{2}) {
		t.Errorf("previews of %v", d.PreviewBackend.Together)
	}
	contains(t, "the progress", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "All 2.")
	_, page = handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "department", ""))
	contains(t, "the way out", handlerstest.Text(page.Find("main")), "Move 2 teams out of all departments", "Only admins of the cluster")
	contains(t, "the progress", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "All 2.")
	moved := map[string]string{}
	for _, a := range d.Updated {
		moved[a.Name] = a.Spec.Department
	}
	if diff := cmp.Diff(map[string]string{"team-0001": "", "team-0002": "", "team-0003": "sales", "team-0004": "sales"}, moved); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}

	// An admin of sales moves its teams to departments that they govern.
	governed := access.GovernedOf("sales")
	d.Departments.Governed = &governed
	_, page = selectTeams(t, address, "/policies", "move", "team-0003", "team-0005")
	contains(t, "an admin of sales", handlerstest.Text(page.Find("main")), "Move 1 team to a department", "team-0005: You are not an admin of its department.")
	form = handlerstest.ValuesIn(page, "#action-form")
	for _, typed := range []string{"", "research"} {
		response, page := handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "department", typed))
		contains(t, "department "+typed, handlerstest.Text(page.Find("#department-error")), "Choose a department of which you are an admin.")
		if response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("department %q: got %s", typed, response.Status)
		}
	}
}

// A deletion is confirmed by the number of teams, and drains those whose tasks the review counted.
func TestDeleteMany(t *testing.T) {
	d := manyTeams(20)
	d.Allocations[5].Spec.ClusterQueueName = "theirs"
	d.Allocations[6].Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "teams", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	d.DepartureResult = allocations.DeletionPreview{Running: make([]allocations.Task, 1)}
	address := handlerstest.Serve(t, d)
	_, page := selectTeams(t, address, "/policies", "delete", "team-0001", "team-0005", "team-0006", "team-0010")
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Delete 3 teams", "3 running", "Quota of h100 that is deleted: 4", "ml.g6.12xlarge: Over capacity: teams would be allocated 4 times", "The ClusterQueues of 1 team existed before", "Type 3 to confirm", "team-0006: Managed by Flux")
	form := handlerstest.ValuesIn(page, "#action-form")
	for _, typed := range []string{"", "4", "team-0001"} {
		response, page := handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(form, "confirm", typed))
		htmlcheck.Page(t, page)
		if text := handlerstest.Text(page.Find(".error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "Type 3 exactly.") {
			t.Errorf("typed %q: got %s, %q", typed, response.Status, text)
		}
	}
	form["drain"] = form["drain"][:2] // no task of the third was running
	contains(t, "the progress", outcome(t, address, handlerstest.WithValues(form, "confirm", "3")), "All 3.")
	slices.Sort(d.Deletions)
	if diff := cmp.Diff([]string{"team-0001 by draining", "team-0005 by draining", "team-0010 by itself"}, d.Deletions); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// At most 1,000 teams are changed at a time, in one run.
func TestMoreThanManyTeams(t *testing.T) {
	d := manyTeams(1100)
	address := handlerstest.Serve(t, d)
	_, page := selectTeams(t, address, "/policies", "weight")
	_, page = handlerstest.Post(t, address+"/policies/many", handlerstest.WithValues(handlerstest.ValuesIn(page, "#action-form"), "weight", "77"))
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Change the weight of 990 teams")
	_, page = selectTeams(t, address, "/policies?sort=weight", "hold", "")
	contains(t, "nothing selected", handlerstest.Text(page.Find("main")), "Select teams in the list first.")
	d.Allocations = someTeams(1300).Allocations
	_, page = selectTeams(t, address, "/policies", "hold")
	contains(t, "the review", handlerstest.Text(page.Find("main")), "Hold the queues of 1,000 teams", "These are the first 1,000. 170 more match")
	if n := len(handlerstest.ValuesIn(page, "#action-form")["seen"]); n != 1000 {
		t.Errorf("the review is about %d teams", n)
	}
	contains(t, "the progress", outcome(t, address, handlerstest.ValuesIn(page, "#action-form")), "All 1,000.")
}

// Readers who may not change teams have no check boxes, and are not answered.
func TestReadersSelectNothing(t *testing.T) {
	d := manyTeams(3)
	d.Reader = true
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies")
	if page.Find(".row-select, #many").Length() != 0 {
		t.Error("a reader has check boxes")
	}
	for _, do := range []string{"hold", "resume", "weight", "move", "delete"} {
		response, _ := handlerstest.Post(t, address+"/policies/many", url.Values{"do": {do}, "team": {"team-0001"}})
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %s", do, response.Status)
		}
	}
	d.Reader = false
	if response, _ := handlerstest.Post(t, address+"/policies/many", url.Values{"do": {"x"}}); response.StatusCode != http.StatusSeeOther {
		t.Errorf("an unknown action: got %s, want the list", response.Status)
	}
	d.ReadOnly = "Another console writes."
	if response, _ := handlerstest.Post(t, address+"/policies/many", url.Values{"do": {"hold"}, "team": {"team-0001"}}); response.StatusCode != http.StatusForbidden || len(d.Updated) != 0 {
		t.Errorf("a console that changes nothing: got %s", response.Status)
	}
}

// TestAPIMany does to several teams by the API what the page does, and names those that are left out.
func TestAPIMany(t *testing.T) {
	d := manyTeams(4)
	address := handlerstest.Serve(t, d) + "/api/v1"
	call := func(path, body string, into any) int {
		t.Helper()
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := handlerstest.Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	var problem struct {
		Errors []struct{ Field string }
	}
	for body, field := range map[string]string{
		`{"action": "adopt", "teams": ["a"]}`:                                 "action",
		`{"action": "hold", "teams": []}`:                                     "teams",
		`{"action": "hold", "teams": ["a"], "drain": true}`:                   "drain",
		`{"action": "weight", "teams": ["a"]}`:                                "weight",
		`{"action": "move", "teams": ["a"]}`:                                  "department",
		`{"action": "hold", "teams": ["a"], "department": "a"}`:               "department",
		`{"action": "move", "teams": ["team-0001"], "department": "nowhere"}`: "department",
		`{"action": "weight", "weight": 101, "teams": ["a"]}`:                 "weight",
	} {
		if status := call("/allocations/many", body, &problem); status != http.StatusUnprocessableEntity || len(problem.Errors) != 1 || problem.Errors[0].Field != field {
			t.Errorf("%s: %d, %+v", body, status, problem)
		}
	}
	type answer struct {
		ID    string
		Teams []struct{ Name, Obstacle string }
	}
	var review, begun answer
	const body = `{"action": "weight", "weight": 42, "teams": ["team-0001", "team-0002", "nobody"], "reason": "more"}`
	if status := call("/allocations/many?dryRun=true", body, &review); status != http.StatusOK || review.ID != "" || len(review.Teams) != 3 || review.Teams[2].Obstacle == "" || len(d.Updated) > 0 {
		t.Errorf("a review: %d, %+v", status, review)
	}
	if status := call("/allocations/many", body, &begun); status != http.StatusAccepted || begun.ID == "" {
		t.Fatalf("%d, %+v", status, begun)
	}
	handlerstest.EventsUntil(t, strings.TrimSuffix(address, "/api/v1")+"/bulk/"+begun.ID+"/events", func(html string) bool { return strings.Contains(html, "All ") })
	var run struct {
		Items []struct {
			Name string
			Done bool
		}
	}
	if status := call("/bulk/"+begun.ID, "", &run); status != http.StatusOK || len(run.Items) != 2 || !run.Items[0].Done || !run.Items[1].Done {
		t.Errorf("the run: %d, %+v", status, run)
	}
	if len(d.Updated) != 2 || d.Updated[0].Spec.FairShareWeight != 42 {
		t.Errorf("updated %d teams", len(d.Updated))
	}
}
