package views_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views"
	adoptionviews "kuota.dev/kuota/views/adoption"
	alertviews "kuota.dev/kuota/views/alerts"
	allocationviews "kuota.dev/kuota/views/allocations"
	dashboardviews "kuota.dev/kuota/views/dashboard"
	"kuota.dev/kuota/views/htmlcheck"
	importviews "kuota.dev/kuota/views/imports"
	noticeviews "kuota.dev/kuota/views/notices"
	settingsviews "kuota.dev/kuota/views/settings"
	taskviews "kuota.dev/kuota/views/tasks"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/views/ui"
	versionviews "kuota.dev/kuota/views/versions"
)

func TestEveryPageIsSound(t *testing.T) {
	emptyPolicies := allocationviews.PoliciesPage{Chrome: sampleChrome("Policies", "policies"), NewURL: "/new"}
	emptyPoliciesOfAdmin := emptyPolicies
	emptyPoliciesOfAdmin.CanWrite = true
	newForm := allocationviews.AllocationForm{Chrome: sampleChrome("Create", "policies"), Save: "Create allocation", Action: "/new", CancelURL: "/policies", CanAddRow: true}
	fullForm := sampleForm()
	fullForm.CanAddRow = false

	tests := map[string]templ.Component{
		"tasks":                          taskviews.Tasks(sampleTasks()),
		"tasks, in loops":                taskviews.Tasks(taskviews.TasksPage{Chrome: sampleChrome("Tasks", "tasks"), Loops: &views.LoopNotice{Title: "4 preemption loops", More: "And 1 more.", Lines: []views.LoopLine{{ID: "loop-1", Preempted: views.TaskLink{Name: hostile, URL: "/x"}, For: views.TaskLink{Name: "a task of another team"}, Times: "63 times in 46 s", State: "It is held.", Until: "2026-11-20T09:10:00Z"}}}}),
		"task, in a loop":                taskviews.Task(taskviews.TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Loops: []views.LoopLine{{ID: "loop-1", Tone: "bad", Preempted: views.TaskLink{Name: "a", URL: "/a"}, For: views.TaskLink{Name: hostile}, Times: "3 times in 2 s", Cause: "Again and again.", State: "Kuota only warns."}}}),
		"tasks, none":                    taskviews.Tasks(taskviews.TasksPage{Chrome: sampleChrome("Tasks", "tasks")}),
		"queue":                          taskviews.Upcoming(sampleUpcoming()),
		"alerts":                         alertviews.Alerts(sampleAlerts()),
		"alerts, none":                   alertviews.Alerts(alertviews.AlertsPage{Chrome: sampleChrome("Alerts", "alerts")}),
		"notices":                        noticeviews.Notices(sampleNotices()),
		"notices, no receiver":           noticeviews.Notices(noticeviews.NoticesPage{Chrome: sampleChrome("Notices", "notices")}),
		"notices, none":                  noticeviews.Notices(noticeviews.NoticesPage{Chrome: sampleChrome("Notices", "notices"), Failure: "There are no notices."}),
		"queue, none":                    taskviews.Upcoming(taskviews.UpcomingPage{Chrome: sampleChrome("Next to start", "queue")}),
		"queue, none found":              taskviews.Upcoming(taskviews.UpcomingPage{Chrome: sampleChrome("Next to start", "queue"), ClearURL: "/queue"}),
		"policies":                       allocationviews.Policies(samplePolicies()),
		"policies, none":                 allocationviews.Policies(emptyPolicies),
		"policies, none, as admin":       allocationviews.Policies(emptyPoliciesOfAdmin),
		"form, untouched":                allocationviews.AllocationPage(newForm),
		"form, everything wrong":         allocationviews.AllocationPage(sampleForm()),
		"form, full":                     allocationviews.AllocationPage(fullForm),
		"form, of an allocation":         allocationviews.AllocationPage(sampleEdit()),
		"review":                         allocationviews.AllocationReviewPage(sampleReview()),
		"review, nothing changes":        allocationviews.AllocationReviewPage(allocationviews.AllocationReview{Chrome: sampleChrome("Review", "policies"), Unchanged: true, Incomplete: "Kueue does not answer.", Save: "Save changes", Action: "/x", CancelURL: "/y", UpLabel: "z"}),
		"conflict":                       views.ConflictPage(sampleConflict()),
		"allocation":                     allocationviews.AllocationDetailPage(sampleDetail()),
		"allocation, as a member":        allocationviews.AllocationDetailPage(allocationviews.AllocationDetail{Chrome: sampleChrome("vision", "policies"), Team: "vision"}),
		"version":                        versionviews.VersionDetail(sampleVersion()),
		"version, alone":                 versionviews.VersionDetail(versionviews.VersionPage{Chrome: sampleChrome("Version 1", "policies"), UpURL: "/x", UpLabel: "y"}),
		"versions":                       versionviews.HistoryList(versionviews.HistoryPage{Chrome: sampleChrome("Versions", "policies"), UpURL: "/x", UpLabel: "y", History: views.History{Lines: []views.HistoryLine{sampleVersion().Line}, AllURL: "/all"}}),
		"settings":                       settingsviews.Settings(sampleSettings()),
		"settings, nothing missing":      settingsviews.Settings(settingsviews.SettingsPage{Chrome: sampleChrome("Settings", "settings")}),
		"adoption":                       adoptionviews.Adoption(sampleAdoption()),
		"nothing to adopt":               adoptionviews.Adoption(adoptionviews.AdoptionPage{Chrome: sampleChrome("Adopt existing queues", "policies"), Action: "/policies/adopt", CancelURL: "/policies"}),
		"adoption review":                adoptionviews.Adoption(sampleAdoptionReview()),
		"import":                         importviews.Import(importviews.ImportPage{Chrome: sampleChrome("Import", "policies"), Action: "/policies/import", CancelURL: "/policies"}),
		"import, several":                importviews.Import(sampleImport()),
		"managed by another user":        views.ManagedPage(sampleManaged()),
		"form, imported":                 allocationviews.AllocationPage(sampleImported()),
		"action":                         views.Action(sampleAction()),
		"action, not possible":           views.Action(views.ActionPage{Chrome: sampleChrome("Stop: train", "tasks"), UpLabel: "train", UpURL: "/x", Obstacle: hostile, Alternatives: []views.ActionButton{{Label: "Stop it", URL: "/y"}}}),
		"task, with actions":             taskviews.Task(taskviews.TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Notice: "Stopped.", YAMLURL: "/y", YAMLTitle: "Workload as YAML", Actions: &taskviews.TaskActions{Buttons: []views.ActionButton{{Label: "Stop", URL: "/s"}, {Label: "Delete", URL: "/d", Danger: true}}, Missing: "Not for you: delete."}}),
		"task, with logs":                taskviews.Task(taskviews.TaskPage{Chrome: sampleChrome("train", "tasks"), Name: "train", Pods: &taskviews.Pods{Note: "1 pod", Rows: []taskviews.PodRow{{ID: "pod-1", Name: hostile, Node: "a", Trouble: hostile, Restarts: 1, LogsURL: "/logs"}}, External: views.ExternalLink{Host: hostile, URL: "https://logs.example.com/"}}}),
		"logs":                           taskviews.Logs(taskviews.LogPage{Chrome: sampleChrome("Logs of train", "tasks"), Task: views.TaskLink{Name: hostile, URL: "/x"}, Action: "/x/logs", UID: "1", Filters: []views.Filter{{ID: "pod", Label: "Pod", Options: []views.Option{{Value: hostile, Label: hostile, Selected: true}, {Value: "b", Label: "b"}}}, {ID: "container", Label: "Container", Options: []views.Option{{Value: hostile, Label: hostile, Selected: true}, {Value: "c", Label: "c (init)"}}}}, Container: hostile, Contains: hostile, Note: hostile, Lines: taskviews.LogLines{Skipped: 2, Lines: []taskviews.LogLine{{At: "2026-01-02T03:04:05Z", Text: hostile, Cut: true}}}, DownloadURL: "/x", External: views.ExternalLink{Host: hostile, URL: "https://logs.example.com/"}}),
		"logs, none":                     taskviews.Logs(taskviews.LogPage{Chrome: sampleChrome("Logs of train", "tasks"), Task: views.TaskLink{Name: "train", URL: "/x"}}),
		"delete":                         allocationviews.AllocationDeletePage(sampleDelete()),
		"delete, nothing runs":           allocationviews.AllocationDeletePage(allocationviews.AllocationDelete{Chrome: sampleChrome("Delete vision", "policies"), Team: "vision", Action: "/x", CancelURL: "/y"}),
		"dashboard":                      dashboardviews.Dashboard(sampleDashboard()),
		"dashboard, nothing there":       dashboardviews.Dashboard(dashboardviews.DashboardPage{Chrome: sampleChrome("Dashboard", "dashboard"), UsageChart: views.Chart{ID: "held-chart", Empty: "Nothing."}, Teams: views.TeamTable{ID: "team-list"}, Controls: views.Controls{Label: "x", Action: "/"}}),
		"teams":                          teamviews.Teams(teamviews.TeamsPage{Chrome: sampleChrome("Teams", "teams"), Controls: sampleControls(), Teams: sampleTeams()}),
		"teams, none found":              teamviews.Teams(teamviews.TeamsPage{Chrome: sampleChrome("Teams", "teams"), Controls: views.Controls{Label: "x", Action: "/"}, Teams: views.TeamTable{ID: "team-list", ClearURL: "/teams"}}),
		"error":                          views.Error(views.ErrorPage{Chrome: sampleChrome("Not found", ""), Status: 404, Message: "There is nothing here.", Retry: "/x"}),
		"error, and sign-in helps":       views.Error(views.ErrorPage{Chrome: views.Chrome{Title: "Refused"}, Status: 403, Message: "Sign in again.", SignIn: "/auth/login"}),
		"sign in again, form kept":       views.SignInAgainPage(views.SignInAgain{Chrome: views.Chrome{Title: "Sign in again"}, Login: "/auth/login", Kept: true}),
		"sign in again, form here":       views.SignInAgainPage(views.SignInAgain{Chrome: views.Chrome{Title: "Sign in again"}, Login: "/auth/login", Action: "/new", Fields: []views.HiddenField{{"team", "vision"}}}),
		"another user now":               views.SignInAgainPage(views.SignInAgain{Chrome: views.Chrome{Title: "Signed in as another user"}, OpenedBy: "a", SignedInAs: "b", Action: "/new", Fields: []views.HiddenField{{"team", "vision"}}}),
		"signed in in another tab":       views.SignedInPage(views.Chrome{Title: "Signed in"}),
		"signed out":                     views.SignedOutPage(views.SignedOut{Chrome: views.Chrome{Title: "Signed out"}, SignIn: "/auth/login"}),
		"signed out, provider next":      views.SignedOutPage(views.SignedOut{Chrome: views.Chrome{Title: "Signed out", RedirectURL: "https://x"}, SignIn: "/auth/login", Provider: "https://x"}),
		"no team":                        views.NoAccessPage(views.NoAccess{Chrome: sampleChrome("No team yet", "")}),
		"no team, groups":                views.NoAccessPage(views.NoAccess{Chrome: sampleChrome("No team yet", ""), RetryURL: "/tasks", Groups: []string{"a", "b"}, More: 2}),
		"no team, departments":           views.NoAccessPage(views.NoAccess{Chrome: sampleChrome("No team yet", ""), Departments: []views.NamedLink{{Name: "Research", URL: "/departments/research"}}}),
		"error before anything is known": views.Error(views.ErrorPage{Chrome: views.Chrome{Title: "Something broke"}, Status: 500, Message: "Try again."}),
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
		"allocations":     allocationviews.AllocationsTable(samplePolicies()),
		"allocation-form": allocationviews.AllocationFormBody(sampleForm()),
		"allocation":      allocationviews.AllocationDetailBody(sampleDetail()),
		"tasks":           taskviews.TasksLive(sampleTasks()),
		"dashboard":       dashboardviews.DashboardLive(sampleDashboard()),
		"teams":           teamviews.TeamsLive(views.DepartmentTable{}, sampleTeams(), nil),
		"held":            views.ChartFigure(sampleChart()),
		"gone":            views.NoTeamCard("gone"),
		"cluster-status":  views.ClusterStatusLine(views.ClusterStatus{Name: "ml-cluster"}),
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
	for _, s := range []*string{&policies.Notice, &policies.Allocations[1].DisplayName, &policies.Over[0].Text, &policies.Allocations[1].Correction, &policies.Allocations[1].Quota[0].Pool} {
		*s = hostile
	}
	form := sampleForm()
	form.Fields["namespace"] = views.TextField{Value: hostile, Error: hostile}
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
	oops := views.ErrorPage{Chrome: sampleChrome(hostile, ""), Message: hostile, Retry: "javascript:alert(1)"}
	oops.User, oops.Cluster.Name, oops.Stream = hostile, hostile, hostile

	for name, page := range map[string]templ.Component{"tasks": taskviews.Tasks(tasks), "policies": allocationviews.Policies(policies), "form": allocationviews.AllocationPage(form), "error": views.Error(oops), "review": allocationviews.AllocationReviewPage(review), "conflict": views.ConflictPage(conflict), "allocation": allocationviews.AllocationDetailPage(detail), "delete": allocationviews.AllocationDeletePage(deletion), "import": importviews.Import(importing), "managed": views.ManagedPage(managed), "imported": allocationviews.AllocationPage(imported)} {
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
	doc := htmlcheck.Render(t, taskviews.Tasks(sampleTasks()))
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
	if _, ok := htmlcheck.Render(t, taskviews.Tasks(quiet)).Find("body").Attr("data-stream"); ok {
		t.Error("a page without a stream names one")
	}
}

