package views

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/views/ui"
)

func TestEveryPageIsSound(t *testing.T) {
	emptyPolicies := PoliciesPage{Chrome: sampleChrome("Policies", "policies"), NewURL: "/new"}
	emptyPoliciesOfAdmin := emptyPolicies
	emptyPoliciesOfAdmin.CanWrite = true
	newForm := AllocationForm{Chrome: sampleChrome("Create", "policies"), Action: "/new", CancelURL: "/policies", CanAddRow: true}
	fullForm := sampleForm()
	fullForm.CanAddRow = false

	tests := map[string]templ.Component{
		"tasks":                          Tasks(sampleTasks()),
		"tasks, in loops":                Tasks(TasksPage{Chrome: sampleChrome("Tasks", "tasks"), Loops: &LoopNotice{Title: "4 preemption loops", More: "And 1 more.", Lines: []LoopLine{{ID: "loop-1", Preempted: TaskLink{Name: hostile, URL: "/x"}, For: TaskLink{Name: "a task of another team"}, Times: "63 times in 46 s", State: "It is held.", Until: "2026-11-20T09:10:00Z"}}}}),
		"task, in a loop":                Task(TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Loops: []LoopLine{{ID: "loop-1", Tone: "bad", Preempted: TaskLink{Name: "a", URL: "/a"}, For: TaskLink{Name: hostile}, Times: "3 times in 2 s", Cause: "Again and again.", State: "Kuota only warns."}}}),
		"tasks, none":                    Tasks(TasksPage{Chrome: sampleChrome("Tasks", "tasks")}),
		"queue":                          Upcoming(sampleUpcoming()),
		"alerts":                         Alerts(sampleAlerts()),
		"alerts, none":                   Alerts(AlertsPage{Chrome: sampleChrome("Alerts", "alerts")}),
		"queue, none":                    Upcoming(UpcomingPage{Chrome: sampleChrome("Next to start", "queue")}),
		"queue, none found":              Upcoming(UpcomingPage{Chrome: sampleChrome("Next to start", "queue"), ClearURL: "/queue"}),
		"policies":                       Policies(samplePolicies()),
		"policies, none":                 Policies(emptyPolicies),
		"policies, none, as admin":       Policies(emptyPoliciesOfAdmin),
		"form, untouched":                AllocationPage(newForm),
		"form, everything wrong":         AllocationPage(sampleForm()),
		"form, full":                     AllocationPage(fullForm),
		"form, of an allocation":         AllocationPage(sampleEdit()),
		"review":                         AllocationReviewPage(sampleReview()),
		"review, nothing changes":        AllocationReviewPage(AllocationReview{Chrome: sampleChrome("Review", "policies"), Unchanged: true, Incomplete: "Kueue does not answer.", Save: "Save changes", Action: "/x", CancelURL: "/y", UpLabel: "z"}),
		"conflict":                       ConflictPage(sampleConflict()),
		"allocation":                     AllocationDetailPage(sampleDetail()),
		"allocation, as a member":        AllocationDetailPage(AllocationDetail{Chrome: sampleChrome("vision", "policies"), Team: "vision"}),
		"version":                        VersionDetail(sampleVersion()),
		"version, alone":                 VersionDetail(VersionPage{Chrome: sampleChrome("Version 1", "policies"), UpURL: "/x", UpLabel: "y"}),
		"versions":                       HistoryList(HistoryPage{Chrome: sampleChrome("Versions", "policies"), UpURL: "/x", UpLabel: "y", History: History{Lines: []HistoryLine{sampleVersion().Line}, AllURL: "/all"}}),
		"settings":                       Settings(sampleSettings()),
		"settings, nothing missing":      Settings(SettingsPage{Chrome: sampleChrome("Settings", "settings")}),
		"adoption":                       Adoption(sampleAdoption()),
		"nothing to adopt":               Adoption(AdoptionPage{Chrome: sampleChrome("Adopt existing queues", "policies"), Action: "/policies/adopt", CancelURL: "/policies"}),
		"adoption review":                Adoption(sampleAdoptionReview()),
		"import":                         Import(ImportPage{Chrome: sampleChrome("Import", "policies"), Action: "/policies/import", CancelURL: "/policies"}),
		"import, several":                Import(sampleImport()),
		"managed by another user":        ManagedPage(sampleManaged()),
		"form, imported":                 AllocationPage(sampleImported()),
		"action":                         Action(sampleAction()),
		"action, not possible":           Action(ActionPage{Chrome: sampleChrome("Stop: train", "tasks"), UpLabel: "train", UpURL: "/x", Obstacle: hostile, Alternatives: []ActionButton{{Label: "Stop it", URL: "/y"}}}),
		"task, with actions":             Task(TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Notice: "Stopped.", YAMLURL: "/y", YAMLTitle: "Workload as YAML", Actions: &TaskActions{Buttons: []ActionButton{{Label: "Stop", URL: "/s"}, {Label: "Delete", URL: "/d", Danger: true}}, Missing: "Not for you: delete."}}),
		"task, with logs":                Task(TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Pods: &Pods{Note: "1 pod", Rows: []PodRow{{ID: "pod-1", Name: hostile, Node: "a", Trouble: hostile, Restarts: 1, LogsURL: "/logs"}}, External: ExternalLogs{Host: hostile, URL: "https://logs.example.com/"}}}),
		"logs":                           Logs(LogPage{Chrome: sampleChrome("Logs of train", "tasks"), Task: TaskLink{Name: hostile, URL: "/x"}, Action: "/x/logs", UID: "1", Filters: []Filter{{ID: "pod", Label: "Pod", Options: []Option{{Value: hostile, Label: hostile, Selected: true}, {Value: "b", Label: "b"}}}, {ID: "container", Label: "Container", Options: []Option{{Value: hostile, Label: hostile, Selected: true}, {Value: "c", Label: "c (init)"}}}}, Container: hostile, Contains: hostile, Note: hostile, Lines: LogLines{Skipped: 2, Lines: []LogLine{{At: "2026-01-02T03:04:05Z", Text: hostile, Cut: true}}}, DownloadURL: "/x", External: ExternalLogs{Host: hostile, URL: "https://logs.example.com/"}}),
		"logs, none":                     Logs(LogPage{Chrome: sampleChrome("Logs of train", "tasks"), Task: TaskLink{Name: "train", URL: "/x"}}),
		"delete":                         AllocationDeletePage(sampleDelete()),
		"delete, nothing runs":           AllocationDeletePage(AllocationDelete{Chrome: sampleChrome("Delete vision", "policies"), Team: "vision", Action: "/x", CancelURL: "/y"}),
		"dashboard":                      Dashboard(sampleDashboard()),
		"dashboard, nothing there":       Dashboard(DashboardPage{Chrome: sampleChrome("Dashboard", "dashboard"), UsageChart: Chart{ID: "held-chart", Empty: "Nothing."}, Teams: TeamTable{ID: "team-list"}, Controls: Controls{Label: "x", Action: "/"}}),
		"teams":                          Teams(TeamsPage{Chrome: sampleChrome("Teams", "teams"), Controls: sampleControls(), Teams: sampleTeams()}),
		"teams, none found":              Teams(TeamsPage{Chrome: sampleChrome("Teams", "teams"), Controls: Controls{Label: "x", Action: "/"}, Teams: TeamTable{ID: "team-list", ClearURL: "/teams"}}),
		"error":                          Error(ErrorPage{Chrome: sampleChrome("Not found", ""), Status: 404, Message: "There is nothing here.", Retry: "/x"}),
		"error, and sign-in helps":       Error(ErrorPage{Chrome: Chrome{Title: "Refused"}, Status: 403, Message: "Sign in again.", SignIn: "/auth/login"}),
		"sign in again, form kept":       SignInAgainPage(SignInAgain{Chrome: Chrome{Title: "Sign in again"}, Login: "/auth/login", Kept: true}),
		"sign in again, form here":       SignInAgainPage(SignInAgain{Chrome: Chrome{Title: "Sign in again"}, Login: "/auth/login", Action: "/new", Fields: []HiddenField{{"team", "vision"}}}),
		"another user now":               SignInAgainPage(SignInAgain{Chrome: Chrome{Title: "Signed in as another user"}, OpenedBy: "a", SignedInAs: "b", Action: "/new", Fields: []HiddenField{{"team", "vision"}}}),
		"signed in in another tab":       SignedInPage(Chrome{Title: "Signed in"}),
		"signed out":                     SignedOutPage(SignedOut{Chrome: Chrome{Title: "Signed out"}, SignIn: "/auth/login"}),
		"signed out, provider next":      SignedOutPage(SignedOut{Chrome: Chrome{Title: "Signed out", RedirectURL: "https://x"}, SignIn: "/auth/login", Provider: "https://x"}),
		"no team":                        NoAccessPage(NoAccess{Chrome: sampleChrome("No team yet", "")}),
		"no team, groups":                NoAccessPage(NoAccess{Chrome: sampleChrome("No team yet", ""), RetryURL: "/tasks", Groups: []string{"a", "b"}, More: 2}),
		"error before anything is known": Error(ErrorPage{Chrome: Chrome{Title: "Something broke"}, Status: 500, Message: "Try again."}),
	}
	for name, page := range tests {
		t.Run(name, func(t *testing.T) {
			htmlcheck.Page(t, htmlcheck.Render(t, page))
			htmlcheck.UnderBase(t, htmlcheck.Render(t, underBase(page, "/apps/kuota")), "/apps/kuota")
		})
	}
}

