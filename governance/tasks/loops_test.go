package tasks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// stretch is a wait or a run as the test made it, in whole seconds.
type stretch struct {
	class        string
	run          bool
	began, ended time.Time
	seen         time.Time // when the index was told
	looped       bool
}

// victim is a task that Kueue preempts, with what Kueue writes.
type victim struct {
	x              *Index
	c              *clock
	name, class    string
	created        time.Time
	admitted       time.Time // zero while it waits
	waits          time.Time
	count          int32 // of its preemptions
	seconds        int32 // that it ran
	past           []stretch
	preemptionTime []time.Time
}

func newVictim(x *Index, c *clock, name, class string) *victim {
	v := &victim{x: x, c: c, name: name, class: class, created: c.at.Truncate(time.Second)}
	v.waits = v.created
	v.set(waits(v.created)...)
	return v
}

func (v *victim) part() types.UID { return types.UID("w-ns" + v.name) }

func (v *victim) set(conditions ...metav1.Condition) {
	w := workload("ns", v.name, v.class, 0, v.created, conditions...)
	if v.count > 0 {
		w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "PodsReadyTimeout", Count: 1}, {Reason: "Preempted", Count: v.count}}}
		seconds := v.seconds
		w.Status.AccumulatedPastExecutionTimeSeconds = &seconds
	}
	v.x.set(w, false)
}

// admit has Kueue admit it now.
func (v *victim) admit() {
	at := v.c.at.Truncate(time.Second)
	v.past = append(v.past, stretch{class: v.class, began: v.waits, ended: at, seen: v.c.at})
	v.admitted = at
	v.set(v.running()...)
}

func (v *victim) running() []metav1.Condition {
	conditions := runs(v.admitted)
	if v.count > 0 {
		evicted := condition("Evicted", false, "QuotaReserved", v.admitted)
		evicted.Message = "Previously: Preempted to accommodate a workload"
		conditions = append(conditions, evicted, condition("Preempted", false, "QuotaReserved", v.admitted), condition("Requeued", false, "Admitted", v.admitted))
	}
	return conditions
}

// preempt has Kueue preempt it now, in the steps in which Kueue writes it.
func (v *victim) preempt(by string) {
	at := v.c.at.Truncate(time.Second)
	v.count++
	lost := preemptedBy(by, at)[2:]
	v.set(append(runs(v.admitted), lost...)...)
	v.seconds += int32(at.Sub(v.admitted) / time.Second)
	v.past = append(v.past, stretch{class: v.class, run: true, began: v.admitted, ended: at, seen: v.c.at})
	v.admitted, v.waits = time.Time{}, at
	v.preemptionTime = append(v.preemptionTime, at)
	v.set(append(append(waits(at), condition("Admitted", false, "NoReservation", at)), lost...)...)
	v.set(append(append(waits(at), condition("Admitted", false, "NoReservation", at), condition("Requeued", true, "Preempted", at)), lost...)...)
}

// after moves the clock.
func (v *victim) after(d time.Duration) *victim {
	v.c.at = v.c.at.Add(d)
	return v
}

func (v *victim) task() *Task { return v.x.Find("ns", "Job", v.name, "") }

