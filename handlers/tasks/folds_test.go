package tasks_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// loopSteps returns the history of a task that another one preempted that often,
// every 730 ms: one event per second.
func loopSteps(preemptions int, by history.TaskRef) (steps []history.Event) {
	began := handlerstest.Noon.Add(time.Hour)
	for n := range preemptions {
		at := began.Add(time.Duration(n) * 730 * time.Millisecond).Truncate(time.Second)
		nth := int32(n) + 1
		if last := len(steps) - 1; last >= 0 && steps[last].At.Equal(at) {
			steps[last].LastPreemption = nth
			continue
		}
		if n > 0 {
			steps = append(steps, history.Event{WorkloadUID: "w1", At: at, Type: "Admitted", Ran: -1})
		}
		steps = append(steps, history.Event{WorkloadUID: "w1", At: at, Type: "Preempted", Reason: "InClusterQueue", Preemptor: by, FirstPreemption: nth, LastPreemption: nth})
	}
	steps[0].Ran = 50 * time.Minute
	return append([]history.Event{{WorkloadUID: "w1", At: handlerstest.Noon.Add(10 * time.Minute), Type: "Admitted", Ran: -1}}, steps...)
}

// Repeated preemptions are one line, with Kueue's count.
func TestRepeatedPreemptionsAreOneLine(t *testing.T) {
	other := &tasks.Task{Name: "other", Namespace: "ns", Kind: "Job", UID: "p"}
	preempted := func(seconds int, more ...func(*timeline.Event)) timeline.Event {
		e := timeline.Event{WorkloadUID: "w1", At: handlerstest.Noon.Add(time.Hour + time.Duration(seconds)*time.Second), Type: timeline.Preempted, Reason: "InClusterQueue", Preemptor: other, PreemptorUID: "p", Ran: time.Second}
		for _, change := range more {
			change(&e)
		}
		return e
	}
	nth := func(n int32) func(*timeline.Event) { return func(e *timeline.Event) { e.PreemptionCount = n } }
	step := func(seconds int, what timeline.EventType, more ...func(*timeline.Event)) timeline.Event {
		return preempted(seconds, append([]func(*timeline.Event){func(e *timeline.Event) { e.Type, e.Preemptor, e.PreemptorUID, e.Reason, e.Ran = what, nil, "", "", -1 }}, more...)...)
	}
	deactivated := func(e *timeline.Event) { e.Reason, e.Message = "Deactivated", "The workload is deactivated" }
	party := history.TaskRef{Namespace: "ns", Kind: "Job", Name: "other", UID: "p", Team: "vision"}
	hidden := history.TaskRef{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "p", Team: "secret-team"}
	cases := map[string]struct {
		state    tasks.State // Pending where it is empty
		timeline []timeline.Event
		steps    []history.Event
		want     []string // the lines of losses and of the guard, newest first
		lines    int
	}{
		"one in memory, with Kueue's count": {
			timeline: []timeline.Event{preempted(0, nth(1)), step(0, timeline.Requeued), step(1, timeline.Admitted), preempted(46, nth(63), func(e *timeline.Event) { e.Omitted, e.OmittedRan = 40, 30*time.Second })},
			want:     []string{"Preempted 63 times in 46 s for other|a task of a higher class in its own team; it had run for 32 s in all"}, lines: 1,
		},
		"three within a second": {
			timeline: []timeline.Event{preempted(0, nth(4)), preempted(0, nth(5)), preempted(0, nth(6))},
			want:     []string{"Preempted 3 times within a second for other"}, lines: 1,
		},
		"where Kueue does not count": {
			timeline: []timeline.Event{preempted(0), preempted(20), preempted(40), preempted(60)},
			want:     []string{"Preempted 4 times in 1 m 00 s for other"}, lines: 1,
		},
		"two": {
			timeline: []timeline.Event{preempted(0, nth(1)), step(10, timeline.Admitted), preempted(20, nth(2))},
			want:     []string{"Preempted by other", "Preempted by other"}, lines: 3,
		},
		"more than a minute apart": {
			timeline: []timeline.Event{preempted(0, nth(1)), preempted(61, nth(2)), preempted(122, nth(3))},
			want:     []string{"Preempted by other", "Preempted by other", "Preempted by other"}, lines: 3,
		},
		"for different tasks": {
			timeline: []timeline.Event{preempted(0), preempted(1, func(e *timeline.Event) { e.Preemptor, e.PreemptorUID = nil, "q" }), preempted(2), preempted(3, func(e *timeline.Event) { e.Preemptor, e.PreemptorUID = nil, "q" })},
			want:     []string{"Preempted by a task that was deleted or that you cannot see", "Preempted by other", "Preempted by a task that was deleted or that you cannot see", "Preempted by other"}, lines: 4,
		},
		"with an eviction in between": {
			timeline: []timeline.Event{preempted(0), preempted(1), step(2, timeline.Evicted), preempted(3), preempted(4)},
			want:     []string{"Preempted by other", "Preempted by other", "Lost its quota", "Preempted by other", "Preempted by other"}, lines: 5,
		},
		"in history": {
			steps: loopSteps(63, party), timeline: []timeline.Event{step(50, timeline.Admitted)},
			want: []string{"Preempted 63 times in 45 s for other|a task of a higher class in its own team; it had run for 50 m 00 s in all"}, lines: 3,
		},
		"in history and in memory, while it goes on": {
			steps: loopSteps(60, party), timeline: []timeline.Event{preempted(44, nth(61)), preempted(45, nth(62)), preempted(45, nth(63))},
			want: []string{"Preempted 63 times in 45 s for other"}, lines: 2,
		},
		"of a team that is not for the reader": {
			steps: loopSteps(63, hidden), timeline: []timeline.Event{step(50, timeline.Admitted)},
			want: []string{"Preempted 63 times in 45 s for another team"}, lines: 3,
		},
		"held by the guard": {
			timeline: []timeline.Event{
				preempted(0, nth(1)), step(1, timeline.Admitted), preempted(1, nth(2)), step(2, timeline.LoopDetected, func(e *timeline.Event) { e.Preemptor, e.PreemptorUID = other, "p" }),
				step(2, timeline.Admitted), preempted(3, nth(3)), step(3, timeline.Held, func(e *timeline.Event) { e.PreemptorUID = "secret" }), step(3, timeline.Evicted, deactivated),
				step(60, timeline.Released), step(90, timeline.Evicted, deactivated),
			},
			want: []string{"Stopped|The workload is deactivated", "Released by the loop guard", "Held by the loop guard for another team", "Preempted 3 times in 3 s for other", "Preemption loop with other"}, lines: 5,
		},
		"admitted in the second of the last preemption, and it runs": {
			state:    tasks.Running,
			timeline: []timeline.Event{preempted(0), preempted(1), step(2, timeline.Admitted), preempted(2), step(2, timeline.Admitted)},
			want:     []string{"Preempted 3 times in 2 s for other"}, lines: 2,
		},
		"admitted in the second of a preemption that is followed by another": {
			timeline: []timeline.Event{preempted(0), preempted(1), step(2, timeline.Admitted), preempted(2), step(300, timeline.Admitted), preempted(400)},
			want:     []string{"Preempted by other", "Preempted 3 times in 2 s for other"}, lines: 3,
		},
		"deactivated by a user": {
			timeline: []timeline.Event{preempted(0), step(0, timeline.Evicted, deactivated)},
			want:     []string{"Stopped|The workload is deactivated", "Preempted by other"}, lines: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			evictions := int32(0)
			for _, e := range tc.timeline {
				if e.Type.Lost() {
					evictions += 1 + e.Omitted
				}
			}
			d := &handlerstest.Backend{UserScope: &handlerstest.OwnScope, Items: []queries.Item{{Task: &tasks.Task{UID: "u1", Name: "train", Namespace: "ns", Kind: "Job", State: cmp.Or(tc.state, tasks.Pending), Submitted: handlerstest.Noon}, Team: "vision"}}}
			d.MoreDetail = func(detail *queries.Detail) {
				detail.Timeline = tc.timeline
				if tc.steps != nil {
					detail.Omitted = 63 - evictions
				}
			}
			if tc.steps != nil {
				p := handlerstest.NewHistory()
				p.EventsOf["u1"] = tc.steps
				d.Past = p
			}
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train")
			htmlcheck.Page(t, page)
			lines := page.Find("#task-timeline li")
			var shown []string
			for i := range lines.Length() {
				text := strings.Join(strings.Fields(lines.Eq(i).Text()), " ")
				if lines.Eq(i).Is(".timeline-pre, .timeline-bad") || strings.HasPrefix(text, "Released") {
					shown = append(shown, text)
				}
			}
			if len(shown) != len(tc.want) || lines.Length() != tc.lines {
				t.Fatalf("%d lines, of them %q; want %d, of them %q", lines.Length(), shown, tc.lines, tc.want)
			}
			for i, want := range tc.want {
				begin, rest, _ := strings.Cut(want, "|")
				if !strings.HasPrefix(shown[i], begin) || !strings.Contains(shown[i], rest) {
					t.Errorf("line %d is %q, want %q", i, shown[i], want)
				}
				times := page.Find("#task-timeline li").FilterFunction(func(_ int, s *goquery.Selection) bool {
					return strings.Join(strings.Fields(s.Text()), " ") == shown[i]
				}).Find("time")
				if folded := strings.Contains(want, " times "); folded != (times.Length() == 2) || folded && times.Eq(0).AttrOr("datetime", "") != handlerstest.Noon.Add(time.Hour).Format(time.RFC3339) {
					t.Errorf("the times of %q are %s", shown[i], times.Text())
				}
			}
			if text := page.Find("#task-timeline").Text(); strings.Contains(text, "more, before") || strings.Contains(text, "secret") {
				t.Errorf("got %q", text)
			}
		})
	}
}