// underBase returns page as a console with a base path renders it.
func underBase(page templ.Component, base string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error { return page.Render(ui.WithBase(ctx, base), w) })
}

func TestFragmentsHaveTheirIDs(t *testing.T) {
	tests := map[string]templ.Component{
		"allocations":     AllocationsTable(samplePolicies()),
		"allocation-form": AllocationFormBody(sampleForm()),
		"allocation":      AllocationDetailBody(sampleDetail()),
		"tasks":           TasksLive(sampleTasks()),
		"dashboard":       DashboardLive(sampleDashboard()),
		"teams":           TeamsLive(sampleTeams(), nil),
		"held":            ChartFigure(sampleChart()),
		"gone":            NoTeamCard("gone"),
		"cluster-status":  ClusterStatusLine(ClusterStatus{Name: "ml-cluster"}),
	}
	for id, fragment := range tests {
		t.Run(id, func(t *testing.T) {
			doc := htmlcheck.Render(t, fragment)
			htmlcheck.Fragment(t, doc)
			top := doc.Find("body").Children()
			if top.Length() != 1 || top.AttrOr("id", "") != id {
				t.Errorf("fragment is %d elements, the first with the id %q; want one with the id %q", top.Length(), top.AttrOr("id", ""), id)
			}
		})
	}
}

