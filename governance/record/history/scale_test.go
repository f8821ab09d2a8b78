package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scaleEvent returns an event of a task whose pods have eight GPUs.
func scaleEvent(task string, number int64, at time.Time, from, to, minimum int32) ScaleEvent {
	return ScaleEvent{Namespace: "ns-vision", Name: "train", TaskUID: task, Team: "vision", Number: number, At: at, From: from, To: to, Minimum: minimum,
		Cause: "IdleCompute", Accelerator: "nvidia.com/gpu", PerPod: 8}
}

// testScaleEvents records the events of tasks again and again, in overlapping parts, by
// two consoles in turn: each is stored once, as it was recorded first.
func testScaleEvents(t *testing.T, url string) {
	ctx := t.Context()
	at := start.Truncate(time.Second)
	var want []ScaleEvent
	for n := range int64(300) { // more than one statement
		want = append(want, scaleEvent("e1", n+1, at.Add(time.Duration(n)*time.Minute), int32(n%4), int32((n+1)%4), 1))
	}
	want[0].By, want[1].Node = "ada@example.com\x00", "gpu-1"
	want[2].WorkloadUID, want[2].For = "w9", TaskRef{Namespace: "ns-nlp", Kind: "Job", Name: "tune", UID: "j9", Team: "nlp"}
	want[3].WorkloadUID = "w10"
	want[4].Idle = &IdleSources{Own: true, Unallocated: true, Lenders: []TeamRef{{"ns-nlp", "nlp"}}}
	want[5].Changes = []PolicyChange{{Field: "maxReplicas", From: "8", To: "16"}, {Field: "replicaIncrementStep"}}
	r := rand.New(rand.NewPCG(7, 7))
	recorded := map[int64]int{}
	record := func(s *Store, events []ScaleEvent) {
		t.Helper()
		for _, e := range must[[]ScaleEvent](t)(s.RecordScaleEvents(ctx, events)) {
			recorded[e.Number]++
		}
	}
	s := open(t, url, Options{})
	for range 40 {
		if r.IntN(4) == 0 {
			s = open(t, url, Options{})
			must[time.Time](t)(s.BeginTerm(ctx))
		}
		from := r.IntN(len(want))
		record(s, slices.Concat(want[from:min(len(want), from+50)], want[from:from+1])) // one of them twice
	}
	record(s, want)
	later := want[2]
	later.For, later.Team = TaskRef{}, "renamed"
	record(s, []ScaleEvent{later})
	record(s, []ScaleEvent{scaleEvent("e2", 1, at, 0, 4, 4)})
	delete(recorded, 1) // of two tasks
	for number, times := range recorded {
		if times != 1 {
			t.Errorf("event %d was added %d times, want once", number, times)
		}
	}
	want[0].By = "ada@example.com"
	if diff := cmp.Diff(want, must[[]ScaleEvent](t)(s.ScaleEvents(ctx, "e1", 1000))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[290:], must[[]ScaleEvent](t)(s.ScaleEvents(ctx, "e1", 10))); diff != "" {
		t.Errorf("latest events (-want +got):\n%s", diff)
	}
	if found := must[[]ScaleEvent](t)(s.ScaleEvents(ctx, "e3", 10)); len(found) != 0 {
		t.Errorf("events of another task: %v", found)
	}
}

// testForgetScaleEvents checks that events are deleted with their task, however old they
// are, and by their time if their task was never recorded.
func testForgetScaleEvents(t *testing.T, url string) {
	ctx := t.Context()
	const days = 24 * time.Hour
	s := open(t, url, Options{Retention: 30 * days})
	now := start.Add(100 * days)
	ended, running := aTask("ended"), aTask("running")
	ended.SubmittedAt, ended.FinishedAt = start, start.Add(20*days)
	running.SubmittedAt = start
	ok(t, s.RecordTasks(ctx, []Record{{Task: ended}, {Task: running}}))
	for _, uid := range []string{"ended", "running", "unknown"} {
		must[[]ScaleEvent](t)(s.RecordScaleEvents(ctx, []ScaleEvent{scaleEvent(uid, 1, start, 0, 1, 1), scaleEvent(uid, 2, now.Add(-days), 1, 2, 1)}))
	}
	ok(t, s.Forget(ctx, now))
	for uid, want := range map[string]int{"ended": 0, "running": 2, "unknown": 1} {
		if found := must[[]ScaleEvent](t)(s.ScaleEvents(ctx, uid, 10)); len(found) != want {
			t.Errorf("%d events of the task %q remain, want %d", len(found), uid, want)
		}
	}
}