// The page of a past task folds preemptions like that of an active one, and counts
// all waits.
func TestPastTaskFoldsPreemptions(t *testing.T) {
	p := handlerstest.NewHistory()
	p.EventsOf["u1"] = loopSteps(63, history.TaskRef{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "p", Team: "secret-team"})
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{Past: p, UserScope: &handlerstest.OwnScope})+"/tasks/ns/job/train?uid=u1")
	htmlcheck.Page(t, page)
	line := page.Find("#task-timeline li.timeline-pre")
	if text := strings.Join(strings.Fields(line.Text()), " "); line.Length() != 1 || !strings.HasPrefix(text, "Preempted 63 times in 45 s for another team") || line.Find("time").Length() != 2 {
		t.Errorf("got %q", text)
	}
	if strings.Contains(page.Text(), "secret") {
		t.Error("another team's task is named")
	}
}

// The table by priority class and its file show how many runs the averages leave
// out.
func TestAveragesLeaveOutLoopRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		remembered []int
		recorded   []int64
		want       string
	}{
		"none":              {[]int{0}, nil, ""},
		"one":               {[]int{1}, nil, "Averages leave out 1 run that a preemption loop ended."},
		"of several":        {[]int{60, 1}, nil, "Averages leave out 61 runs that preemption loops ended."},
		"recorded":          {[]int{7, 7}, []int64{1500, 2}, "Averages leave out 1,502 runs that preemption loops ended."},
		"none are recorded": {[]int{7, 7}, []int64{0, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			total := 0
			for i, n := range tc.remembered {
				d.List.ByPriorityClass = append(d.List.ByPriorityClass, index.PriorityClassRow{PriorityClass: fmt.Sprint("c", i, "-priority"), Running: 1, LoopRuns: n})
				total += n
			}
			if tc.recorded != nil {
				p := handlerstest.NewHistory()
				p.Classes = map[string][]history.ClassStats{}
				total = 0
				for i, n := range tc.recorded {
					p.Classes["vision"] = append(p.Classes["vision"], history.ClassStats{Class: fmt.Sprint("c", i, "-priority"), LoopRuns: n})
					total += int(n)
				}
				d.Past = p
			}
			address := handlerstest.Serve(t, d)
			for _, path := range []string{"/tasks", "/"} {
				_, page := handlerstest.Get(t, address+path)
				htmlcheck.Page(t, page)
				if page.Find("#classes-table tbody tr").Length() != len(tc.remembered) {
					t.Fatalf("%s has no table by class", path)
				}
				if note := page.Find("#classes #classes-left"); note.Text() != tc.want || note.Length() != min(1, len(tc.want)) {
					t.Errorf("%s shows %q, want %q", path, note.Text(), tc.want)
				}
			}
			lines := strings.Split(strings.TrimSpace(handlerstest.Download(t, address+"/classes.csv")), "\n")
			column := slices.Index(strings.Split(lines[0], ","), "runs left out")
			sum := 0
			for _, line := range lines[1:] {
				var n int
				if _, err := fmt.Sscan(strings.Split(line, ",")[max(0, column)], &n); err != nil {
					t.Fatalf("column %d of %q: %v", column, line, err)
				}
				sum += n
			}
			if sum != total {
				t.Errorf("the file has %d runs, want %d", sum, total)
			}
		})
	}
}