func TestClusterStatusIsText(t *testing.T) {
	tests := map[string]struct {
		status    views.ClusterStatus
		wantState string
		wantText  string
	}{
		"an answering cluster has the age of the data":  {views.ClusterStatus{"ml-cluster", true, "0.3 s"}, "ok", "ml-cluster · 0.3 s old"},
		"a silent cluster is named, with the age":       {views.ClusterStatus{"ml-cluster", false, "14 s"}, "unreachable", "ml-cluster does not answer · data is 14 s old"},
		"a cluster that never answered has no age":      {views.ClusterStatus{"ml-cluster", false, ""}, "unreachable", "ml-cluster does not answer"},
		"an error page may not know the cluster at all": {views.ClusterStatus{}, "none", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := htmlcheck.Render(t, views.ClusterStatusLine(test.status)).Find("#cluster-status")
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
	if n := htmlcheck.Render(t, allocationviews.Policies(page)).Find(link).Length(); n != 1 {
		t.Errorf("an admin sees %d buttons to create, want 1", n)
	}
	page.Allocations, page.Others, page.Total = nil, nil, 0
	if n := htmlcheck.Render(t, allocationviews.Policies(page)).Find(link).Length(); n != 1 {
		t.Errorf("an admin without allocations sees %d buttons to create, want 1", n)
	}
	page.CanWrite = false
	if n := htmlcheck.Render(t, allocationviews.Policies(page)).Find(link).Length(); n != 0 {
		t.Errorf("a reader sees %d buttons to create, want none", n)
	}
}

func TestTableRows(t *testing.T) {
	policies := htmlcheck.Render(t, allocationviews.AllocationsTable(samplePolicies()))
	vision := policies.Find("#allocation-vision")
	for _, want := range []string{"Vision", "hyperpod-ns-vision", "Failed", "belongs to another user", "2 GPUs · 48 vCPU", "1 GPU · 12 vCPU", "Corrected 10:02:11", "up to 50 %", "50"} {
		if !strings.Contains(vision.Text(), want) {
			t.Errorf("allocation row does not say %q", want)
		}
	}
	if got := policies.Find("#pools-over").Text(); !strings.Contains(got, "ml.g6.12xlarge: 10 of 8 GPUs allocated") {
		t.Errorf("over capacity: %q", got)
	}
	tasks := htmlcheck.Render(t, taskviews.TasksLive(sampleTasks()))
	if got := tasks.Find("#task-a time").AttrOr("datetime", ""); got != "2026-11-21T09:10:00Z" {
		t.Errorf("submission time is %q", got)
	}
	if !strings.Contains(tasks.Find("#task-b").Text(), "3 more GPUs needed") {
		t.Error("a waiting task does not say why")
	}
}
