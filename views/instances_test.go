package views

import (
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/views/ui"
)

func sampleInstances() InstancesPage {
	return InstancesPage{
		Chrome: sampleChrome("Instances", "instances"), Summary: "2 nodes: 1 ready, 1 cordoned", Action: "/instances", Text: "gpu", ClearURL: "/instances", CSVURL: "/instances.csv", PoolsCSV: "/capacity.csv", Found: "2 found",
		Filters: []Filter{{ID: "pool", Label: "Pool", Options: []Option{{Label: "All pools"}, {Value: hostile, Label: hostile, Selected: true}}}},
		Heads:   []ui.Head{{ID: "name", Label: "Name", URL: "/instances?order=desc", Sorted: "ascending"}, {ID: "free", Label: "Free", Number: true}}, Sort: "free", Order: "desc",
		Pools: []PoolFigures{
			{ID: "pool-a-gpu", Pool: hostile, URL: "/instances?pool=a", Note: "H100 · 80 GB", Types: hostile, Nodes: "2", States: []Status{{Tone: "ok", Label: "1 ready"}, {Tone: "idle", Label: "1 cordoned"}}, Resource: "GPUs",
				PoolNumbers: PoolNumbers{Meter: ui.MeterProps{Label: "Of 16 GPUs 6 are bound", Max: 18, Mark: 18, Parts: []ui.MeterPart{{Use: "own", Value: 6}}}, Physical: "16", Quota: "18", Over: "oversubscribed by 2"}},
			{ID: "pool-a-cpu", Pool: hostile, SamePool: true, Resource: "vCPU", PoolNumbers: PoolNumbers{Meter: ui.MeterProps{Label: "Of 384 vCPU 0 are bound", Max: 384}, Physical: "384"}},
		},
		Nodes: []NodeRow{
			{ID: "node-1", Name: hostile, Pool: "a", PoolURL: "/instances?pool=a", Type: hostile, Status: Status{Tone: "wait", Label: "Pending recovery", Text: hostile}, Since: "2026-11-22T09:10:00Z", Accelerators: "8", Bound: "5", Free: "–",
				VCPU: Amounts{"120", "192"}, Memory: Amounts{"1280", "2048"}, Pods: "7", Teams: []NodeTeam{{Name: hostile, URL: "/teams/vision", Text: hostile}, {Name: "other teams", Text: "2 GPUs"}},
				Figures: []NodeFigure{{hostile, "8 physical, 8 allocatable: 5 bound, 1 outside Kueue, 2 free"}}, Created: "2026-11-20T09:10:00Z", Age: "2 d 01 h"},
			{ID: "node-2", Name: "gpu-2", Status: Status{Tone: "ok", Label: "Ready"}, Created: "2026-11-20T09:10:00Z", Age: "2 d 01 h"},
		},
		Pager: Pager{Text: "1–100 of 101", NextURL: "/instances?page=2"},
	}
}

func samplePast() []PastRow {
	return []PastRow{
		{ID: "past-1", Task: TaskLink{Name: hostile, URL: "/tasks/ns/job/train?uid=1"}, Kind: hostile, Status: Status{Tone: "bad", Label: "Failed", Text: "deleted"}, Team: hostile, Namespace: hostile, PriorityClass: hostile, Requests: "4 GPUs", Pool: hostile,
			Submitted: "2026-11-20T09:10:00Z", Ended: "2026-11-20T10:10:00Z", Ran: "1 h 00 m", Preemptions: "2"},
		{ID: "past-2", Task: TaskLink{Name: "x", URL: "/x"}, Status: Status{Tone: "idle", Label: "Deleted"}, Submitted: "2026-11-20T09:10:00Z"},
	}
}

