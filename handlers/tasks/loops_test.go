package tasks_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// aLoop returns a loop of two tasks that the reader is allowed to see.
func aLoop() queries.GuardedLoop {
	since := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	return queries.GuardedLoop{
		Preempted: &tasks.Task{Namespace: "ns-a", Kind: "Job", Name: "a-mid", UID: "ua"}, Team: "a",
		For: &tasks.Task{Namespace: "ns-b", Kind: "Job", Name: "b-mid", UID: "ub"}, ForTeam: "b",
		Loop: loopguard.Loop{
			Rule: "InCohortFairSharing", Since: since, Last: since.Add(46 * time.Second), Detected: since, Preemptions: 63,
			State: loopguard.Looping, NotHeld: loopguard.WarnOnly,
		},
	}
}

// inOrder returns the text of a part of a page, with single spaces.
func inOrder(part *goquery.Selection) string { return strings.Join(strings.Fields(part.Text()), " ") }

func TestLoopsOnPages(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(l *queries.GuardedLoop)
		want   string // of the notice; empty for none
		links  int
	}{
		"goes on": {func(*queries.GuardedLoop) {}, "Kueue preempted a-mid 63 times in 46 s for b-mid. Kuota only warns. To end the loop, stop the preempted task for some seconds, or have the cluster policy break loops.", 2},
		"held": {func(l *queries.GuardedLoop) {
			l.State, l.Holds, l.HeldUntil = loopguard.Held, 1, l.Since.Add(time.Minute)
		}, "Kueue preempted a-mid 63 times in 46 s for b-mid. The loop guard holds a-mid until b-mid is admitted. It is released at the latest at 20 Nov 2026, 13:01:00 UTC", 2},
		"held again": {func(l *queries.GuardedLoop) {
			l.State, l.Holds, l.HeldUntil = loopguard.Held, 2, l.Since.Add(time.Minute)
		}, "since the loop came back", 2},
		"of a kind that is not held": {func(l *queries.GuardedLoop) { l.NotHeld = loopguard.NotHoldable }, "Kuota does not hold tasks of this kind", 2},
		"for another team's task": {func(l *queries.GuardedLoop) {
			l.For, l.ForTeam, l.Preemptor = nil, "", loopguard.Party{}
		}, "for a task of another team.", 1},
		"for a deleted task": {func(l *queries.GuardedLoop) { l.For = nil }, "for a deleted task of team b.", 1},
		"over":               {func(l *queries.GuardedLoop) { l.State = loopguard.Over }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := aLoop()
			tc.change(&l)
			d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}, Loops: []queries.GuardedLoop{l}}
			address := handlerstest.Serve(t, d)
			for _, path := range []string{"/", "/tasks"} {
				_, page := handlerstest.Get(t, address+path)
				htmlcheck.Page(t, page)
				notice := page.Find("#preemption-loops")
				if got := inOrder(notice); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("%s shows %q, want %q", path, got, tc.want)
				}
				if got := notice.Find("a").Length(); got != tc.links {
					t.Errorf("%s links to %d tasks, want %d", path, got, tc.links)
				}
			}
		})
	}
}

// A task that the loop guard holds is not shown as stopped. Its page has a card for
// the loop.
func TestHeldTask(t *testing.T) {
	inactive := false
	mark := loopguard.Mark{Identity: "x", Preemptor: "ub", Until: time.Date(2026, 11, 20, 13, 1, 0, 0, time.UTC)}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-a", Name: "job-a-mid", UID: "w", Annotations: map[string]string{loopguard.MarkAnnotation: mark.String()}}}
	w.Spec.Active = &inactive
	task := tasks.FromWorkloads([]*kueue.Workload{w}, nil)
	if task.State != tasks.Preempted {
		t.Fatalf("a held task is %s", task.State)
	}
	loop := aLoop()
	loop.State, loop.Holds, loop.HeldUntil = loopguard.Held, 1, mark.Until
	d := &handlerstest.Backend{Items: []queries.Item{{Task: task, Team: "a"}}, MoreDetail: func(detail *queries.Detail) { detail.Loops = []queries.GuardedLoop{loop} }}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns-a/workload/job-a-mid")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find(".task-lead")); !strings.Contains(got, "Held by the loop guard") || strings.Contains(got, "Stopped") {
		t.Errorf("the page shows %q", got)
	}
	want := "Preemption loopb-mid preempts a-mid, 63 times in 46 sThe task is preempted again and again, and the other is not admitted, or only for a moment. This is a known defect of Kueue's fair sharing.The loop guard holds a-mid until b-mid is admitted. It is released at the latest at 20 Nov 2026, 13:01:00 UTC"
	if got := inOrder(page.Find("#task-loops")); got != want {
		t.Errorf("the card shows %q, want %q", got, want)
	}
}