func TestGainOf(t *testing.T) {
	at := func(seconds int) time.Time {
		return start.Truncate(time.Second).Add(time.Duration(seconds) * time.Second)
	}
	event := func(number int64, seconds int, to, minimum int32) ScaleEvent {
		return scaleEvent("e", number, at(seconds), 0, to, minimum)
	}
	for name, tc := range map[string]struct {
		events      []ScaleEvent
		until       int
		wantPods    int64 // pod-seconds
		wantSteps   []int64
		wantMissing []Missing
	}{
		"no events":                       {until: 100},
		"only its minimum":                {events: []ScaleEvent{event(1, 0, 4, 4)}, until: 3600, wantSteps: []int64{0}},
		"the last size applies until now": {events: []ScaleEvent{event(1, 0, 4, 4), event(2, 10, 12, 4)}, until: 110, wantPods: 800, wantSteps: []int64{0, 800}},
		"shrinks, is stopped and starts again": {
			events: []ScaleEvent{event(1, 0, 1, 1), event(2, 10, 4, 1), event(3, 30, 2, 1), event(4, 40, 0, 0), event(5, 100, 1, 1), event(6, 110, 2, 1)}, until: 111,
			wantPods: 60 + 10 + 1, wantSteps: []int64{0, 60, 10, 0, 0, 1},
		},
		"several changes in one second": {events: []ScaleEvent{event(1, 0, 1, 1), event(2, 0, 3, 1), event(3, 0, 2, 1)}, until: 10, wantPods: 10, wantSteps: []int64{0, 0, 10}},
		"events in any order, twice":    {events: []ScaleEvent{event(2, 10, 3, 1), event(1, 0, 1, 1), event(2, 10, 3, 1)}, until: 20, wantPods: 20, wantSteps: []int64{0, 20}},
		"missing changes are not guessed": {
			events: []ScaleEvent{event(3, 0, 3, 1), event(4, 10, 5, 1), event(7, 1000, 2, 1)}, until: 1010,
			wantPods: 20 + 10, wantSteps: []int64{20, 0, 10}, wantMissing: []Missing{{1, 2}, {5, 6}},
		},
		"a clock that went back": {events: []ScaleEvent{event(1, 0, 4, 1)}, until: -50, wantSteps: []int64{0}},
		"large numbers":          {events: []ScaleEvent{event(1, 0, 10_000, 1)}, until: 400 * 86_400, wantPods: 9_999 * 400 * 86_400, wantSteps: []int64{9_999 * 400 * 86_400}},
	} {
		t.Run(name, func(t *testing.T) {
			g := GainOf(tc.events, at(tc.until))
			var steps []int64
			for _, step := range g.Steps {
				steps = append(steps, step.PodSeconds)
			}
			if diff := cmp.Diff(tc.wantSteps, steps); diff != "" {
				t.Errorf("pod-seconds (-want +got):\n%s", diff)
			}
			if g.PodSeconds != tc.wantPods || g.AcceleratorSeconds != 8*tc.wantPods {
				t.Errorf("got %d pod-seconds and %d accelerator-seconds, want %d and %d", g.PodSeconds, g.AcceleratorSeconds, tc.wantPods, 8*tc.wantPods)
			}
			if diff := cmp.Diff(tc.wantMissing, g.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// The sum over a range is the sum over its parts, second by second.
func TestGainAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 500 {
		var events []ScaleEvent
		begin := start.Truncate(time.Second)
		at, size := begin, int32(0)
		for n := range int64(1 + r.IntN(8)) {
			to, minimum := r.Int32N(9), int32(2)
			if to < minimum {
				to, minimum = 0, 0
			}
			events = append(events, scaleEvent("e", n+1, at, size, to, minimum))
			size, at = to, at.Add(time.Duration(r.IntN(20))*time.Second)
		}
		var want int64
		for second := begin; second.Before(at); second = second.Add(time.Second) {
			var now ScaleEvent
			for _, e := range events {
				if !e.At.After(second) {
					now = e
				}
			}
			want += int64(now.To - now.Minimum)
		}
		if got := GainOf(events, at).PodSeconds; got != want {
			t.Fatalf("got %d pod-seconds, want %d: %s", got, want, fmt.Sprint(events))
		}
	}
}