func TestHostileStringsStayText(t *testing.T) {
	tasks := sampleTasks()
	for _, s := range []*string{&tasks.Summary, &tasks.Tasks[0].Name, &tasks.Tasks[0].Cells[0].Sub, &tasks.Tasks[0].Reason, &tasks.Tasks[0].Status.Label, &tasks.Tasks[0].Status.Tone, &tasks.Tasks[0].Cells[1].At} {
		*s = hostile
	}
	policies := samplePolicies()
	for _, s := range []*string{&policies.Notice, &policies.Allocations[1].DisplayName, &policies.Allocations[1].Capacity, &policies.Allocations[1].Correction, &policies.Allocations[1].Quota[0].Pool} {
		*s = hostile
	}
	form := sampleForm()
	form.Fields["namespace"] = TextField{Value: hostile, Error: hostile}
	for _, s := range []*string{&form.Team.Value, &form.Team.Error, &form.NewNamespace, &form.Rows[1].Profile.Value, &form.Members[0].Name.Value, &form.NewPools[0].Value, &form.Limits[0].Suggestion.Name, &form.RequestID, &form.Rows[0].Type.Value, &form.Rows[0].VCPU.Default, &form.Rows[0].Capacity, &form.InstanceTypes[0].Label, &form.Errors[0].Text, &form.Failure, &form.Strategy} {
		*s = hostile
	}
	importing, managed, imported := sampleImport(), sampleManaged(), sampleImported()
	for _, s := range []*string{
		&importing.Failure, &importing.Text.Value, &importing.Objects[0].Name, &importing.Objects[0].Note, &importing.Objects[0].NotImported[0], &importing.NotImported[0],
		&managed.Sentence, &managed.Text, &imported.Imported.NotImported[0], &imported.Imported.Replaces, &imported.Rows[0].Exact,
	} {
		*s = hostile
	}
	review, conflict, detail, deletion := sampleReview(), sampleConflict(), sampleDetail(), sampleDelete()
	for _, s := range []*string{
		&review.Fields[0].Value, &review.Quota[0].Pool, &review.Settings[0].After, &review.Objects[0].Name, &review.Objects[0].Fields[0].After, &review.Incomplete,
		&conflict.By, &conflict.Lines[0].Name, &conflict.Lines[0].Before, &conflict.Lines[0].After, &detail.Description, &detail.Members[0], &detail.Settings[0].Value, &detail.Conditions[0].Status.Text, &detail.Conditions[0].Since,
		&detail.YAML, &detail.Managed, &deletion.Tasks[0], &deletion.Kept, &deletion.Confirm.Value,
	} {
		*s = hostile
	}
	oops := ErrorPage{Chrome: sampleChrome(hostile, ""), Message: hostile, Retry: "javascript:alert(1)"}
	oops.User, oops.Cluster.Name, oops.Stream = hostile, hostile, hostile

	for name, page := range map[string]templ.Component{"tasks": Tasks(tasks), "policies": Policies(policies), "form": AllocationPage(form), "error": Error(oops), "review": AllocationReviewPage(review), "conflict": ConflictPage(conflict), "allocation": AllocationDetailPage(detail), "delete": AllocationDeletePage(deletion), "import": Import(importing), "managed": ManagedPage(managed), "imported": AllocationPage(imported)} {
		t.Run(name, func(t *testing.T) {
			doc := htmlcheck.Render(t, page)
			htmlcheck.Page(t, doc)
			if doc.Find("img").Length() > 0 || doc.Find("script:not([src])").Length() > 0 {
				t.Error("a hostile string became markup")
			}
			if doc.Find(`a[href^="javascript:"]`).Length() > 0 {
				t.Error("a hostile address became a link")
			}
			if !strings.Contains(doc.Text(), "<script>alert('x')</script>") {
				t.Error("the hostile string is not shown as text")
			}
		})
	}
}

