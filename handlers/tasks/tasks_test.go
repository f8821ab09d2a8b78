package tasks_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// Filters in the address stay in the form and in every link of the page.
func TestTaskQuery(t *testing.T) {
	d := &handlerstest.Backend{}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks?team=vision&class=-&status=Running&status=Pending&kind=Job&pool=p5&q=Train&sort=ran&order=desc&page=3&unknown=x")
	htmlcheck.Page(t, page)
	q := d.Query
	if !slices.Equal(d.QueriedTeams, []string{"vision"}) || !slices.Equal(q.PriorityClasses, []string{""}) || !slices.Equal(q.States, []tasks.State{tasks.Running, tasks.Pending}) ||
		!slices.Equal(q.Kinds, []string{"Job"}) || !slices.Equal(q.Pools, []string{"p5"}) || q.Text != "Train" || q.Sort != index.ByRan || !q.Descending || q.Page != 3 {
		t.Errorf("%+v of %v was asked", q, d.QueriedTeams)
	}
	for selector, want := range map[string]string{"#team option[selected]": "vision", "#class option[selected]": "-", "#kind option[selected]": "Job"} {
		if got := page.Find(selector).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if got := page.Find("#q").AttrOr("value", ""); got != "Train" {
		t.Errorf("the search is %q", got)
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); !strings.Contains(stream, "/tasks/events?") || !strings.Contains(stream, "team=vision") || strings.Contains(stream, "unknown") {
		t.Errorf("the stream is %s", stream)
	}
	if page.Find(`a[href="/tasks?order=desc&sort=ran"]`).Length() == 0 {
		t.Error("there is no way back to all tasks")
	}
}

// Members of several teams choose the team of a new task.
func TestSubmitToOneOfSeveralTeams(t *testing.T) {
	d := &handlerstest.Backend{}
	d.Teams = []string{"speech", "vision"}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks")
	htmlcheck.Page(t, page)
	if got := page.Find(`#submit-teams a[href="/teams/vision/submit"]`).Length(); got != 1 {
		t.Errorf("got %d links to the form of vision, want one", got)
	}
	_, page = handlerstest.Get(t, address+"/tasks?team=vision")
	if page.Find("#submit-teams").Length() != 0 || page.Find(`.page-head a[href="/teams/vision/submit"]`).Length() != 1 {
		t.Errorf("one team: got %q, want one button", handlerstest.Text(page.Find(".page-head")))
	}
	d.Teams = make([]string, 21)
	if _, page = handlerstest.Get(t, address+"/tasks"); page.Find("#submit-teams").Length() != 0 {
		t.Error("many teams: got a choice, want none")
	}
}

// Addresses of earlier releases lead to the same tasks.
func TestRenamedStates(t *testing.T) {
	d := &handlerstest.Backend{}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks?status=Paused&status=Pre-empted")
	if want := []tasks.State{tasks.Stopped, tasks.Preempted}; !slices.Equal(d.Query.States, want) {
		t.Errorf("%v was asked, want %v", d.Query.States, want)
	}
	if got := page.Find("#status option[selected]").Text(); got != "Stopped" {
		t.Errorf("the filter shows %q", got)
	}
}

func TestNewestTasksFirst(t *testing.T) {
	d := &handlerstest.Backend{}
	handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks")
	if d.Query.Sort != index.BySubmitted || !d.Query.Descending || d.Query.Filtered() {
		t.Errorf("%+v was asked", d.Query)
	}
}

// The CSV file contains no formulas.
func TestTasksCSV(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "=cmd()", Namespace: "ns", Kind: "Job", State: tasks.Running, Usage: quota.Resources{"nvidia.com/mig-1g.10gb": 2, "nvidia.com/gpu": 1}, Submitted: time.Now()}, Team: "vision", Message: "a,\"b\"\nc"}}}
	response, err := http.Get(handlerstest.Serve(t, d) + "/tasks.csv?q=x&page=2")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `ns,Job,'=cmd(),vision,Running,"a,""b""`) || !strings.Contains(string(text), ",1,0,nvidia.com/mig-1g.10gb=2,0,") || !d.Query.All || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("%s: %s", response.Header, text)
	}
}

func TestTaskPage(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train<b>", Namespace: "ns", Kind: "Job", State: tasks.Pending, Queue: "main", Submitted: time.Now(), WaitingSince: time.Now()}, Team: "vision", Position: 3}}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks/ns/job/train?uid=1")
	htmlcheck.Page(t, page)
	if text := page.Find("#task-place").Text(); !strings.Contains(text, "3rd of") || !strings.Contains(page.Find("h1").Text(), "train<b>") {
		t.Errorf("the page shows %q", page.Find("main").Text())
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/tasks/ns/job/train/events?uid=1" {
		t.Errorf("the stream is %s", stream)
	}
	d.Changed = make(chan struct{}, 1)
	wait := handlerstest.Events(t, address+"/tasks/ns/job/train/events")
	wait("3rd of")
	d.Items = nil // deleted while its page is open
	d.Changed <- struct{}{}
	wait("This task was deleted")
	if response, _ := handlerstest.Get(t, address+"/tasks/ns/job/train"); response.StatusCode != http.StatusNotFound {
		t.Errorf("a task that is not there is answered %s", response.Status)
	}
}

