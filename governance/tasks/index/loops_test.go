package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// stretch is one wait or run of the test, in whole seconds.
type stretch struct {
	class        string
	run          bool
	began, ended time.Time
	seen         time.Time // when the index received its end
	looped       bool
}

// victim is a task that Kueue preempts. Its methods write what Kueue would.
type victim struct {
	x              *Index
	c              *taskstest.Clock
	name, class    string
	created        time.Time
	admitted       time.Time // zero while it waits
	waits          time.Time
	count          int32 // preemptions
	seconds        int32 // of its ended runs
	past           []stretch
	preemptionTime []time.Time
}

func newVictim(x *Index, c *taskstest.Clock, name, class string) *victim {
	v := &victim{x: x, c: c, name: name, class: class, created: c.At.Truncate(time.Second)}
	v.waits = v.created
	v.set(taskstest.Pending(v.created)...)
	return v
}

func (v *victim) part() types.UID { return types.UID("w-ns" + v.name) }

func (v *victim) set(conditions ...metav1.Condition) {
	w := taskstest.Workload("ns", v.name, v.class, 0, v.created, conditions...)
	if v.count > 0 {
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "PodsReadyTimeout", Count: 1}, {Reason: "Preempted", Count: v.count}}}
		seconds := v.seconds
		w.Status.AccumulatedPastExecutionTimeSeconds = &seconds
	}
	v.x.SetWorkload(w, false)
}

// admit has Kueue admit the task now.
func (v *victim) admit() {
	at := v.c.At.Truncate(time.Second)
	v.past = append(v.past, stretch{class: v.class, began: v.waits, ended: at, seen: v.c.At})
	v.admitted = at
	v.set(v.running()...)
}

func (v *victim) running() []metav1.Condition {
	conditions := taskstest.Admitted(v.admitted)
	if v.count > 0 {
		evicted := taskstest.Condition("Evicted", false, "QuotaReserved", v.admitted)
		evicted.Message = "Previously: Preempted to accommodate a workload"
		conditions = append(conditions, evicted, taskstest.Condition("Preempted", false, "QuotaReserved", v.admitted), taskstest.Condition("Requeued", false, "Admitted", v.admitted))
	}
	return conditions
}

// preempt has Kueue preempt the task now, in the three writes that Kueue does.
func (v *victim) preempt(by string) {
	at := v.c.At.Truncate(time.Second)
	v.count++
	lost := taskstest.PreemptedBy(by, at)[2:]
	v.set(append(taskstest.Admitted(v.admitted), lost...)...)
	v.seconds += int32(at.Sub(v.admitted) / time.Second)
	v.past = append(v.past, stretch{class: v.class, run: true, began: v.admitted, ended: at, seen: v.c.At})
	v.admitted, v.waits = time.Time{}, at
	v.preemptionTime = append(v.preemptionTime, at)
	v.set(append(append(taskstest.Pending(at), taskstest.Condition("Admitted", false, "NoReservation", at)), lost...)...)
	v.set(append(append(taskstest.Pending(at), taskstest.Condition("Admitted", false, "NoReservation", at), taskstest.Condition("Requeued", true, "Preempted", at)), lost...)...)
}

// after moves the clock forward by d.
func (v *victim) after(d time.Duration) *victim {
	v.c.At = v.c.At.Add(d)
	return v
}

func (v *victim) task() *tasks.Task { return v.x.Find("ns", "Job", v.name, "") }

// looped returns a task that ran for an hour, and then was in a loop of this many
// preemptions, 730 ms from one to the next.
func looped(x *Index, c *taskstest.Clock, preemptions int) *victim {
	v := newVictim(x, c, "victim", "low")
	v.after(time.Minute).admit()
	v.after(time.Hour)
	for n := range preemptions {
		if n > 0 {
			v.after(330 * time.Millisecond).admit()
			v.after(400 * time.Millisecond)
		}
		v.preempt("abc-1")
	}
	return v
}