func sampleTeamUse() TeamPage {
	return TeamPage{
		Chrome: sampleChrome("vision", "teams"), TasksURL: "/tasks?team=vision", AllocationURL: "/policies/allocations/vision", Facts: []ValueLine{{Name: "Members", Value: hostile}},
		Usage: TeamUsage{
			Rows: []ShareFigures{
				{ID: "share-1", Pool: hostile, Resource: "GPUs", Meter: ui.MeterProps{Label: "8 used of a quota of 15 GPUs", Max: 15, Mark: 15, Parts: []ui.MeterPart{{Use: "own", Value: 8}}}, Quota: "15", Used: "8", Own: "8", Utilization: "53.33 %", Unplaced: "1 without a node"},
				{ID: "share-2", Pool: hostile, SamePool: true, Resource: "vCPU", Meter: ui.MeterProps{Label: "nothing held"}, Utilization: "–"},
			},
			Running: Count{Text: "2 running", URL: "/tasks?status=Running"}, Waiting: Count{Text: "0 waiting"}, QueueNote: "the first 10 of 34", QueueURL: "/tasks?status=Pending",
			Queue:   []QueuedTask{{ID: "queued-1", Position: "1st", Task: TaskLink{Name: hostile, URL: "/x"}, PriorityClass: hostile, Requests: "4 GPUs", Waited: "5 m", Reason: hostile}},
			Classes: []ClassRow{{ID: "class-a", Name: hostile, Running: Count{Text: "1", URL: "/x"}}}, ClassNote: "averages since 09:00",
		},
		Past: &TeamPast{
			Picker: RangePicker{ID: "team-range", Action: "/teams/vision", Links: []RangeLink{{Label: "1 h", Title: "The last hour", URL: "/teams/vision?range=1h", Current: true}}},
			Charts: []Chart{{ID: "chart-gpu", Title: "GPUs", Times: []int64{1}, Series: []ChartSeries{{Label: "Own", Values: []ChartValue{{1, true, "1"}}}}, Stacked: true}, {ID: "chart-cpu", Title: "vCPU", Empty: "Nothing is recorded."}},
			CSVURL: "/teams/vision/usage.csv", Tasks: samplePast(), Pager: Pager{Text: "1–20", NextURL: "/teams/vision?page=2"}, AllURL: "/tasks/past?team=vision",
		},
	}
}

func samplePastTask() PastTask {
	return PastTask{
		Chrome: sampleChrome("train", "tasks"), Name: "train", Namespace: hostile, Team: hostile, TeamURL: "/teams/x", Status: Status{Tone: "idle", Label: "Succeeded"}, Lead: hostile,
		Facts: []ValueLine{{Name: "Waited", Value: "5 m"}}, Submitted: "2026-11-20T09:10:00Z", Deleted: "2026-11-20T10:10:00Z",
		Timeline: []TimelineLine{{At: "2026-11-20T09:10:00Z", Tone: "pre", Title: "Preempted", Unnamed: "another team"}, {At: "2026-11-20T09:10:00Z", Title: "Submitted", By: &TaskLink{Name: hostile, URL: "/x"}}},
		Others:   []PastLink{{Task: TaskLink{Name: hostile, URL: "/y"}, Status: Status{Tone: "bad", Label: "Failed"}, Submitted: "2026-11-20T09:10:00Z"}},
	}
}

func TestUsagePagesAreSound(t *testing.T) {
	none := sampleTeamUse()
	none.Usage, none.Past = TeamUsage{Trouble: "It cannot be shown now."}, &TeamPast{Trouble: "History cannot be read now.", TasksTrouble: "History cannot be read now.", Picker: RangePicker{ID: "team-range"}}
	empty := sampleTeamUse()
	empty.Usage, empty.Past = TeamUsage{}, nil
	for name, page := range map[string]templ.Component{
		"instances":               Instances(sampleInstances()),
		"instances, none":         Instances(InstancesPage{Chrome: sampleChrome("Instances", "instances"), Action: "/instances"}),
		"instances, none found":   Instances(InstancesPage{Chrome: sampleChrome("Instances", "instances"), Action: "/instances", ClearURL: "/instances"}),
		"team":                    Team(sampleTeamUse()),
		"team, no data":           Team(none),
		"team, without history":   Team(empty),
		"past tasks":              Past(PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past", Rows: samplePast(), Wrong: "A day is written so.", ClearURL: "/tasks/past", CSVURL: "/tasks/past.csv"}),
		"past tasks, none":        Past(PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past"}),
		"past tasks, none found":  Past(PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Action: "/tasks/past", ClearURL: "/tasks/past"}),
		"past tasks, cannot read": Past(PastPage{Chrome: sampleChrome("Past tasks", "tasks"), Trouble: "History cannot be read now."}),
		"past task":               PastTaskPage(samplePastTask()),
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
	for id, fragment := range map[string]templ.Component{"instances": InstancesLive(sampleInstances()), "team-usage": TeamUsageLive(sampleTeamUse().Usage), "task": TaskDeletedBody("/tasks/ns/job/train")} {
		doc := htmlcheck.Render(t, fragment)
		htmlcheck.Fragment(t, doc)
		if top := doc.Find("body").Children(); top.Length() != 1 || top.AttrOr("id", "") != id {
			t.Errorf("the fragment %s is %d elements with the id %q", id, top.Length(), top.AttrOr("id", ""))
		}
	}
}
