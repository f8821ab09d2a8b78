package views_test

import (
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/htmlcheck"
	instanceviews "kuota.dev/kuota/views/instances"
	taskviews "kuota.dev/kuota/views/tasks"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/views/ui"
)

func sampleInstances() instanceviews.InstancesPage {
	return instanceviews.InstancesPage{
		Chrome: sampleChrome("Instances", "instances"), Summary: "2 nodes: 1 ready, 1 cordoned", Action: "/instances", Text: "gpu", ClearURL: "/instances", CSVURL: "/instances.csv", PoolsCSV: "/capacity.csv", Found: "2 found",
		Filters: []views.Filter{{ID: "pool", Label: "Pool", Options: []views.Option{{Label: "All pools"}, {Value: hostile, Label: hostile, Selected: true}}}},
		Heads:   []ui.Head{{ID: "name", Label: "Name", URL: "/instances?order=desc", Sorted: "ascending"}, {ID: "free", Label: "Free", Number: true}}, Sort: "free", Order: "desc",
		Pools: []instanceviews.PoolFigures{
			{ID: "pool-a-gpu", Pool: hostile, URL: "/instances?pool=a", Note: "H100 · 80 GB", Types: hostile, Nodes: "2", States: []views.Status{{Tone: "ok", Label: "1 ready"}, {Tone: "idle", Label: "1 cordoned"}}, Resource: "GPUs",
				PoolNumbers: views.PoolNumbers{Meter: ui.MeterProps{Label: "Of 16 GPUs 6 are bound", Max: 18, Mark: 18, Parts: []ui.MeterPart{{Use: "own", Value: 6}}}, Physical: "16", Quota: "18", Over: "over capacity by 2"}},
			{ID: "pool-a-cpu", Pool: hostile, SamePool: true, Resource: "vCPU", PoolNumbers: views.PoolNumbers{Meter: ui.MeterProps{Label: "Of 384 vCPU 0 are bound", Max: 384}, Physical: "384"}},
		},
		Nodes: []instanceviews.NodeRow{
			{ID: "node-1", Name: hostile, Pool: "a", PoolURL: "/instances?pool=a", Type: hostile, Status: views.Status{Tone: "wait", Label: "Pending recovery", Text: hostile}, Since: "2026-11-22T09:10:00Z", Accelerators: "8", Bound: "5", Free: "–",
				VCPU: instanceviews.Amounts{Bound: "120", Of: "192"}, Memory: instanceviews.Amounts{Bound: "1280", Of: "2048"}, Pods: "7", Teams: []instanceviews.NodeTeam{{Name: hostile, URL: "/teams/vision", Text: hostile}, {Name: "other teams", Text: "2 GPUs"}},
				Figures: []instanceviews.NodeFigure{{Resource: hostile, Text: "8 physical, 8 allocatable: 5 bound, 1 outside Kueue, 2 free"}}, Created: "2026-11-20T09:10:00Z", Age: "2 d 01 h"},
			{ID: "node-2", Name: "gpu-2", Status: views.Status{Tone: "ok", Label: "Ready"}, Created: "2026-11-20T09:10:00Z", Age: "2 d 01 h"},
		},
		Pager: views.Pager{Text: "1–100 of 101", NextURL: "/instances?page=2"},
	}
}

func samplePast() []views.PastRow {
	return []views.PastRow{
		{ID: "past-1", Task: views.TaskLink{Name: hostile, URL: "/tasks/ns/job/train?uid=1"}, Kind: hostile, Status: views.Status{Tone: "bad", Label: "Failed", Text: "deleted"}, Team: hostile, Namespace: hostile, PriorityClass: hostile, Requests: "4 GPUs", Pool: hostile,
			Submitted: "2026-11-20T09:10:00Z", Ended: "2026-11-20T10:10:00Z", Ran: "1 h 00 m", Preemptions: "2"},
		{ID: "past-2", Task: views.TaskLink{Name: "x", URL: "/x"}, Status: views.Status{Tone: "idle", Label: "Deleted"}, Submitted: "2026-11-20T09:10:00Z"},
	}
}