func TestFrame(t *testing.T) {
	doc := htmlcheck.Render(t, Tasks(sampleTasks()))
	if got := doc.Find(`nav [aria-current="page"]`).Text(); got != "Tasks" {
		t.Errorf("current navigation entry is %q, want Tasks", got)
	}
	if got := doc.Find("body").AttrOr("data-stream", ""); got != "/events" {
		t.Errorf("stream is %q, want /events", got)
	}
	if got := doc.Find("title").Text(); got != "Tasks · Kuota" {
		t.Errorf("title is %q", got)
	}
	if got := doc.Find("a.skip").AttrOr("href", ""); got != "#main" {
		t.Errorf("skip link leads to %q", got)
	}

	quiet := sampleTasks()
	quiet.Stream = ""
	if _, ok := htmlcheck.Render(t, Tasks(quiet)).Find("body").Attr("data-stream"); ok {
		t.Error("a page without a stream names one")
	}
}

func TestClusterStatusIsText(t *testing.T) {
	tests := map[string]struct {
		status    ClusterStatus
		wantState string
		wantText  string
	}{
		"an answering cluster has the age of the data":  {ClusterStatus{"ml-cluster", true, "0.3 s"}, "ok", "ml-cluster · 0.3 s old"},
		"a silent cluster is named, with the age":       {ClusterStatus{"ml-cluster", false, "14 s"}, "unreachable", "ml-cluster does not answer · data is 14 s old"},
		"a cluster that never answered has no age":      {ClusterStatus{"ml-cluster", false, ""}, "unreachable", "ml-cluster does not answer"},
		"an error page may not know the cluster at all": {ClusterStatus{}, "none", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := htmlcheck.Render(t, ClusterStatusLine(test.status)).Find("#cluster-status")
			if got := line.AttrOr("data-state", ""); got != test.wantState {
				t.Errorf("state %q, want %q", got, test.wantState)
			}
			if got := strings.Join(strings.Fields(line.Text()), " "); got != test.wantText {
				t.Errorf("text %q, want %q", got, test.wantText)
			}
			if line.Find("[role=status] .age").Length() > 0 {
				t.Error("the age is inside the live region, and would be read aloud every second")
			}
		})
	}
}

func TestPoliciesOffersPermittedActions(t *testing.T) {
	link := `a[href="/policies/allocations/new"]`
	page := samplePolicies()
	if n := htmlcheck.Render(t, Policies(page)).Find(link).Length(); n != 1 {
		t.Errorf("an admin sees %d buttons to create, want 1", n)
	}
	page.Allocations, page.Others = nil, nil
	if n := htmlcheck.Render(t, Policies(page)).Find(link).Length(); n != 1 {
		t.Errorf("an admin without allocations sees %d buttons to create, want 1", n)
	}
	page.CanWrite = false
	if n := htmlcheck.Render(t, Policies(page)).Find(link).Length(); n != 0 {
		t.Errorf("a reader sees %d buttons to create, want none", n)
	}
}

func TestTableRows(t *testing.T) {
	policies := htmlcheck.Render(t, AllocationsTable(samplePolicies()))
	vision := policies.Find("#allocation-vision")
	for _, want := range []string{"Vision", "hyperpod-ns-vision", "Failed", "belongs to another user", "2 GPUs · 48 vCPU", "1 GPU · 12 vCPU", "10 of 8 GPUs", "Put right", "up to 50 %", "50"} {
		if !strings.Contains(vision.Text(), want) {
			t.Errorf("allocation row does not say %q", want)
		}
	}
	tasks := htmlcheck.Render(t, TasksLive(sampleTasks()))
	if got := tasks.Find("#task-a time").AttrOr("datetime", ""); got != "2026-11-21T09:10:00Z" {
		t.Errorf("submission time is %q", got)
	}
	if !strings.Contains(tasks.Find("#task-b").Text(), "3 more GPUs needed") {
		t.Error("a waiting task does not say why")
	}
}