// After a deletion the list confirms it in fixed words: text from the address is
// never shown.
func TestDeletionIsConfirmed(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + "/tasks"
	for query, want := range map[string]bool{
		"": false, "?deleted=": false, "?deleted=task": true, "?deleted=train": false,
		"?deleted=%3Cscript%3Ealert(1)%3C%2Fscript%3E": false, "?deleted=task&deleted=train": true,
	} {
		_, page := handlerstest.Get(t, address+query)
		htmlcheck.Page(t, page)
		text, _ := page.Html()
		if said := strings.Contains(page.Find(".notice").Text(), "Task deleted."); said != want || strings.Contains(text, "train") || strings.Contains(text, "alert(1)") {
			t.Errorf("%s: said is %t: %q", query, said, page.Find("main").Text())
		}
		if strings.Contains(text, "deleted=") {
			t.Errorf("%s: an address on the page says it again", query)
		}
	}
}

// The address contains the tab. Requested states decide, so that addresses without a
// tab keep working.
func TestTaskTabs(t *testing.T) {
	for query, want := range map[string]struct {
		phase   index.Phase
		current string
		kept    string // hidden value of the form
		other   string // address of the other tab
	}{
		"":                              {index.Active, "Active 40", "", "/tasks?tab=finished"},
		"?tab=finished":                 {index.Finished, "Finished 1,200", "finished", "/tasks"},
		"?tab=unknown":                  {index.Active, "Active 40", "", "/tasks?tab=finished"},
		"?tab=finished&team=vision":     {index.Finished, "Finished 1,200", "finished", "/tasks?team=vision"},
		"?status=Failed&q=a":            {index.Finished, "Finished 1,200", "", "/tasks?q=a"},
		"?status=Running&status=Paused": {index.Active, "Active 40", "", "/tasks?tab=finished"},
		"?tab=finished&status=Pending":  {index.Active, "Active 40", "", "/tasks?tab=finished"},
		"?status=Running&status=Failed": {"", "", "", "/tasks?tab=finished"},
		"?page=3&tab=finished":          {index.Finished, "Finished 1,200", "finished", "/tasks"},
	} {
		t.Run(query, func(t *testing.T) {
			d := oneTask()
			d.List.Phases = map[index.Phase]int{index.Active: 40, index.Finished: 1200}
			d.List.States = map[tasks.State]int{tasks.Pending: 7, tasks.Preempted: 2, tasks.Running: 30, tasks.Starting: 1, tasks.Stopped: 3, tasks.Succeeded: 1200}
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks"+query)
			htmlcheck.Page(t, page)
			if d.Query.Phase != want.phase || !d.Query.Explain {
				t.Errorf("%+v was asked", d.Query)
			}
			if got := strings.Join(strings.Fields(page.Find(`.list-tabs [aria-current]`).Text()), " "); got != want.current {
				t.Errorf("the tab is %q, want %q", got, want.current)
			}
			if got := page.Find(`.filters input[name="tab"]`).AttrOr("value", ""); got != want.kept {
				t.Errorf("the form keeps %q, want %q", got, want.kept)
			}
			if got := page.Find(".list-tabs a:not([aria-current]):not([href='/queue'])").Last().AttrOr("href", ""); got != want.other {
				t.Errorf("the other tab leads to %s, want %s", got, want.other)
			}
			if stream := page.Find("body").AttrOr("data-stream", ""); strings.Contains(stream, "tab=finished") != (want.kept != "") {
				t.Errorf("the stream is %s", stream)
			}
			if got := handlerstest.Text(page.Find(".stats")); got != "Waiting tasks 9 2 preempted Running tasks 31 1 starting Stopped tasks 3" {
				t.Errorf("at the top it shows %q", got)
			}
		})
	}
}

// The list shows the headline of the task's page, and not Kueue's message, which can
// name other tasks.
func TestReasonInTheList(t *testing.T) {
	short := &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}, Needed: 5, Available: 2, PotentialAvailable: 4}
	for name, tc := range map[string]struct {
		state tasks.State
		brief *explain.Verdict
		want  string
	}{
		"short of quota":          {tasks.Pending, &explain.Verdict{Constraint: explain.Quota, Shortage: short}, "3 GPUs short."},
		"more than it can have":   {tasks.Preempted, &explain.Verdict{Constraint: explain.ExceedsMax, Shortage: short}, "Team vision can never have that much."},
		"behind others":           {tasks.Pending, &explain.Verdict{Constraint: explain.Behind}, "It waits for its turn."},
		"stopped":                 {tasks.Stopped, &explain.Verdict{Constraint: explain.Deactivated}, ""},
		"not computed yet":        {tasks.Pending, nil, "Waiting for quota."},
		"it runs":                 {tasks.Running, nil, ""},
		"its pods lack nodes":     {tasks.Running, &explain.Verdict{Constraint: explain.NodesFull}, "The nodes are full."},
		"it is being preempted":   {tasks.Stopping, nil, "Its pods are ending."},
		"it failed, as Kueue saw": {tasks.Failed, nil, "kueue-raw"},
	} {
		t.Run(name, func(t *testing.T) {
			d := oneTask()
			d.Items[0].State, d.Items[0].Message, d.Items[0].Brief = tc.state, "kueue-raw", tc.brief
			address := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, address+"/tasks")
			if got := handlerstest.Text(page.Find("#tasks-table .reason")); got != tc.want {
				t.Errorf("the reason is %q, want %q", got, tc.want)
			}
			if tc.want != "" && tc.brief != nil {
				d.MoreDetail = func(detail *queries.Detail) { detail.Verdict = tc.brief }
				_, page = handlerstest.Get(t, address+"/tasks/ns/rayjob/train")
				if got := handlerstest.Text(page.Find("#task-why .verdict strong")); got != tc.want {
					t.Errorf("the task's page shows %q, and the list %q", got, tc.want)
				}
			}
		})
	}
}