// The events of a loop displace no others, and Kueue's count is kept although
// several preemptions fall into one second.
func TestLoopIsFoldedInMemory(t *testing.T) {
	x, c := newTestIndex()
	other := taskstest.Workload("ns", "other", "", 9, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	other.UID = "abc-1"
	x.SetWorkload(other, false)
	v := newVictim(x, c, "victim", "low")
	v.after(time.Minute).admit()
	v.after(time.Minute).preempt("abc-2") // before the loop
	v.after(time.Minute).admit()
	v.after(time.Hour)
	for n := range 64 {
		if n > 0 {
			v.after(330 * time.Millisecond).admit()
			v.after(400 * time.Millisecond)
		}
		v.preempt("abc-1")
	}
	for _, state := range []string{"while it waits", "admitted again"} {
		events := x.Timeline(v.task())
		var preempted []timeline.Event
		count, ran := int32(0), time.Duration(0)
		for _, e := range events {
			if e.Type == timeline.Preempted {
				preempted = append(preempted, e)
				count += 1 + e.Omitted
				ran += max(0, e.Ran) + e.OmittedRan
			}
		}
		if n := x.life.pasts[tasks.Key{Namespace: "ns", UID: v.task().UID}].Len(); n > 20 || n < 10 {
			t.Errorf("%s: got %d events, want 10 to 20", state, n)
		}
		if events[1].Type != timeline.Admitted || preempted[0].PreemptorUID != "abc-2" || preempted[0].PreemptionCount != 1 || preempted[1].Repeats(&preempted[0]) {
			t.Errorf("%s: the events before the loop are %+v", state, events[:3])
		}
		if preempted[1].PreemptionCount != 2 || preempted[len(preempted)-1].PreemptionCount != 65 || count != 65 || preempted[1].PreemptorUID != "j-nsother" {
			t.Errorf("%s: got %d preemptions, want 65, from %+v to %+v", state, count, preempted[1], preempted[len(preempted)-1])
		}
		if want := time.Duration(v.seconds) * time.Second; ran != want || want < time.Hour {
			t.Errorf("%s: the task ran for %s, want %s", state, ran, want)
		}
		for i := 2; i < len(preempted); i++ {
			if !preempted[i].Repeats(&preempted[i-1]) {
				t.Errorf("%s: %+v does not repeat %+v", state, preempted[i], preempted[i-1])
			}
		}
		v.after(time.Second).admit()
	}
}

func TestRepeats(t *testing.T) {
	at := func(seconds float64, more ...func(*timeline.Event)) timeline.Event {
		e := timeline.Event{At: taskstest.Start.Add(time.Duration(seconds * float64(time.Second))), Type: timeline.Preempted, WorkloadUID: "a", PreemptorUID: "p"}
		for _, change := range more {
			change(&e)
		}
		return e
	}
	cases := map[string]struct {
		first, second timeline.Event
		want          bool
	}{
		"in one second":                    {at(0.1), at(0.9), true},
		"a minute apart":                   {at(0), at(60.9), true},
		"more than a minute apart":         {at(0), at(61), false},
		"later, with omitted ones between": {at(0), at(600, func(e *timeline.Event) { e.Omitted = 8 }), true},
		"for another task":                 {at(0), at(1, func(e *timeline.Event) { e.PreemptorUID = "q" }), false},
		"of another Workload":              {at(0), at(1, func(e *timeline.Event) { e.WorkloadUID = "b" }), false},
		"evicted for another reason":       {at(0), at(1, func(e *timeline.Event) { e.Type = timeline.Evicted }), false},
		"at an unknown time before":        {at(0, func(e *timeline.Event) { e.AtOrBefore = true }), at(1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.second.Repeats(&tc.first); got != tc.want {
				t.Errorf("Repeats is %v, want %v", got, tc.want)
			}
		})
	}
}

// However late a loop is recorded, averages and longest times count only the waits
// and runs outside of it.
func TestAveragesExcludeLoops(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 9))
		x, c := newTestIndex()
		var all []*victim
		var loops []timeline.Loop
		for n := range 12 {
			v := newVictim(x, c, fmt.Sprint("t", n), []string{"a", "b"}[random.IntN(2)])
			all = append(all, v)
			v.after(time.Duration(random.IntN(600)) * time.Second).admit()
			v.after(time.Duration(1+random.IntN(60)) * time.Second)
			isLoop := random.IntN(3) > 0
			l := timeline.Loop{Namespace: "ns", WorkloadUID: v.part()}
			for k := range 3 + random.IntN(40) {
				if k > 0 {
					v.after(time.Duration(random.IntN(4000)) * time.Millisecond).admit()
					v.after(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
				v.preempt("p")
				if isLoop && k >= 2 && random.IntN(3) == 0 {
					l.Since, l.Last = v.preemptionTime[0], v.preemptionTime[len(v.preemptionTime)-1]
					x.recordLoop(l)
				}
			}
			if !l.Last.IsZero() {
				x.recordLoop(l)
				x.recordLoop(l)
				loops = append(loops, l)
			}
			v.after(time.Duration(random.IntN(40)) * time.Minute).admit()
			for i := range v.past {
				s := &v.past[i]
				s.looped = !l.Last.IsZero() && !s.began.Before(l.Since) && !s.ended.After(l.Last)
			}
		}
		if len(loops) == 0 {
			t.Fatal("the seed has no loop")
		}
		for range 3 {
			checkAverages(t, seed, x, c, all)
			c.At = c.At.Add(5 * time.Hour)
		}
		for _, v := range all {
			for _, l := range x.loopsOf(v.task()) {
				want := int32(0)
				for _, s := range v.past {
					if s.run && s.looped {
						want++
					}
				}
				if l.Runs != want {
					t.Errorf("seed %d: the loop of %s ended %d runs, want %d", seed, v.name, l.Runs, want)
				}
			}
		}
	}
}