func sampleTeamUse() teamviews.TeamPage {
	return teamviews.TeamPage{
		Chrome: sampleChrome("vision", "teams"), Facts: []views.ValueLine{{Name: "Members", Value: hostile}},
		Usage: teamviews.TeamUsage{
			Rows: []teamviews.ShareFigures{
				{ID: "share-1", Pool: hostile, Resource: "GPUs", Meter: ui.MeterProps{Label: "8 used of a quota of 15 GPUs", Max: 15, Mark: 15, Parts: []ui.MeterPart{{Use: "own", Value: 8}}}, Quota: "15", Used: "8", Own: "8", Utilization: "53.33 %", Unplaced: "1 without a node"},
				{ID: "share-2", Pool: hostile, SamePool: true, Resource: "vCPU", Meter: ui.MeterProps{Label: "nothing held"}, Utilization: "–"},
			},
			Running: views.Count{Text: "2 running", URL: "/tasks?status=Running"}, Waiting: views.Count{Text: "0 waiting"}, QueueNote: "the first 10 of 34", QueueURL: "/tasks?status=Pending",
			Queue:   []teamviews.QueuedTask{{ID: "queued-1", Position: "1st", Task: views.TaskLink{Name: hostile, URL: "/x"}, PriorityClass: hostile, Requests: "4 GPUs", Waited: "5 m", Reason: hostile}},
			Classes: []views.ClassRow{{ID: "class-a", Name: hostile, Running: views.Count{Text: "1", URL: "/x"}}}, ClassNote: "averages since 09:00",
		},
		Past: &teamviews.TeamPast{
			Picker: views.RangePicker{ID: "team-range", Action: "/teams/vision", Links: []views.RangeLink{{Label: "1 h", Title: "The last hour", URL: "/teams/vision?range=1h", Current: true}}},
			Charts: []views.Chart{{ID: "chart-gpu", Title: "GPUs", Times: []int64{1}, Series: []views.ChartSeries{{Label: "Own", Values: []views.ChartValue{{1, true, "1"}}}}, Stacked: true}, {ID: "chart-cpu", Title: "vCPU", Empty: "Nothing is recorded."}},
			CSVURL: "/teams/vision/usage.csv", Tasks: samplePast(), Pager: views.Pager{Text: "1–20", NextURL: "/teams/vision?page=2"}, AllURL: "/tasks/past?team=vision",
		},
	}
}

func samplePastTask() taskviews.PastTask {
	return taskviews.PastTask{
		Chrome: sampleChrome("train", "tasks"), Name: "train", Namespace: hostile, Team: hostile, TeamURL: "/teams/x", Status: views.Status{Tone: "idle", Label: "Succeeded"}, Lead: hostile,
		Facts: []views.ValueLine{{Name: "Waited", Value: "5 m"}}, Submitted: "2026-11-20T09:10:00Z", Deleted: "2026-11-20T10:10:00Z",
		Timeline: []taskviews.TimelineLine{{At: "2026-11-20T09:10:00Z", Tone: "pre", Title: "Preempted", Unnamed: "another team"}, {At: "2026-11-20T09:10:00Z", Title: "Submitted", By: &views.TaskLink{Name: hostile, URL: "/x"}}},
		Others:   []taskviews.PastLink{{Task: views.TaskLink{Name: hostile, URL: "/y"}, Status: views.Status{Tone: "bad", Label: "Failed"}, Submitted: "2026-11-20T09:10:00Z"}},
	}
}

func TestUsagePagesAreSound(t *testing.T) {
	none := sampleTeamUse()
	none.Usage, none.Past = teamviews.TeamUsage{Trouble: "It cannot be shown now."}, &teamviews.TeamPast{Trouble: "History cannot be read now.", TasksTrouble: "History cannot be read now.", Picker: views.RangePicker{ID: "team-range"}}
	empty := sampleTeamUse()
	empty.Usage, empty.Past = teamviews.TeamUsage{}, nil
	for name, page := range map[string]templ.Component{
		"instances":               instanceviews.Instances(sampleInstances()),
		"instances, none":         instanceviews.Instances(instanceviews.InstancesPage{Chrome: sampleChrome("Instances", "instances"), Action: "/instances"}),
		"instances, none found":   instanceviews.Instances(instanceviews.InstancesPage{Chrome: sampleChrome("Instances", "instances"), Action: "/instances", ClearURL: "/instances"}),
		"team":                    teamviews.Team(sampleTeamUse()),
		"team, no data":           teamviews.Team(none),
		"team, without history":   teamviews.Team(empty),
		"past tasks":              taskviews.Past(taskviews.PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past", Rows: samplePast(), Wrong: "A day is written so.", ClearURL: "/tasks/past", CSVURL: "/tasks/past.csv"}),
		"past tasks, none":        taskviews.Past(taskviews.PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past"}),
		"past tasks, none found":  taskviews.Past(taskviews.PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past", ClearURL: "/tasks/past"}),
		"past tasks, cannot read": taskviews.Past(taskviews.PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Trouble: "History cannot be read now."}),
		"past task":               taskviews.PastTaskPage(samplePastTask()),
	} {
		t.Run(name, func(t *testing.T) {
			doc := htmlcheck.Render(t, page)
			htmlcheck.Page(t, doc)
			if doc.Find("script").Length() > 6 || doc.Find("img").Length() > 0 {
				t.Error("what a user called something is markup")
			}
			if doc.Find("tr tr").Length() > 0 { // the stream cannot update nested rows
				t.Error("a row has rows in it")
			}
		})
	}
	for id, fragment := range map[string]templ.Component{"instances": instanceviews.InstancesLive(sampleInstances()), "team-usage": teamviews.TeamUsageLive(sampleTeamUse().Usage), "task": taskviews.TaskDeletedBody("/tasks/ns/job/train")} {
		doc := htmlcheck.Render(t, fragment)
		htmlcheck.Fragment(t, doc)
		if top := doc.Find("body").Children(); top.Length() != 1 || top.AttrOr("id", "") != id {
			t.Errorf("the fragment %s is %d elements with the id %q", id, top.Length(), top.AttrOr("id", ""))
		}
	}
}
