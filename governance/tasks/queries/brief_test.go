package queries

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"
)

// A list shows the previous verdict of a task until there is a new one, but not one
// of another state.
func TestPreviousBriefIsShown(t *testing.T) {
	var b briefs
	waits := &tasks.Task{Namespace: "ns", UID: "1", State: tasks.Pending}
	verdict := &explain.Verdict{Constraint: explain.PendingEvaluation}
	if got := b.kept([]*tasks.Task{waits}); len(got) != 1 || got[0] != nil {
		t.Errorf("before the first verdict: got %v, want nil", got)
	}
	b.put(tasks.Key{Namespace: "ns", UID: "1"}, brief{task: waits, verdict: verdict})
	changed, runs := *waits, *waits
	runs.State = tasks.Running
	for name, tc := range map[string]struct {
		task *tasks.Task
		want *explain.Verdict
	}{
		"unchanged":        {waits, verdict},
		"changed":          {&changed, verdict},
		"in another state": {&runs, nil},
		"another task":     {&tasks.Task{Namespace: "ns", UID: "2", State: tasks.Pending}, nil},
	} {
		if got := b.kept([]*tasks.Task{tc.task}); got[0] != tc.want {
			t.Errorf("%s: got %v, want %v", name, got[0], tc.want)
		}
	}
}

// A page shows a verdict that was current a moment ago without waiting; alerts, and a page
// after a while without readers, wait for a new one.
func TestOutdatedBriefIsAwaited(t *testing.T) {
	s := &Service{Cluster: &cluster.Cluster{TaskChanges: &cluster.Notifier{}}}
	s.briefs.working = true // so that nothing computes verdicts
	task := &tasks.Task{Namespace: "ns", UID: "1", State: tasks.Pending}
	waits := func(known, age time.Duration) bool {
		s.briefs.put(task.Key(), brief{task: task, verdict: &explain.Verdict{}, changes: s.changes(), current: time.Now().Add(-known)})
		s.Cluster.TaskChanges.Notify()
		found, done := s.verdicts([]*tasks.Task{task}, age)
		if found[0] == nil {
			t.Error("the verdict is not shown")
		}
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	if waits(briefAge/2, briefAge) || !waits(2*briefAge, briefAge) || !waits(0, 0) {
		t.Error("want to wait for what is older than the age, and for nothing else")
	}
}

// Verdicts that no list shows are evicted; those that a list shows are not.
func TestBriefsAreBounded(t *testing.T) {
	var b briefs
	shown := &tasks.Task{Namespace: "ns", UID: "shown", State: tasks.Pending}
	b.put(tasks.Key{Namespace: "ns", UID: "shown"}, brief{task: shown, verdict: &explain.Verdict{}})
	for i := range 5 * briefsKept {
		if i%100 == 0 {
			kept, ok := b.get(tasks.Key{Namespace: "ns", UID: "shown"})
			if !ok {
				t.Fatalf("after %d others, the shown verdict is evicted", i)
			}
			b.put(tasks.Key{Namespace: "ns", UID: "shown"}, kept)
		}
		b.put(tasks.Key{Namespace: "ns", UID: fmt.Sprint(i)}, brief{task: &tasks.Task{}})
	}
	if n := len(b.now) + len(b.older); n > 2*briefsKept+1 {
		t.Errorf("got %d verdicts, want at most %d", n, 2*briefsKept+1)
	}
}

// Tasks without any verdict are explained first.
func TestNewTasksAreExplainedFirst(t *testing.T) {
	b := briefs{wanted: map[tasks.Key]*tasks.Task{}}
	for i := range 50 {
		key := tasks.Key{Namespace: "ns", UID: fmt.Sprint(i)}
		b.wanted[key] = &tasks.Task{Namespace: "ns", UID: key.UID}
		if i != 17 {
			b.put(key, brief{task: b.wanted[key]})
		}
	}
	if key, task := b.next(); key.UID != "17" || task.UID != "17" || len(b.wanted) != 49 {
		t.Errorf("%v is first, with %d left, want 17 with 49", key, len(b.wanted))
	}
}

// A task that cannot be explained, or whose explanation panics, leaves no other one
// without a verdict, and no list waits for it.
func TestOddTaskAmongBriefs(t *testing.T) {
	done := make(chan struct{})
	b := briefs{wanted: map[tasks.Key]*tasks.Task{}, waiters: []chan struct{}{done}, working: true}
	var list []*tasks.Task
	for i := range 20 {
		task := &tasks.Task{Namespace: "ns", UID: fmt.Sprint(i), State: tasks.Pending}
		list = append(list, task)
		b.wanted[task.Key()] = task
	}
	for began := time.Now(); ; {
		_, left := b.turn(began, 1, nil, func(t *tasks.Task) (*explain.Verdict, error) {
			if t.UID == "7" {
				return nil, errors.New("odd")
			}
			if t.UID == "8" {
				panic("odd")
			}
			return &explain.Verdict{Constraint: explain.PendingEvaluation}, nil
		})
		if !left {
			break
		}
	}
	for i, verdict := range b.kept(list) {
		if (verdict == nil) != (i == 7 || i == 8) {
			t.Errorf("task %d: got %v", i, verdict)
		}
	}
	select {
	case <-done:
	default:
		t.Error("lists still wait")
	}
}

// A brief verdict has no names, and the constraint and shortage of the task's page.
func TestBriefAgreesWithThePage(t *testing.T) {
	x, _ := newTestService()
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("hyperpod-ns-team-1", "low", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "team-1", 6), false)
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("hyperpod-ns-team-2", "other", "", 9, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "team-2", 8000), false)
	x.SetWorkload(taskstest.Workload("hyperpod-ns-team-1", "waits", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	v := viewer{scope: access.Scope{All: true}, reader: manyQueues(), index: x}
	task := x.Find("hyperpod-ns-team-1", "job", "waits", "")
	s := newSurvey(v)
	brief, err := s.brief(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	full, err := v.why(t.Context(), task, nil, index.PodCount{})
	if err != nil {
		t.Fatal(err)
	}
	if brief.Constraint != full.Constraint || (brief.Shortage == nil) != (full.Shortage == nil) || brief.Shortage != nil && brief.Shortage.Missing() != full.Shortage.Missing() {
		t.Errorf("the list has %+v, and the page %+v", brief, full)
	}
	for _, list := range brief.AdmittedWorkloads() {
		if len(*list) > 0 {
			t.Errorf("the list names %+v", *list)
		}
	}
}