func checkAverages(t *testing.T, seed uint64, x *Index, c *taskstest.Clock, all []*victim) {
	t.Helper()
	for _, within := range []time.Duration{0, time.Hour, 6 * time.Hour} {
		rows, since := x.Classes(nil, within)
		for _, row := range rows {
			var waited, ran durations
			longest := time.Duration(0)
			for _, v := range all {
				if v.class == row.PriorityClass {
					longest = max(longest, c.At.Sub(v.admitted))
				}
				for _, s := range v.past {
					if s.class != row.PriorityClass || s.seen.Before(since) {
						continue
					}
					sum, took := &waited, s.ended.Sub(s.began)
					if s.run {
						sum = &ran
					}
					if s.looped {
						sum.loops++
						continue
					}
					sum.add(durations{count: 1, sum: took, longest: took})
				}
			}
			want := PriorityClassRow{Waits: waited.count, AverageWait: waited.average(), LongestWait: waited.longest, Runs: ran.count, AverageRun: ran.average(), LongestRun: max(ran.longest, longest), LoopRuns: ran.loops}
			got := PriorityClassRow{Waits: row.Waits, AverageWait: row.AverageWait, LongestWait: row.LongestWait, Runs: row.Runs, AverageRun: row.AverageRun, LongestRun: row.LongestRun, LoopRuns: row.LoopRuns}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, priority class %s within %s (-want +got):\n%s", seed, row.PriorityClass, within, diff)
			}
		}
	}
}

// A loop is recorded with Kueue's exact count, and with its spans, at most one of
// each second.
func TestLoopIsRecorded(t *testing.T) {
	x, c := newTestIndex()
	x.Record()
	v := looped(x, c, 3)
	since := v.preemptionTime[0]
	spans := map[timeline.Span]bool{}
	var last timeline.Snapshot
	take := func() {
		for _, seen := range x.TakeChanged(10) {
			waits, runs := seen.Spans()
			for _, run := range append(waits, runs...) {
				spans[run] = true
			}
			last = seen
		}
	}
	take()
	for range 60 {
		v.after(330 * time.Millisecond).admit()
		v.after(400 * time.Millisecond).preempt("abc-1")
		x.RecordLoop(timeline.Loop{Namespace: "ns", WorkloadUID: v.part(), Since: since, Last: v.preemptionTime[len(v.preemptionTime)-1]})
		take()
	}
	end := v.preemptionTime[len(v.preemptionTime)-1]
	if diff := cmp.Diff([]timeline.Loop{{Namespace: "ns", WorkloadUID: v.part(), Since: since, Last: end, Runs: 62}}, last.Loops); diff != "" {
		t.Error(diff)
	}
	first := timeline.Span{WorkloadUID: string(v.part()), Began: taskstest.Start.Add(time.Minute), Ended: since}
	if !spans[first] {
		t.Errorf("the run that the first preemption ended is not among %v", spans)
	}
	outside := 0
	for span := range spans {
		if !x.inLoop(v.part(), span.Began, span.Ended) {
			outside++
		}
	}
	if outside != 1 || len(spans) < 40 { // the first run; the index has not seen the start of the first wait
		t.Errorf("%d of %d spans are outside of the loop, want 1", outside, len(spans))
	}
	x.DeleteWorkload(taskstest.Workload("ns", "victim", "low", 0, v.created))
	deleted := x.TakeChanged(10)
	if len(deleted) != 1 || deleted[0].DeletedAt.IsZero() || len(deleted[0].Loops) != 1 {
		t.Errorf("after the deletion the changed tasks are %+v", deleted)
	}
	if len(x.loops) != 0 {
		t.Errorf("the index keeps loops of a deleted task: %v", x.loops)
	}
	rows, _ := x.Classes(nil, 0)
	if i := slices.IndexFunc(rows, func(r PriorityClassRow) bool { return r.PriorityClass == "low" }); i < 0 || rows[i].LoopRuns != 62 || rows[i].Runs != 1 || rows[i].AverageRun != time.Hour {
		t.Errorf("after the deletion the priority classes are %+v", rows)
	}
}

