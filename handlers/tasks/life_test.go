package tasks_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

const gpu = "nvidia.com/gpu"

func line(held, own resources.Amount, more func(*queries.QuotaSource)) queries.QuotaSource {
	l := queries.QuotaSource{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: gpu}, Usage: held, Own: own, Borrowed: held - own}
	if more != nil {
		more(&l)
	}
	return l
}

func TestTaskLife(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	other := &tasks.Task{Name: "other", Namespace: "ns", Kind: "Job"}
	cases := map[string]struct {
		state    tasks.State
		more     func(*queries.Detail)
		selector string
		want     []string
	}{
		"on its own quota": {tasks.Running, func(d *queries.Detail) {
			d.QuotaSources = &queries.QuotaSources{Sources: []queries.QuotaSource{line(8, 8, nil)}}
		}, "#task-backing", []string{"its team's own quota", "No other team can reclaim it", "8 GPUs, own quota"}},
		"borrows": {tasks.Running, func(d *queries.Detail) {
			d.QuotaSources = &queries.QuotaSources{Sources: []queries.QuotaSource{line(8, 4, func(l *queries.QuotaSource) {
				l.Unallocated, l.Lenders = 1, []queries.Lender{{Team: "language", Amount: 2}, {Amount: 1}}
			})}}
		}, "#task-backing", []string{"It borrows 4 of its 8 GPUs.", "A team that lends it can reclaim its quota.", "8 GPUs: 4 of its team's own quota, 1 of unallocated compute, 2 lent by language, 1 lent by other teams", "unallocated compute is lent before idle quota"}},
		"borrows all, after a quota was lowered": {tasks.Running, func(d *queries.Detail) {
			d.QuotaSources = &queries.QuotaSources{Sources: []queries.QuotaSource{line(1, 0, func(l *queries.QuotaSource) { l.Uncovered = 1 })}}
		}, "#task-backing", []string{"It borrows its 1 GPU.", "1 over quota"}},
		"preempted by one that may be named": {tasks.Preempted, func(d *queries.Detail) {
			d.Timeline = []timeline.Event{{At: at, Type: timeline.Preempted, Reason: "InClusterQueue", Preemptor: other, PreemptorTeam: "vision", Ran: 25 * time.Minute}}
		}, "#task-loss", []string{"other", "of team vision", "A task of a higher class in its own team", "25 m 00 s", "depends on its checkpoints"}},
		"preempted by one that is not for the reader": {tasks.Preempted, func(d *queries.Detail) {
			d.Timeline = []timeline.Event{{At: at, Type: timeline.Preempted, Reason: "InCohortReclamation", Ran: -1}}
		}, "#task-loss", []string{"a task that was deleted or that you cannot see", "Another team reclaims its own quota", "Unknown"}},
		"preempted by one that is gone, some time before": {tasks.Running, func(d *queries.Detail) {
			d.Timeline = []timeline.Event{{At: at, AtOrBefore: true, Type: timeline.Preempted, Preemptor: other, PreemptorDeleted: true, Ran: 90 * time.Second}}
			d.Omitted = 2
		}, "#task-timeline", []string{"by other (deleted)", "it had run for 1 m 30 s", "it had run for 1 m 30 s before", "2 times more"}},
		"grew and shrank": {tasks.Running, func(d *queries.Detail) {
			d.Sizes = []timeline.Resize{{At: at, To: 2, Cause: timeline.StartedPart}, {At: at, From: 2, To: 4, Cause: timeline.Scaled}, {At: at, From: 4, To: 1, Cause: timeline.LostTo}}
		}, "#task-sizes", []string{"1 pod", "preempted; it had 4", "scaled up from 2", "started with the pods that fit"}},
		"runs, and wants more that others borrow": {tasks.Running, func(d *queries.Detail) {
			grows := *d.Task
			grows.Size, grows.PendingMessage = tasks.Size{Admitted: 3, Wanted: 6}, "waits for quota"
			fr := quota.FlavorResource{Flavor: "ml.p5.48xlarge", Resource: "nvidia.com/gpu"}
			d.Task, d.Verdict = &grows, &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: fr, Needed: 6, Available: 3, PotentialAvailable: 12, Nominal: 3, Used: 3, Reclaimable: 6, Borrowers: []explain.Borrower{{Queue: "q", Team: "speech", Amount: 4}, {Team: "another team", Amount: 2}}}}
			for range 7 {
				d.Verdict.Shortage.InQueue = append(d.Verdict.Shortage.InQueue, explain.AdmittedWorkload{Name: "a", Kind: "Job", Namespace: "ns", Usage: quota.FlavorResourceQuantities{fr: 1}})
			}
			d.Verdict.Shortage.InQueue = append(d.Verdict.Shortage.InQueue, explain.AdmittedWorkload{Team: "another team", Usage: quota.FlavorResourceQuantities{fr: 9}})
		}, "#task-why", []string{"a 1 GPU, another team 9 GPUs, 2 more", "Why does it not get more pods?", "3 GPUs short.", "It runs with 3 of 6 pods. It requests 6 GPUs", "Other teams borrow 6 GPUs: team speech 4 GPUs, another team 2 GPUs"}},
		"at a place for long, in a shared queue": {tasks.Pending, func(d *queries.Detail) {
			d.Position, d.QueuePosition = 3, queries.QueuePosition{QueueLength: 12, ClusterQueuePosition: 9, ClusterQueueLength: 40, ByKueue: true, PositionSince: time.Now().Add(-10 * time.Minute), PositionEarlier: true}
		}, "#task-place", []string{"3rd of 12", "9th of 40", "at least 10 m", "As Kueue reports it."}},
		"at a place, in a queue that is shared with teams which are not for the reader": {tasks.Pending, func(d *queries.Detail) {
			d.Position, d.QueuePosition = 3, queries.QueuePosition{QueueLength: 12, Shared: true, ByKueue: true}
		}, "#task-place", []string{"3rd of 12", "In its ClusterQueueshared with other teams"}},
		"at a place, while Kueue does not tell": {tasks.Pending, func(d *queries.Detail) {
			d.Position, d.QueuePosition = 3, queries.QueuePosition{QueueLength: 12, ClusterQueuePosition: 3, ClusterQueueLength: 12, OnlyLocalQueue: true}
		}, "#task-place", []string{"3rd of 12", "Calculated by Kueue"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{MoreDetail: tc.more, Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "Job", State: tc.state, Queue: "main", Submitted: at}, Team: "vision"}}}
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train")
			htmlcheck.Page(t, page)
			text := strings.Join(strings.Fields(page.Find(tc.selector).Text()), " ")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %q", want, text)
				}
			}
			if tc.state == tasks.Pending && strings.Contains(text, "In its ClusterQueue") != strings.Contains(name, "shared") {
				t.Errorf("two places where there is one, or one where there are two: %q", text)
			}
		})
	}
}

