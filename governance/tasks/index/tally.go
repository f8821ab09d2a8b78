package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

type classKey struct{ namespace, class string }

// tally is what is known of the tasks of one class in one namespace.
type tally struct {
	priority         int32
	states           map[tasks.State]int
	waits, runs      endings
	waiting, running *order // now, those first that have been for the longest time
}

// countOnly counts a task that was there before this process: what it did before
// is not counted as if it had just been seen.
func (x *Index) countOnly(t *tasks.Task) { x.tallyOf(t).add(t) }

// count counts a change of one task from before to after, either of which may be
// nil.
func (x *Index) count(before, after *tasks.Task) {
	x.dropOld(x.Now())
	if before != nil {
		y := x.tallyOf(before)
		y.remove(before)
		if y.empty() {
			delete(x.classes, classKey{before.Namespace, before.PriorityClass})
		}
	}
	if after == nil {
		return
	}
	y := x.tallyOf(after)
	y.add(after)
	if admitted := !after.AdmittedAt.IsZero() && !after.State.Waiting(); admitted && (before == nil || !before.AdmittedAt.Equal(after.AdmittedAt)) {
		some := completed{part: after.Main.UID, began: after.AdmittedAt.Add(-after.LastWait), at: after.AdmittedAt, took: after.LastWait}
		x.addCompleted(&y.waits, after, some)
	}
	over := after.State.Finished() || after.State.Waiting() || after.State == tasks.Stopped
	if hasRun(before) && over {
		took := max(0, after.Ran(x.Now())-before.RanBefore)
		x.addCompleted(&y.runs, after, completed{part: before.Main.UID, began: before.AdmittedAt, at: runEnd(before.Main.UID, after), took: took})
	}
}

// ended counts a wait or a run of a task that ended, unless it is of a loop. Only
// what was preempted before can turn out to be.
func (x *Index) addCompleted(e *endings, t *tasks.Task, some completed) {
	switch {
	case x.inLoop(some.part, some.began, some.at):
		e.addLooped(x.Now())
	case t.Preemptions > 0:
		e.addUndecided(some, x.Now())
	default:
		e.add(some.took, x.Now())
	}
}

// runEnd is when a run of a Workload ended, as Kueue tells it.
func runEnd(part types.UID, t *tasks.Task) time.Time {
	for _, w := range t.Parts {
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); w.UID == part && c != nil && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	if !t.FinishedAt.IsZero() {
		return t.FinishedAt
	}
	return t.Since
}

func byWait(a, b *tasks.Task) int {
	return cmp.Or(a.WaitingSince.Compare(b.WaitingSince), strings.Compare(a.UID, b.UID))
}

// byRun orders by the last admission; what has none yet, such as a task whose
// checks are not done, comes last.
func byRun(a, b *tasks.Task) int {
	return cmp.Or(cmp.Compare(b2i(a.AdmittedAt.IsZero()), b2i(b.AdmittedAt.IsZero())), a.AdmittedAt.Compare(b.AdmittedAt), strings.Compare(a.UID, b.UID))
}

// hasRun tells whether a task has its quota, and its checks done.
func hasRun(t *tasks.Task) bool { return t != nil && !t.AdmittedAt.IsZero() && t.State.UsesQuota() }

func (x *Index) tallyOf(t *tasks.Task) *tally {
	key := classKey{t.Namespace, t.PriorityClass}
	y := x.classes[key]
	if y == nil {
		y = &tally{states: map[tasks.State]int{}, waiting: newOrder(byWait), running: newOrder(byRun)}
		x.classes[key] = y
	}
	return y
}

func (y *tally) empty() bool {
	for _, n := range y.states {
		if n > 0 {
			return false
		}
	}
	w, r := y.waits.all, y.runs.all
	return w.count == 0 && r.count == 0 && w.loops == 0 && r.loops == 0
}

func (y *tally) add(t *tasks.Task) {
	y.states[t.State]++
	y.priority = t.Priority
	switch {
	case t.State.Waiting():
		y.waiting.put(t)
	case t.State.UsesQuota():
		y.running.put(t)
	}
}