// looped is a task that ran for an hour, and then was in a loop of so many
// preemptions, 730 ms from one to the next.
func looped(x *Index, c *clock, preemptions int) *victim {
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

// A loop pushes nothing else out of what is remembered, and Kueue's count is kept
// though several preemptions fall into one second.
func TestLoopIsFoldedInMemory(t *testing.T) {
	x, c := newTestIndex()
	other := workload("ns", "other", "", 9, start, waits(start)...)
	other.UID = "abc-1"
	x.set(other, false)
	v := newVictim(x, c, "victim", "low")
	v.after(time.Minute).admit()
	v.after(time.Minute).preempt("abc-2") // for another
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
		var preempted []Event
		count, ran := int32(0), time.Duration(0)
		for _, e := range events {
			if e.Type == WasPreempted {
				preempted = append(preempted, e)
				count += 1 + e.Omitted
				ran += max(0, e.Ran) + e.OmittedRan
			}
		}
		if n := len(x.life.pasts[groupKey{"ns", v.task().UID}].steps); n > pastLength || n < pastLength/2 {
			t.Errorf("%s: %d steps are remembered", state, n)
		}
		if events[1].Type != WasAdmitted || preempted[0].PreemptorUID != "abc-2" || preempted[0].PreemptionCount != 1 || preempted[1].Repeats(&preempted[0]) {
			t.Errorf("%s: what came before the loop is %+v", state, events[:3])
		}
		if preempted[1].PreemptionCount != 2 || preempted[len(preempted)-1].PreemptionCount != 65 || count != 65 || preempted[1].PreemptorUID != "j-nsother" {
			t.Errorf("%s: %d preemptions, from %+v to %+v", state, count, preempted[1], preempted[len(preempted)-1])
		}
		if want := time.Duration(v.seconds) * time.Second; ran != want || want < time.Hour {
			t.Errorf("%s: it ran for %s, want %s", state, ran, want)
		}
		for i := 2; i < len(preempted); i++ {
			if !preempted[i].Repeats(&preempted[i-1]) {
				t.Errorf("%s: %+v does not repeat %+v", state, preempted[i], preempted[i-1])
			}
		}
		l, err := viewer{index: x}.life(t.Context(), v.task())
		if err != nil || l.Omitted != 1 { // the eviction for another reason
			t.Errorf("%s: %d losses are forgotten: %v", state, l.Omitted, err)
		}
		v.after(time.Second).admit()
	}
}

func TestRepeats(t *testing.T) {
	at := func(seconds float64, more ...func(*Event)) Event {
		e := Event{At: start.Add(time.Duration(seconds * float64(time.Second))), Type: WasPreempted, WorkloadUID: "a", PreemptorUID: "p"}
		for _, change := range more {
			change(&e)
		}
		return e
	}
	cases := map[string]struct {
		first, second Event
		want          bool
	}{
		"in one second":                  {at(0.1), at(0.9), true},
		"a minute apart":                 {at(0), at(60.9), true},
		"more than a minute apart":       {at(0), at(61), false},
		"later, with some between":       {at(0), at(600, func(e *Event) { e.Omitted = 8 }), true},
		"for another task":               {at(0), at(1, func(e *Event) { e.PreemptorUID = "q" }), false},
		"of another Workload":            {at(0), at(1, func(e *Event) { e.WorkloadUID = "b" }), false},
		"evicted for another reason":     {at(0), at(1, func(e *Event) { e.Type = WasEvicted }), false},
		"some time before, nobody knows": {at(0, func(e *Event) { e.AtOrBefore = true }), at(1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.second.Repeats(&tc.first); got != tc.want {
				t.Errorf("Repeats is %v, want %v", got, tc.want)
			}
		})
	}
}