// In one second a task is admitted and preempted, or preempted and admitted again: what it
// had before decides.
func TestEventsOfOneSecond(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	event := func(after time.Duration, of timeline.EventType, count int32) timeline.Event {
		return timeline.Event{At: at.Add(after), Type: of, WorkloadUID: "w", Ran: timeline.Unknown, PreemptionCount: count}
	}
	submitted := event(0, timeline.Submitted, 0)
	for want, events := range map[string][]timeline.Event{
		"Preempted Admitted Submitted":               {submitted, event(0, timeline.Admitted, 0), event(0, timeline.Preempted, 1)},
		"Admitted Preempted Admitted Submitted":      {submitted, event(0, timeline.Admitted, 0), event(time.Second, timeline.Preempted, 1), event(time.Second, timeline.Admitted, 0)},
		"Lost Admitted Preempted Admitted Submitted": {submitted, event(0, timeline.Admitted, 0), event(time.Second, timeline.Preempted, 1), event(2*time.Second, timeline.Admitted, 0), event(2*time.Second, timeline.Evicted, 0)},
		"Admitted Preempted Submitted":               {submitted, event(time.Second, timeline.Preempted, 2), event(time.Second, timeline.Admitted, 0)}, // earlier ones are unknown
	} {
		d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "Job", State: tasks.Running, Submitted: at}, Team: "vision"}}}
		d.MoreDetail = func(d *queries.Detail) { d.Timeline = events }
		_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train")
		var got []string
		for _, title := range page.Find("#task-timeline li > b").EachIter() {
			got = append(got, strings.Fields(title.Text())[0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the newest first: got %v, want %s", got, want)
		}
	}
}

// Events contain text of other components: it is escaped or left out.
func TestTaskEvents(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "Job", State: tasks.Running}}}}
	d.NoticeList = []queries.Notice{{At: time.Now(), Warning: true, About: "Job", Reason: "<b>Failed", Text: `<script>alert(1)</script>`, Count: 3}}
	address := handlerstest.Serve(t, d) + "/tasks/ns/job/train"
	_, page := handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	if text := page.Find("#task-events").Text(); !strings.Contains(text, "<script>alert(1)</script>") || !strings.Contains(text, "<b>Failed") || !strings.Contains(text, "3 times") {
		t.Errorf("the events say %q", text)
	}
	for kind, want := range map[governance.Kind]string{governance.Forbidden: "You cannot see", governance.Unavailable: "cannot be read now"} {
		d.NoticesError = &governance.Error{Kind: kind}
		if _, page := handlerstest.Get(t, address); !strings.Contains(page.Find("#task-events").Text(), want) {
			t.Errorf("after %v the events say %q", kind, page.Find("#task-events").Text())
		}
	}
	d.NoticeList, d.NoticesError = nil, nil
	if _, page := handlerstest.Get(t, address); !strings.Contains(page.Find("#task-events").Text(), "No events.") {
		t.Error("nothing is said of no events")
	}
}

// A finished task says how long it waited and ran, and a Job of several completions how many
// succeeded, on its page and in the list.
func TestFinishedTask(t *testing.T) {
	task := &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "Job", State: tasks.Succeeded, LastWait: 90 * time.Second, RanBefore: time.Hour, Completed: tasks.Completions{Done: 4, Of: 6}}
	address := handlerstest.Serve(t, &handlerstest.Backend{Items: []queries.Item{{Task: task, Team: "vision"}}})
	for path, want := range map[string]string{"/tasks/ns/job/train": "4 of 6 completed · waited 1 m 30 s · ran 1 h 00 m", "/tasks?tab=finished": "4 of 6 completed"} {
		_, page := handlerstest.Get(t, address+path)
		if got := handlerstest.Text(page.Find("#task, #tasks-table")); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q: %s", path, want, got)
		}
	}
}