func (y *tally) remove(t *tasks.Task) {
	y.states[t.State]--
	switch {
	case t.State.Waiting():
		y.waiting.remove(t)
	case t.State.UsesQuota():
		y.running.remove(t)
	}
}

// ClassRow is what there is of one priority class.
type PriorityClassRow struct {
	PriorityClass               string // as its object is named; empty for tasks without one
	Priority                    int32
	Running, Pending, Preempted int
	States                      map[tasks.State]int // all of them
	Waits, Runs                 int                 // that ended in the range, which averages are over
	LoopRuns                    int                 // that preemption loops ended in the range: averages and longest times leave them out
	AverageWait, AverageRun     time.Duration       // 0 without any
	LongestWait, LongestRun     time.Duration       // counts those that still go on
	WaitGoesOn, RunGoesOn       bool                // those longest ones still do
	Waiting, RunningFor         time.Duration       // of those that go on, for how long the longest does; 0 without any
}

// Ended takes in how many waits and runs have ended, and how long they took: the
// longest ones count those that go on.
func (r *PriorityClassRow) SetEnded(waits int, averageWait, longestWait time.Duration, runs int, averageRun, longestRun time.Duration) {
	r.Waits, r.AverageWait, r.LongestWait, r.WaitGoesOn = waits, averageWait, max(r.Waiting, longestWait), r.Waiting > longestWait
	r.Runs, r.AverageRun, r.LongestRun, r.RunGoesOn = runs, averageRun, max(r.RunningFor, longestRun), r.RunningFor > longestRun
}

// Classes counts the tasks of the namespaces that somebody sees, one row for
// each class, the highest priority first and those without a class last. Waits
// and runs are those that ended within a length of time up to a day, or for 0
// since the index began. since is from when they really are: a range begins with
// a whole period of five minutes, and not before the index did.
func (x *Index) Classes(sees func(namespace string) bool, within time.Duration) (rows []PriorityClassRow, since time.Time) {
	now := x.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropOld(now)
	since = x.beginOf(now, within)
	sums, ended := map[string]*PriorityClassRow{}, map[string]*struct{ waits, runs durations }{}
	for key, y := range x.classes {
		if !sees(key.namespace) {
			continue
		}
		row := sums[key.class]
		if row == nil {
			row = &PriorityClassRow{PriorityClass: key.class, Priority: y.priority, States: map[tasks.State]int{}}
			sums[key.class], ended[key.class] = row, &struct{ waits, runs durations }{}
		}
		row.Priority = max(row.Priority, y.priority)
		for state, n := range y.states {
			switch {
			case state == tasks.Preempted:
				row.Preempted += n
			case state == tasks.Pending:
				row.Pending += n
			case state.UsesQuota():
				row.Running += n
			}
			row.States[state] += n
		}
		ended[key.class].waits.add(x.endedSince(since, &y.waits))
		ended[key.class].runs.add(x.endedSince(since, &y.runs))
		if waiting := y.waiting.list(); len(waiting) > 0 {
			row.Waiting = max(row.Waiting, waiting[0].Waited(now))
		}
		if running := y.running.list(); len(running) > 0 {
			row.RunningFor = max(row.RunningFor, running[0].Ran(now)-running[0].RanBefore)
		}
	}
	for class, row := range sums {
		e := ended[class]
		row.LoopRuns = e.runs.loops
		row.SetEnded(e.waits.count, e.waits.average(), e.waits.longest, e.runs.count, e.runs.average(), e.runs.longest)
	}
	return slices.SortedFunc(deref(maps.Values(sums)), func(a, b PriorityClassRow) int {
		return cmp.Or(cmp.Compare(b2i(a.PriorityClass == ""), b2i(b.PriorityClass == "")), cmp.Compare(b.Priority, a.Priority), strings.Compare(a.PriorityClass, b.PriorityClass))
	}), since
}

func b2i(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func deref(rows func(func(*PriorityClassRow) bool)) func(func(PriorityClassRow) bool) {
	return func(yield func(PriorityClassRow) bool) {
		rows(func(r *PriorityClassRow) bool { return yield(*r) })
	}
}