// However late a loop is noted, averages and longest times are those of all that
// is not of the loop.
func TestLoopsAreLeftOut(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 9))
		x, c := newTestIndex()
		var all []*victim
		var loops []Loop
		for n := range 12 {
			v := newVictim(x, c, fmt.Sprint("t", n), []string{"a", "b"}[random.IntN(2)])
			all = append(all, v)
			v.after(time.Duration(random.IntN(600)) * time.Second).admit()
			v.after(time.Duration(1+random.IntN(60)) * time.Second)
			isLoop := random.IntN(3) > 0
			l := Loop{Namespace: "ns", WorkloadUID: v.part()}
			for k := range 3 + random.IntN(40) {
				if k > 0 {
					v.after(time.Duration(random.IntN(4000)) * time.Millisecond).admit()
					v.after(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
				v.preempt("p")
				if isLoop && k >= 2 && random.IntN(3) == 0 {
					l.Since, l.Last = v.preemptionTime[0], v.preemptionTime[len(v.preemptionTime)-1]
					x.noteLoop(l)
				}
			}
			if !l.Last.IsZero() {
				x.noteLoop(l)
				x.noteLoop(l)
				loops = append(loops, l)
			}
			v.after(time.Duration(random.IntN(40)) * time.Minute).admit()
			for i := range v.past {
				s := &v.past[i]
				s.looped = !l.Last.IsZero() && !s.began.Before(l.Since) && !s.ended.After(l.Last)
			}
		}
		if len(loops) == 0 {
			t.Fatal("there is no loop")
		}
		for range 3 {
			checkLeftOut(t, seed, x, c, all)
			c.at = c.at.Add(5 * time.Hour)
		}
		for _, v := range all {
			for _, l := range x.loopsOf(v.task()) {
				left := int32(0)
				for _, s := range v.past {
					if s.run && s.looped {
						left++
					}
				}
				if l.Runs != left {
					t.Errorf("seed %d: the loop of %s ended %d runs, want %d", seed, v.name, l.Runs, left)
				}
			}
		}
	}
}

func checkLeftOut(t *testing.T, seed uint64, x *Index, c *clock, all []*victim) {
	t.Helper()
	for _, within := range []time.Duration{0, time.Hour, 6 * time.Hour} {
		rows, since := x.Classes(func(string) bool { return true }, within)
		for _, row := range rows {
			var waited, ran lengths
			longest := time.Duration(0)
			for _, v := range all {
				if v.class == row.PriorityClass {
					longest = max(longest, c.at.Sub(v.admitted))
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
					sum.add(lengths{count: 1, sum: took, longest: took})
				}
			}
			want := PriorityClassRow{Waits: waited.count, AverageWait: waited.average(), LongestWait: waited.longest, Runs: ran.count, AverageRun: ran.average(), LongestRun: max(ran.longest, longest), LoopRuns: ran.loops}
			got := PriorityClassRow{Waits: row.Waits, AverageWait: row.AverageWait, LongestWait: row.LongestWait, Runs: row.Runs, AverageRun: row.AverageRun, LongestRun: row.LongestRun, LoopRuns: row.LoopRuns}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, class %s within %s: %s", seed, row.PriorityClass, within, diff)
			}
		}
	}
}