// An event of the loop guard is in the timeline once, and marks its task as changed.
func TestRecordEvent(t *testing.T) {
	x, c := newTestIndex()
	notified := 0
	x.notify = func() { notified++ }
	x.Record()
	other := taskstest.Workload("secret-ns", "other", "", 9, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	x.SetWorkload(other, false)
	v := looped(x, c, 3)
	x.TakeChanged(10)
	by := x.Find("secret-ns", "Job", "other", "")
	event := timeline.Event{At: c.At, Type: timeline.Held, Message: "until it starts", Preemptor: by}
	for range 2 {
		x.RecordEvent("ns", v.part(), event)
	}
	x.RecordEvent("secret-ns", v.part(), event)
	x.RecordEvent("ns", "unknown", event)
	x.RecordLoop(timeline.Loop{Namespace: "ns", WorkloadUID: "unknown", Since: c.At, Last: c.At})
	if notified != 1 {
		t.Errorf("pages are notified %d times, want 1", notified)
	}
	taken := x.TakeChanged(10)
	if len(taken) != 1 || taken[0].Name != "victim" {
		t.Fatalf("got the changed tasks %+v, want the victim", taken)
	}
	want := []timeline.Event{{At: event.At, Type: timeline.Held, Message: "until it starts", PreemptorUID: by.UID, WorkloadUID: string(v.part()), Ran: timeline.Unknown, Preemptor: &tasks.Task{Namespace: "secret-ns", Kind: "Job", Name: "other", UID: by.UID}}}
	of := func(events []timeline.Event) (found []timeline.Event) {
		for _, e := range events {
			if e.Type == timeline.Held {
				found = append(found, e)
			}
		}
		return found
	}
	same := cmp.AllowUnexported(tasks.Task{})
	if diff := cmp.Diff(want, of(taken[0].Events), same); diff != "" {
		t.Error(diff)
	}
	x.DeleteWorkload(other)
	want[0].PreemptorDeleted = true
	if diff := cmp.Diff(want, of(x.Timeline(v.task())), same); diff != "" {
		t.Errorf("after the deletion of the preemptor (-want +got):\n%s", diff)
	}
}

// The loop guard may record while pages read and Kueue preempts.
func TestRecordConcurrently(t *testing.T) {
	x := New(time.Now)
	x.Record()
	v := looped(x, &taskstest.Clock{At: taskstest.Start}, 3)
	// First, since other events take the places of old preemptions in the timeline.
	x.RecordLoop(timeline.Loop{Namespace: "ns", WorkloadUID: v.part(), Since: v.preemptionTime[0], Last: v.preemptionTime[len(v.preemptionTime)-1]})
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for k := range 50 {
				at := taskstest.Start.Add(time.Hour + time.Duration(n*50+k)*time.Second)
				x.RecordLoop(timeline.Loop{Namespace: "ns", WorkloadUID: v.part(), Since: v.preemptionTime[0], Last: at})
				x.RecordEvent("ns", v.part(), timeline.Event{At: at, Type: timeline.LoopDetected})
				x.Timeline(x.Find("ns", "Job", "victim", ""))
				x.Classes(nil, 0)
				x.TakeChanged(1)
			}
		})
	}
	group.Wait()
	if loops := x.loopsOf(v.task()); len(loops) != 1 || loops[0].Runs != 2 {
		t.Errorf("got the loops %+v, want one that ended 2 runs", loops)
	}
}
