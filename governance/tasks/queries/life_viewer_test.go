package queries

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func newTestService() (*index.Index, *taskstest.Clock) {
	c := &taskstest.Clock{At: taskstest.Start}
	return index.New(c.Now), c
}

// preemptedOften returns a task that Kueue preempted 30 times, an hour apart, and
// evicted once for another reason before the index saw it.
func preemptedOften(x *index.Index) *tasks.Task {
	for i := range 30 {
		at := taskstest.Start.Add(time.Duration(i) * time.Hour)
		x.SetWorkload(taskstest.Workload("ns", "busy", "", 0, taskstest.Start, taskstest.Admitted(at)...), false)
		w := taskstest.Workload("ns", "busy", "", 0, taskstest.Start, taskstest.PreemptedBy("abc-1", at.Add(10*time.Minute))...)
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "PodsReadyTimeout", Count: 1}, {Reason: "Preempted", Count: int32(i) + 1}}}
		x.SetWorkload(w, false)
	}
	return x.Find("ns", "Job", "busy", "")
}

func TestLifeCountsOmittedLosses(t *testing.T) {
	x, _ := newTestService()
	task := preemptedOften(x)
	l, err := viewer{index: x, scope: access.ScopeOf("ns")}.life(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	shown := int32(0)
	for _, e := range l.Timeline {
		if e.Type.Lost() {
			shown += 1 + e.Omitted
		}
	}
	if l.Omitted != 31-shown || l.Omitted < 1 {
		t.Errorf("got %d omitted losses, want %d", l.Omitted, 31-shown)
	}
}

func TestLifeHidesThePreemptorOfAnotherTeam(t *testing.T) {
	x, c := newTestService()
	x.SetWorkload(taskstest.Workload("secret-ns", "other", "", 9, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	x.SetWorkload(taskstest.Workload("ns", "victim", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	event := timeline.Event{At: c.At, Type: timeline.Held, Message: "until it starts", Preemptor: x.Find("secret-ns", "Job", "other", "")}
	x.RecordEvent("ns", types.UID("w-nsvictim"), event)
	l, err := viewer{index: x, scope: access.ScopeOf("ns")}.life(t.Context(), x.Find("ns", "Job", "victim", ""))
	if err != nil {
		t.Fatal(err)
	}
	var found []timeline.Event
	for _, e := range l.Timeline {
		if e.Type == timeline.Held {
			found = append(found, e)
		}
	}
	if len(found) != 1 || found[0].Preemptor != nil || found[0].PreemptorUID == "" {
		t.Errorf("a viewer who may not see the preemptor gets %+v", found)
	}
}

// No Workload, however malformed, makes the input of an explanation panic.
func TestExplainInputOfMalformedWorkloads(t *testing.T) {
	for name, deform := range taskstest.Malformed() {
		t.Run(name, func(t *testing.T) {
			w := taskstest.Workload("a", "bad", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
			deform(w)
			explainInput(tasks.FromWorkloads([]*kueue.Workload{w}, nil))
		})
	}
}