// What is recorded of a loop: its spans, of which each second has one, and the
// loop itself with Kueue's exact count.
func TestLoopIsRecorded(t *testing.T) {
	x, c := newTestIndex()
	s := &Service{index: x}
	s.Record()
	v := looped(x, c, 3)
	since := v.preemptionTime[0]
	spans := map[Span]bool{}
	var last Snapshot
	take := func() {
		for _, seen := range s.TakeChanged(10) {
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
		s.RecordLoop(Loop{Namespace: "ns", WorkloadUID: v.part(), Since: since, Last: v.preemptionTime[len(v.preemptionTime)-1]})
		take()
	}
	end := v.preemptionTime[len(v.preemptionTime)-1]
	if diff := cmp.Diff([]Loop{{Namespace: "ns", WorkloadUID: v.part(), Since: since, Last: end, Runs: 62}}, last.Loops); diff != "" {
		t.Error(diff)
	}
	first := Span{WorkloadUID: string(v.part()), Began: start.Add(time.Minute), Ended: since}
	if !spans[first] {
		t.Errorf("the run that the loop ended first is not among %v", spans)
	}
	outside := 0
	for span := range spans {
		if !x.inLoop(v.part(), span.Began, span.Ended) {
			outside++
		}
	}
	if outside != 1 || len(spans) < 40 { // that run; when the first wait began, nobody saw
		t.Errorf("%d of %d spans are not of the loop", outside, len(spans))
	}
	x.drop(workload("ns", "victim", "low", 0, v.created))
	gone := s.TakeChanged(10)
	if len(gone) != 1 || gone[0].DeletedAt.IsZero() || len(gone[0].Loops) != 1 {
		t.Errorf("once it is gone: %+v", gone)
	}
	if len(x.loops) != 0 {
		t.Errorf("loops of what is gone are kept: %v", x.loops)
	}
	rows, _ := x.Classes(func(string) bool { return true }, 0)
	if i := slices.IndexFunc(rows, func(r PriorityClassRow) bool { return r.PriorityClass == "low" }); i < 0 || rows[i].LoopRuns != 62 || rows[i].Runs != 1 || rows[i].AverageRun != time.Hour {
		t.Errorf("once it is gone, classes are %+v", rows)
	}
}

// A step that the guard adds is in the timeline, once, and has the task recorded.
func TestNotedSteps(t *testing.T) {
	x, c := newTestIndex()
	told := 0
	x.notify = func() { told++ }
	s := &Service{index: x}
	s.Record()
	other := workload("secret-ns", "other", "", 9, start, waits(start)...)
	x.set(other, false)
	v := looped(x, c, 3)
	s.TakeChanged(10)
	by := x.Find("secret-ns", "Job", "other", "")
	held := Event{At: c.at, Type: WasHeld, Message: "until it starts", Preemptor: by}
	for range 2 {
		s.RecordEvent("ns", v.part(), held)
	}
	s.RecordEvent("secret-ns", v.part(), held)
	s.RecordEvent("ns", "nobody", held)
	s.RecordLoop(Loop{Namespace: "ns", WorkloadUID: "nobody", Since: c.at, Last: c.at})
	if told != 1 {
		t.Errorf("pages are told %d times, want once", told)
	}
	taken := s.TakeChanged(10)
	if len(taken) != 1 || taken[0].Name != "victim" {
		t.Fatalf("%+v are to be recorded", taken)
	}
	want := []Event{{At: held.At, Type: WasHeld, Message: "until it starts", PreemptorUID: by.UID, WorkloadUID: string(v.part()), Ran: unknown, Preemptor: &Task{Namespace: "secret-ns", Kind: "Job", Name: "other", UID: by.UID}}}
	of := func(events []Event) (found []Event) {
		for _, e := range events {
			if e.Type == WasHeld {
				found = append(found, e)
			}
		}
		return found
	}
	same := cmp.AllowUnexported(Task{})
	if diff := cmp.Diff(want, of(taken[0].Events), same); diff != "" {
		t.Error(diff)
	}
	l, err := viewer{index: x, sees: map[string]bool{"ns": true}}.life(t.Context(), v.task())
	if err != nil {
		t.Fatal(err)
	}
	if found := of(l.Timeline); len(found) != 1 || found[0].Preemptor != nil || found[0].PreemptorUID == "" {
		t.Errorf("who does not see the other task is told %+v", found)
	}
	x.drop(other)
	want[0].PreemptorDeleted = true
	if diff := cmp.Diff(want, of(x.Timeline(v.task())), same); diff != "" {
		t.Errorf("once the other is gone: %s", diff)
	}
}

// The guard notes while pages ask and Kueue goes on.
func TestNotingAtOnce(t *testing.T) {
	x := NewIndex(time.Now)
	s := &Service{index: x}
	s.Record()
	v := looped(x, &clock{start}, 3)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for k := range 50 {
				at := start.Add(time.Hour + time.Duration(n*50+k)*time.Second)
				s.RecordLoop(Loop{Namespace: "ns", WorkloadUID: v.part(), Since: v.preemptionTime[0], Last: at})
				s.RecordEvent("ns", v.part(), Event{At: at, Type: WasLooped})
				x.Timeline(x.Find("ns", "Job", "victim", ""))
				x.Classes(func(string) bool { return true }, 0)
				s.TakeChanged(1)
			}
		})
	}
	group.Wait()
	if loops := x.loopsOf(v.task()); len(loops) != 1 || loops[0].Runs != 2 {
		t.Errorf("the loops are %+v", loops)
	}
}
