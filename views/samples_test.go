package views_test

import (
	"kuota.dev/kuota/views/ui"

	"kuota.dev/kuota/views"
	adoptionviews "kuota.dev/kuota/views/adoption"
	alertviews "kuota.dev/kuota/views/alerts"
	allocationviews "kuota.dev/kuota/views/allocations"
	dashboardviews "kuota.dev/kuota/views/dashboard"
	importviews "kuota.dev/kuota/views/imports"
	noticeviews "kuota.dev/kuota/views/notices"
	settingsviews "kuota.dev/kuota/views/settings"
	taskviews "kuota.dev/kuota/views/tasks"
)

// hostile is a team name that attempts script injection.
const hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)>`

func sampleChrome(title, active string) views.Chrome {
	return views.Chrome{
		Title:   title,
		Active:  active,
		User:    "ada@example.com",
		SignOut: true,
		Cluster: views.ClusterStatus{Name: "ml-cluster", Reachable: true, Age: "0.3 s"},
		Stream:  "/events",
	}
}

func sampleTasks() taskviews.TasksPage {
	return taskviews.TasksPage{
		Chrome:  sampleChrome("Tasks", "tasks"),
		Summary: "1 running, 1 pending", Stats: []views.Stat{{ID: "stat-waiting", Label: "Waiting tasks", Value: "1", Note: "1 preempted"}},
		Tabs: []views.Tab{{Label: "Active", Count: "2", URL: "/tasks", Current: true}, {Label: "Finished", Count: "7", URL: "/tasks?tab=finished"}}, Tab: "finished", Action: "/tasks", Text: "v", ClearURL: "/tasks",
		Classes:   []views.ClassRow{{ID: "class-training", Name: "training", Running: views.Count{Text: "1", URL: "/tasks?class=training"}, Pending: views.Count{Text: "0"}, Preempted: views.Count{Text: "0"}, AverageRun: "2 h 05 m", AverageWait: "–", LongestRun: "3 h 10 m", LongestWait: "–"}},
		ClassNote: "averages since 09:00",
		Ranges:    []views.RangeLink{{Label: "All", Title: "Since the console started", URL: "/tasks", Current: true}, {Label: "1 h", Title: "The last 1 h", URL: "/tasks?range=1h"}},
		Columns:   []taskviews.ColumnChoice{{ID: "team", Label: "Team", Shown: true}, {ID: "kind", Label: "Kind"}},
		Filters:   []views.Filter{{ID: "team", Label: "Team", Options: []views.Option{{Label: "All teams"}, {Value: "vision", Label: "vision", Selected: true}}}},
		Heads:     []ui.Head{{ID: "name", Label: "Name", URL: "/tasks?sort=name", Sorted: "ascending"}, {ID: "memory", Label: "Memory", Unit: "GiB", Number: true}},
		Pager:     views.Pager{Text: "101–200 of 5,000", PreviousURL: "/tasks", NextURL: "/tasks?page=3"},
		Tasks: []taskviews.TaskRow{
			{ID: "task-a", Name: "vit-pretrain", Status: views.Status{Tone: "ok", Label: "Running"}, Cells: sampleCells("vision", "", "2026-11-21T09:10:00Z", "2 GPUs", "48", "512", "ml.p5.48xlarge")},
			{ID: "task-b", Name: "clip-eval", Status: views.Status{Tone: "wait", Label: "Pending"}, Reason: "3 more GPUs needed", Cells: sampleCells("–", "default", "2026-11-21T11:10:00Z", "–", "4", "16", "–")},
		},
	}
}

func sampleCells(team, namespace, submitted string, figures ...string) []taskviews.TaskCell {
	cells := []taskviews.TaskCell{{Class: "wraps", Text: team, Sub: namespace}, {Text: "5 m ago", At: submitted}}
	for _, text := range figures {
		cells = append(cells, taskviews.TaskCell{Class: "n", Text: text})
	}
	return cells
}

func sampleUpcoming() taskviews.UpcomingPage {
	page := taskviews.UpcomingPage{
		Chrome: sampleChrome("Next to start", "queue"), Action: "/queue", ClearURL: "/queue", Note: "the first 2 of 5,000 tasks waiting", Fair: true, CSVURL: "/queue.csv", JSONURL: "/queue.json",
		Filters: []views.Filter{{ID: "team", Label: "Team", Options: []views.Option{{Label: "All teams"}, {Value: hostile, Label: hostile, Selected: true}}}},
	}
	for i, row := range sampleTasks().Tasks {
		row.Reason = hostile
		page.Rows = append(page.Rows, taskviews.UpcomingRow{TaskRow: row, Order: taskviews.TaskCell{Class: "n", Text: []string{"1", "–"}[i]}})
	}
	return page
}

func sampleAlerts() alertviews.AlertsPage {
	row := alertviews.AlertRow{ID: "alert-a", Severity: views.Status{Tone: "bad", Label: "Critical"}, Title: "Tasks wait for long", Summary: hostile, Team: views.TaskLink{Name: hostile, URL: "/teams/x"}, Since: "2026-11-21T09:10:00Z", Fired: "2026-11-21T09:11:00Z", Silenced: "Silenced until 2026-11-21 10:00 UTC."}
	resolved := row
	resolved.ID, resolved.Resolved = "alert-b", "2026-11-21T09:12:00Z"
	page := alertviews.AlertsPage{
		Chrome: sampleChrome("Alerts", "alerts"), Action: "/alerts", Trouble: hostile, Notice: "The silence has ended.", Firing: []alertviews.AlertRow{row}, Resolved: []alertviews.AlertRow{resolved}, FiringNum: "1 alert",
		Rules:     []alertviews.AlertRule{{ID: "rule-task-waits", Name: "task-waits", Title: "Tasks wait for long", Meaning: hostile, Severity: views.Status{Tone: "wait", Label: "Warning"}}},
		Silences:  []alertviews.SilenceRow{{ID: "s", Rule: "All rules", Team: hostile, Until: "2026-11-21T09:12:00Z", Actor: hostile, Reason: hostile}},
		Form:      &alertviews.SilenceForm{Filters: []views.Filter{{ID: "team", Label: "Team", Options: []views.Option{{Value: hostile, Label: hostile, Selected: true}}}}, Reason: hostile, Wrong: "Choose a rule of the list."},
		Receivers: []alertviews.AlertReceiver{{Name: hostile, Type: "Slack", Secret: hostile, To: hostile, Gets: hostile}}, Deliveries: []alertviews.DeliveryRow{{ID: "delivery-a", At: "2026-11-21T09:12:00Z", Receiver: hostile, Contents: "3 alerts", Outcome: views.Status{Tone: "wait", Label: "Retrying"}, Attempts: "2 attempts", Error: hostile}},
		CSVURL: "/alerts.csv", JSONURL: "/alerts.json",
	}
	page.Chrome.Alerts = 12
	return page
}

func sampleNotices() noticeviews.NoticesPage {
	choice := ui.ChoiceProps{Name: "to", Value: "mail", Label: hostile, Text: hostile, Many: true, Checked: true}
	off, event := choice, choice
	off.Value, off.Off, event.Name = "chat", true, "on"
	page := noticeviews.NoticesPage{
		Chrome: sampleChrome("Notices", "notices"), Action: "/notices", Saved: "Your notices were saved.", Lost: hostile, Problem: "Choose how you are notified.",
		Events: []ui.ChoiceProps{event}, Receivers: []ui.ChoiceProps{choice, off}, Until: "2026-11-21T09:12:00Z",
	}
	page.Chrome.Notices = "/notices"
	return page
}

func samplePolicies() allocationviews.PoliciesPage {
	return allocationviews.PoliciesPage{
		Chrome:   sampleChrome("Policies", "policies"),
		Notice:   "Allocation vision was created.",
		NewURL:   "/policies/allocations/new",
		CanWrite: true,
		Allocations: []allocationviews.AllocationRow{
			{Team: "language", Namespace: "hyperpod-ns-language", Status: views.Status{Tone: "ok", Label: "Active"}, Sharing: "Lend", Preemption: "Never", Weight: 10},
			{Team: "vision", DisplayName: "Vision", Namespace: "hyperpod-ns-vision", Status: views.Status{Tone: "bad", Label: "Failed", Text: "The namespace belongs to another user."},
				Quota:   []allocationviews.QuotaLine{{Pool: "ml.p5.48xlarge", Parts: "2 GPUs · 48 vCPU"}, {Pool: "ml.g6.12xlarge", Parts: "1 GPU · 12 vCPU"}},
				Sharing: "Lend and borrow, up to 50 %", Preemption: "Lower priority", Weight: 50,
				Correction: "Corrected 10:02:11"},
		},
		Total: 2, Note: "2 teams", Heads: ui.Heads("Team", "Status", "Quota", "Lending and borrowing", "Preemption", "Weight"),
		Over:   []allocationviews.PoolExcess{{Pool: "ml.g6.12xlarge", URL: "/policies?pool=ml.g6.12xlarge", Text: "10 of 8 GPUs allocated"}},
		Others: []allocationviews.QuotaLine{{Pool: "ml.p5.48xlarge", Parts: "6 GPUs · 144 vCPU"}},
	}
}

// sampleForm returns a form with one row of defaults, and one in which every value
// is invalid.
func sampleForm() allocationviews.AllocationForm {
	bad := func(value string) views.TextField { return views.TextField{Value: value, Error: "This is wrong."} }
	return allocationviews.AllocationForm{
		UpLabel: "Policies", Save: "Create allocation",
		Merged: hostile, KnownMembers: []string{hostile}, MembersNote: "Nobody sees it.", More: hostile,
		Effect: allocationviews.Effect{Shown: "x", Changed: true, Preview: views.PreviewVariant{State: views.PreviewReady, Summary: "1 task would start.", Tasks: []views.PreviewTask{{Effect: "started", Workload: hostile, Tone: "ok", Label: "Starts", Name: hostile, URL: "/tasks/a/job/b", Team: hostile, Uses: "8 GPUs", Why: hostile}}, Objects: []views.PreviewObject{{Name: hostile, Lines: []views.YAMLLine{{Text: hostile, Added: true}}}}}},
		Fields: map[string]views.TextField{
			"namespace": bad("Research!"), "display-name": bad("Vision"), "description": bad("x"), "weight": bad("200"), "preemption": bad("LowerPriority"),
		},
		Options:      []allocationviews.OptionField{{ID: "ceiling", Label: "Namespace ceiling", Hint: "Limits all pods.", Checked: true, Error: "This is wrong."}, {ID: "default-queue", Label: "Default queue", Hint: "Adds a LocalQueue."}},
		MembersError: "This is wrong.", CanAddMember: true,
		Members:        []allocationviews.MemberField{{Index: 0, Kind: "Group", Name: views.TextField{Value: "vision-team"}}, {Index: 1, Kind: "User", Name: bad("system:x")}},
		Limits:         []allocationviews.AllocationFormRow{{Limit: true, Index: 0, Type: bad("h100"), Suggestion: allocationviews.NewPool{Name: "h100", Kind: "accelerator", Value: "H100", Text: "2 nodes today"}}},
		CanAddLimit:    true,
		PreemptionNote: "It has no effect.",
		NewPools:       []allocationviews.NewPool{{Name: "g5", Kind: "instanceFamily", Value: "ml.g5"}},
		Chrome:         sampleChrome("Create compute allocation", "policies"),
		Action:         "/policies/allocations/new",
		CancelURL:      "/policies",
		RequestID:      "request-1",
		Resumed:        true,
		Failure:        "The cluster does not answer.",
		Team:           bad("Vision!"),
		Errors: []views.Message{
			{Field: "team", Label: "Name", Text: "This is wrong."},
			{Field: "row-1-vcpu", Label: "Row 2, vCPU", Text: "This is wrong."},
			{Field: "row-1", Label: "Row 2", Text: "This is wrong."},
			{Field: "strategy", Label: "Lending and borrowing", Text: "This is wrong."},
			{Field: "preemption", Label: "Preemption", Text: "This is wrong."},
			{Text: "This belongs to no field."},
		},
		Rows: []allocationviews.AllocationFormRow{
			{Index: 0, Type: views.TextField{Value: "ml.p5.48xlarge"}, Capacity: "16 GPUs there", Over: "18 of 16 GPUs are given out.",
				Accelerators: views.AmountField{TextField: views.TextField{Value: "2"}},
				VCPU:         views.AmountField{TextField: views.TextField{Value: "40"}, Default: "48"},
				Memory:       views.AmountField{Default: "512"},
				Borrow:       "Can borrow up to 1 GPU", BorrowNone: "Half of one is none."},
			{Index: 1, Type: bad("ml.p9"), Error: "The row is wrong.", Profile: bad("mig-9g.1gb"), Count: bad("x"), Partitions: []string{"mig-1g.5gb"}, AcceleratorUnit: "GPUs",
				Instances: views.AmountField{TextField: bad("x")}, Accelerators: views.AmountField{TextField: bad("x")},
				VCPU: views.AmountField{TextField: bad("x"), Default: "48"}, Memory: views.AmountField{TextField: bad("")}},
		},
		CanAddRow:     true,
		InstanceTypes: []allocationviews.InstanceTypeOption{{Name: "ml.p5.48xlarge", Label: "8 H100 · 192 vCPU"}},
		Strategy:      "LendAndBorrow",
		StrategyError: "This is wrong.",
		BorrowPercent: bad("x"),
		BorrowEnabled: true,
	}
}

// sampleEdit returns the form of an existing allocation.
func sampleEdit() allocationviews.AllocationForm {
	return allocationviews.AllocationForm{
		Chrome: sampleChrome("Edit vision", "policies"), Action: "/policies/allocations/vision/edit", CancelURL: "/policies/allocations/vision", UpLabel: "vision",
		Save: "Save changes", Effect: allocationviews.Effect{Verify: true},
		Edit: true, Version: "41", Generation: "3", Team: views.TextField{Value: "vision"}, NewNamespace: "hyperpod-ns-vision",
		Fields: map[string]views.TextField{"activation": {Value: "Hold"}, "preemption": {Value: "Never"}}, Strategy: "LendAndBorrow", BorrowEnabled: true, Unlimited: true,
		Options: []allocationviews.OptionField{{ID: "default-queue", Label: "Default queue", Hint: "Adds a LocalQueue.", Checked: true}},
	}
}

func sampleReview() allocationviews.AllocationReview {
	return allocationviews.AllocationReview{
		Chrome: sampleChrome("Review: vision", "policies"), Action: "/policies/allocations/vision/edit", CancelURL: "/policies/allocations/vision", UpLabel: "vision",
		Save:   "Save changes",
		Fields: []views.HiddenField{{"as", "ada@example.com"}, {"description", "<b>typed</b>"}},
		Preview: views.Preview{Variants: []views.PreviewVariant{
			{Key: "computing", Title: "If running tasks continue", State: views.PreviewComputing},
			{Key: "unverified", Title: "If running tasks are stopped", State: views.PreviewUnverified, Failure: hostile},
			{
				Key: "ready", Title: "Effect on tasks and teams", State: views.PreviewReady, Time: "2026-11-23T12:00:00Z", Summary: "2 tasks would start.", Notes: []string{hostile},
				Tasks:     []views.PreviewTask{{Effect: "started", Workload: hostile, Tone: "ok", Label: "Starts", Name: hostile, URL: "/tasks/a/job/b", Team: hostile, Uses: "8 GPUs", Why: hostile, Anyway: true, Tied: true}, {Effect: "started", Tone: "ok", Label: "Starts", Name: "and 1 smaller task", Uses: "1 GPU"}},
				Teams:     []views.PreviewTeam{{Team: hostile, Pool: hostile, Resource: "nvidia.com/gpu", Label: "GPUs", Allocated: views.PreviewFigure{"4", "8"}, Used: views.PreviewFigure{"4", "4"}}},
				MoreTeams: 1, Objects: []views.PreviewObject{{Name: hostile, Lines: []views.YAMLLine{{Text: hostile, Added: true}}}},
			},
		}},
		NewPools: []allocationviews.NewPool{{Name: "h100", Text: "of all H100 nodes: 2 nodes today"}},
		Quota: []allocationviews.QuotaChange{
			{Pool: "ml.p5.48xlarge", Resource: "GPUs", Before: "6", After: "4", BorrowBefore: "3", BorrowAfter: "2", Changed: true, BorrowChanged: true},
			{Pool: "ml.p5.48xlarge", SamePool: true, Resource: "vCPU", Before: "48", After: "48", BorrowBefore: "24", BorrowAfter: "24"},
		},
		Settings: []views.ValueChange{{"Fair-share weight", "0", "10"}},
		Capacity: []allocationviews.CapacityLine{
			{Pool: "ml.p5.48xlarge", Resource: "GPUs", Physical: "16", Before: "12", After: "18", Over: "2 GPUs beyond"},
			{Pool: "ml.p5.48xlarge", SamePool: true, Resource: "vCPU", Physical: "48", Before: "96", After: "24", OverBefore: true},
		},
		Stopped:       allocationviews.Names{Count: 5, Listed: []string{"Job c", "Job d"}, More: 3},
		CannotRestart: []string{"resnet requests 8 GPUs; quota and borrow limit add up to 6. Once stopped, it cannot start again."}, MoreCannotRestart: 1,
		Objects: []views.ObjectLine{{ID: "object-0", Tone: "wait", Action: "changed", Name: "ClusterQueue x", Fields: []views.ValueChange{{"spec.fairSharing.weight", "0", "10"}}}},
	}
}

func sampleConflict() views.Conflict {
	return views.Conflict{
		Chrome: sampleChrome("Saved by another user in between", "policies"), Action: "/policies/allocations/vision/edit", UpURL: "/policies/allocations/vision", UpLabel: "vision",
		What: "this allocation", TheirsURL: "/policies/allocations/vision/edit", By: "grace@example.com",
		Fields: []views.HiddenField{{"version", "42"}},
		Lines:  []views.ValueChange{{"Fair-share weight", "20", "10"}},
	}
}

func sampleDetail() allocationviews.AllocationDetail {
	return allocationviews.AllocationDetail{
		Chrome: sampleChrome("Vision", "policies"), Team: "vision", Notice: "Saved.", UpURL: "/policies", EditURL: "/e", DeleteURL: "/d",
		Status: views.Status{Tone: "ok", Label: "Active"}, Correction: "Corrected", QuotaNote: "Active.",
		Conditions: []allocationviews.ConditionLine{{Name: "Applied", Status: views.Status{Tone: "ok", Label: "Yes", Text: "All is there."}, Since: "2026-11-21T09:10:00Z"}},
		Quota:      []allocationviews.QuotaFigure{{Pool: "ml.p5.48xlarge", Note: "allocated: 2 accelerators", Resource: "GPUs", Own: "2", Borrow: "1"}, {Pool: "ml.p5.48xlarge", SamePool: true, Resource: "vCPU", Own: "48", Borrow: "24"}},
		Namespace:  "hyperpod-ns-vision", ClusterQueue: "q", LocalQueue: "l", Members: []string{"group vision-team"},
		Settings: []views.ValueLine{{"Fair-share weight", "10"}},
	}
}

func sampleAction() views.ActionPage {
	return views.ActionPage{
		Chrome: sampleChrome("Change priority class: train", "tasks"), Lead: hostile, UpLabel: "train", UpURL: "/tasks/a/Job/train", Action: "/tasks/a/Job/train/class",
		Effects: []string{"It goes on.", hostile}, Failure: hostile, Fields: []views.HiddenField{{"uid", "1"}}, Legend: "Priority class", ChoiceError: hostile,
		Choices: []views.ActionChoice{{"high", hostile, hostile, true}, {"low", "low", "2nd of 3.", false}},
		Type:    "Type train to confirm", Confirm: &views.TextField{Value: "trai", Error: "Type train."}, Number: &views.NumberField{ID: "replicas", Label: "Replicas", TextField: views.TextField{Value: hostile, Error: hostile}}, Submit: "Change priority class", Danger: true,
		Menu: &views.MenuField{ID: "department", Label: "Department", SelectField: views.SelectField{Options: []views.Option{{Value: "a", Label: hostile, Selected: true}}, Error: hostile}},
	}
}

func sampleDelete() allocationviews.AllocationDelete {
	return allocationviews.AllocationDelete{
		Chrome: sampleChrome("Delete vision", "policies"), Team: "vision", Action: "/policies/allocations/vision/delete", CancelURL: "/policies/allocations/vision",
		Version: "41", Generation: "3", Errors: []views.Message{{Field: "confirm", Label: "Confirm", Text: "Type vision."}}, Confirm: views.TextField{Value: "visio", Error: "Type vision."},
		Running: 22, Tasks: []string{"Job a", "Job b"}, More: 20, Waiting: 3, Kept: "hyperpod-ns-vision", Removed: []string{"ClusterQueue q"}, Adopted: hostile,
	}
}

func sampleSettings() settingsviews.SettingsPage {
	page := settingsviews.SettingsPage{
		Chrome:   sampleChrome("Settings", "settings"),
		Problems: []settingsviews.SettingsProblem{{ID: "a", Status: views.Status{Tone: "bad", Label: "Not working", Text: hostile}, Consequence: hostile, Patch: hostile}, {ID: "b", Status: views.Status{Tone: "info", Label: "Note", Text: "x"}}},
		Cards:    []settingsviews.SettingsCard{{ID: "settings-cluster", Title: "Cluster", Lines: []views.ValueLine{{Name: "Name", Value: hostile}}}},
		Config:   hostile, Args: "--config=/x",
	}
	page.Settings, page.Trouble = "/settings", hostile
	return page
}

func sampleImport() importviews.ImportPage {
	return importviews.ImportPage{
		Chrome: sampleChrome("Import", "policies"), Action: "/policies/import", CancelURL: "/policies", Failure: "You are not allowed to save this.", Resumed: true,
		Text: views.TextField{Value: "{}", Error: "Nothing of it could be taken."}, NotImported: []string{"object 3: it is no object."},
		Objects: []importviews.ImportedObject{
			{Index: 0, Kind: "Compute allocation", Name: "vision", Note: "The team exists already.", CanOpen: true, NotImported: []string{"Tags stays with AWS."}},
			{Index: 1, Kind: "Cluster policy", Name: "Cluster policy", Note: "You are not allowed to save this."},
		},
	}
}

func sampleManaged() views.Managed {
	return views.Managed{
		Chrome: sampleChrome("Edit vision", "policies"), UpLabel: "vision", UpURL: "/policies/allocations/vision", Sentence: "Team vision is managed by Flux.",
		Refused: true, Text: "apiVersion: kuota.dev/v1alpha1", Typed: true, NotImported: []string{"Tags stays with AWS."},
	}
}

func sampleImported() allocationviews.AllocationForm {
	f := sampleForm()
	f.Imported = views.Imported{Yes: true, Replaces: "Team vision", NotImported: []string{"Tags stays with AWS."}}
	f.Rows[0].Exact, f.Fields["activation"] = "1331Mi", views.TextField{Value: "Hold"}
	return f
}

func sampleTeams() views.TeamTable {
	return views.TeamTable{
		ID: "team-list", Note: hostile, CSVURL: "/teams.csv", AllURL: "/teams", Heads: []ui.Head{{ID: "name", Label: "Team", URL: "/?sort=name", Sorted: "ascending"}},
		Rows: []views.TeamLine{
			{ID: "team-vision", Name: "vision", URL: "/teams/vision", Sub: hostile, Allocated: "15", Used: "8", Borrowed: "0", Lent: "0", Utilization: "53.33 %", Running: views.Count{Text: "2", URL: "/tasks"}, Waiting: views.Count{Text: "0"}},
			{ID: "team-speech", Name: hostile, URL: "/teams/speech", Used: "2", Utilization: "133.33 %", Borrowing: true},
		},
		Other: &views.TeamLine{ID: "teams-other", Name: "Other teams", Sub: hostile, Utilization: "–"}, Sum: views.TeamLine{ID: "teams-sum", Name: "All"},
		Pager: views.Pager{Text: "1–2 of 5", NextURL: "/?tpage=2"},
	}
}

func sampleControls() views.Controls {
	picker := samplePicker()
	return views.Controls{
		Label: "Dashboard", Action: "/", Fields: []views.HiddenField{{"range", hostile}}, TextName: "tq", Text: hostile, ClearURL: "/", Picker: &picker,
		Filters: []views.Filter{{ID: "pool", Label: "Pool", Options: []views.Option{{Value: hostile, Label: hostile, Selected: true}}}},
	}
}

func sampleDashboard() dashboardviews.DashboardPage {
	return dashboardviews.DashboardPage{
		Chrome: sampleChrome("Dashboard", "dashboard"), Controls: sampleControls(), UsageChart: sampleChart(), Teams: sampleTeams(),
		Stats:   []views.Stat{{ID: "stat-a", Label: hostile, Value: "28", Unit: "GB", Note: hostile, Bad: true}},
		Classes: sampleTasks().Classes, ClassNote: hostile, ClassCSVURL: "/classes.csv",
		Pools: dashboardviews.PoolTable{Note: hostile, More: hostile, MoreURL: "/instances", CSVURL: "/capacity.csv", Lines: []dashboardviews.PoolUse{{
			ID: "pool-p5", Name: hostile, URL: "/instances", Sub: hostile, Trouble: hostile, Unit: "GPUs", PoolNumbers: views.PoolNumbers{
				Meter:    ui.MeterProps{Label: hostile, Max: 16, Mark: 12, Parts: []ui.MeterPart{{Use: "own", Value: 9}, {Use: hostile, Value: 2}}},
				Physical: "16", Own: "9", Borrowed: "2", Outside: "0", Unhealthy: "0", Idle: "5", Quota: "18", Over: "over capacity by 2",
			},
		}}},
	}
}

func sampleAdoption() adoptionviews.AdoptionPage {
	return adoptionviews.AdoptionPage{
		Chrome: sampleChrome("Adopt existing queues", "policies"), Action: "/policies/adopt", CancelURL: "/policies", Adopted: "Allocation vision was created.",
		Failure: "Some ClusterQueues were not adopted.", Failures: []string{"speech: " + hostile},
		Queues: []adoptionviews.AdoptionQueue{
			{Name: "physics", Verdict: views.Status{Tone: "ok", Label: "Manage"}, Selected: true},
			{Name: "speech.example", Team: "speech-example", Verdict: views.Status{Tone: "idle", Label: "Observe"}, Reasons: []string{"It has admission checks (" + hostile + ")."}},
			{Name: "unused", Verdict: views.Status{Tone: "bad", Label: "Refuse"}, Reasons: []string{"No LocalQueue uses it."}, Locked: "It cannot be adopted."},
		},
	}
}

func sampleAdoptionReview() adoptionviews.AdoptionPage {
	page := adoptionviews.AdoptionPage{Chrome: sampleChrome("Adopt existing queues", "policies"), Action: "/policies/adopt", CancelURL: "/policies"}
	page.Review = &adoptionviews.AdoptionReview{
		Managed: []string{"physics"}, Observed: []string{"speech.example"}, Policy: true, Classes: []string{"gold: its value is 1000"},
		KueueChanges: "+ DisableWaitForPodsReady", PolicyProblem: "It cannot be read.", YAML: "kind: ClusterPolicy\n", Reason: views.ReasonField{Hint: "Visible in the history."},
	}
	return page
}
