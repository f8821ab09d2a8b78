package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

type classKey struct {
	tasks.Place
	class string
}

// tally counts the tasks of one priority class in one place.
type tally struct {
	priority         int32
	states           map[tasks.State]int
	waits, runs      endings
	waiting, running *order // now, those first that have been for the longest time
}

// countOnly counts a task that existed before this process, without its earlier
// waits and runs.
func (x *Index) countOnly(t *tasks.Task) {
	for _, y := range x.talliesOf(t) {
		y.add(t)
	}
}

// count counts a change of one task from before to after, either of which may be
// nil.
func (x *Index) count(before, after *tasks.Task) {
	x.dropOld(x.Now())
	if before != nil {
		for _, y := range x.talliesOf(before) {
			y.remove(before)
		}
		forgetEmpty(x.classes, classKey{before.Place(), before.PriorityClass})
		forgetEmpty(x.everywhere, before.PriorityClass)
	}
	if after == nil {
		return
	}
	admitted := !after.AdmittedAt.IsZero() && !after.State.Waiting()
	over := after.State.Finished() || after.State.Waiting() || after.State == tasks.Stopped
	for _, y := range x.talliesOf(after) {
		y.add(after)
		if admitted && (before == nil || !before.AdmittedAt.Equal(after.AdmittedAt)) {
			some := completed{part: after.Main.UID, began: after.AdmittedAt.Add(-after.LastWait), at: after.AdmittedAt, took: after.LastWait}
			x.addCompleted(&y.waits, after, some)
		}
		if hasRun(before) && over {
			took := max(0, after.Ran(x.Now())-before.RanBefore)
			x.addCompleted(&y.runs, after, completed{part: before.Main.UID, began: before.AdmittedAt, at: runEnd(before.Main.UID, after), took: took})
		}
	}
}

// addCompleted counts a completed wait or run of a task, unless it belongs to a
// loop. Only tasks that were preempted can turn out to be in one.
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

// runEnd returns when a run of a Workload ended, by Kueue's conditions.
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

// byRun orders by the last admission; tasks without one, such as those with pending
// checks, come last.
func byRun(a, b *tasks.Task) int {
	if none := a.AdmittedAt.IsZero(); none != b.AdmittedAt.IsZero() {
		if none {
			return 1
		}
		return -1
	}
	return cmp.Or(a.AdmittedAt.Compare(b.AdmittedAt), strings.Compare(a.UID, b.UID))
}

// hasRun reports whether a task is admitted, with its checks done.
func hasRun(t *tasks.Task) bool { return t != nil && !t.AdmittedAt.IsZero() && t.State.UsesQuota() }

// talliesOf returns the tallies of the priority class of a task: in its place, and everywhere.
func (x *Index) talliesOf(t *tasks.Task) [2]*tally {
	return [...]*tally{tallyIn(x.classes, classKey{t.Place(), t.PriorityClass}), tallyIn(x.everywhere, t.PriorityClass)}
}

func tallyIn[K comparable](all map[K]*tally, key K) *tally {
	y := all[key]
	if y == nil {
		y = &tally{states: map[tasks.State]int{}, waiting: newOrder(byWait), running: newOrder(byRun)}
		all[key] = y
	}
	return y
}

func forgetEmpty[K comparable](all map[K]*tally, key K) {
	if all[key].empty() {
		delete(all, key)
	}
}

func (y *tally) empty() bool {
	for _, n := range y.states {
		if n > 0 {
			return false
		}
	}
	return y.waits.all == (durations{}) && y.runs.all == (durations{})
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

// PriorityClassRow has the figures of one priority class.
type PriorityClassRow struct {
	PriorityClass               string // name of the object; empty for tasks without one
	Priority                    int32
	Running, Pending, Preempted int
	States                      map[tasks.State]int // all states
	Waits, Runs                 int                 // completed in the range; averages are over these
	LoopRuns                    int                 // completed in the range and belong to preemption loops: averages and longest times exclude them
	AverageWait, AverageRun     time.Duration       // 0 without any
	LongestWait, LongestRun     time.Duration       // counts those that still go on
	WaitGoesOn, RunGoesOn       bool                // those longest ones still do
	Waiting, RunningFor         time.Duration       // of the longest that is going on; 0 without any
}

// SetEnded sets the figures of completed waits and runs. The longest ones include
// those that are going on.
func (r *PriorityClassRow) SetEnded(waits int, averageWait, longestWait time.Duration, runs int, averageRun, longestRun time.Duration) {
	r.Waits, r.AverageWait, r.LongestWait, r.WaitGoesOn = waits, averageWait, max(r.Waiting, longestWait), r.Waiting > longestWait
	r.Runs, r.AverageRun, r.LongestRun, r.RunGoesOn = runs, averageRun, max(r.RunningFor, longestRun), r.RunningFor > longestRun
}

// Add adds the figures of another class.
func (r *PriorityClassRow) Add(other PriorityClassRow) {
	r.Running, r.Pending, r.Preempted, r.LoopRuns = r.Running+other.Running, r.Pending+other.Pending, r.Preempted+other.Preempted, r.LoopRuns+other.LoopRuns
	states := map[tasks.State]int{}
	for _, of := range []map[tasks.State]int{r.States, other.States} {
		for state, n := range of {
			states[state] += n
		}
	}
	r.States = states
	mean := func(a time.Duration, n int, b time.Duration, m int) time.Duration {
		return time.Duration((a.Seconds()*float64(n) + b.Seconds()*float64(m)) / float64(max(n+m, 1)) * float64(time.Second))
	}
	r.AverageWait, r.Waits = mean(r.AverageWait, r.Waits, other.AverageWait, other.Waits), r.Waits+other.Waits
	r.AverageRun, r.Runs = mean(r.AverageRun, r.Runs, other.AverageRun, other.Runs), r.Runs+other.Runs
	if other.LongestWait > r.LongestWait {
		r.LongestWait, r.WaitGoesOn = other.LongestWait, other.WaitGoesOn
	}
	if other.LongestRun > r.LongestRun {
		r.LongestRun, r.RunGoesOn = other.LongestRun, other.RunGoesOn
	}
	r.Waiting, r.RunningFor = max(r.Waiting, other.Waiting), max(r.RunningFor, other.RunningFor)
}

// Classes counts the tasks of the places that in accepts, nil for all, one row for each
// priority class: the highest priority first, and those without one last. Waits and
// runs are those that completed within a duration of up to a day, or for 0 since
// the index started. since is the begin of that range: the begin of a period of
// five minutes, and not before the index started.
func (x *Index) Classes(in func(tasks.Place) bool, within time.Duration) (rows []PriorityClassRow, since time.Time) {
	now := x.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropOld(now)
	since = x.beginOf(now, within)
	type sum struct {
		PriorityClassRow
		waits, runs durations
	}
	sums := map[string]*sum{}
	add := func(class string, y *tally) {
		row := sums[class]
		if row == nil {
			row = &sum{PriorityClassRow: PriorityClassRow{PriorityClass: class, Priority: y.priority, States: map[tasks.State]int{}}}
			sums[class] = row
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
			if n > 0 {
				row.States[state] += n
			}
		}
		row.waits.add(x.endedSince(since, &y.waits))
		row.runs.add(x.endedSince(since, &y.runs))
		if waiting := y.waiting.list(); len(waiting) > 0 {
			row.Waiting = max(row.Waiting, waiting[0].Waited(now))
		}
		if running := y.running.list(); len(running) > 0 {
			row.RunningFor = max(row.RunningFor, running[0].Ran(now)-running[0].RanBefore)
		}
	}
	if in == nil {
		for class, y := range x.everywhere {
			add(class, y)
		}
	} else {
		for key, y := range x.classes {
			if in(key.Place) {
				add(key.class, y)
			}
		}
	}
	for _, row := range sums {
		row.LoopRuns = row.runs.loops
		row.SetEnded(row.waits.count, row.waits.average(), row.waits.longest, row.runs.count, row.runs.average(), row.runs.longest)
		rows = append(rows, row.PriorityClassRow)
	}
	rank := func(r PriorityClassRow) int64 {
		if r.PriorityClass == "" {
			return math.MinInt64
		}
		return int64(r.Priority)
	}
	slices.SortFunc(rows, func(a, b PriorityClassRow) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), strings.Compare(a.PriorityClass, b.PriorityClass))
	})
	return rows, since
}

var (
	tasksDesc       = prometheus.NewDesc("kuota_tasks", "Tasks by state. Absent until the informer caches have synced.", []string{"state"}, nil)
	elasticPodsDesc = prometheus.NewDesc("kuota_elastic_pods", "Pods of elastic tasks that use quota: those of the minimum, which are guaranteed, and growth. Absent until the informer caches have synced.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (x *Index) Describe(to chan<- *prometheus.Desc) {
	to <- tasksDesc
	to <- elasticPodsDesc
}

// Collect implements prometheus.Collector. Its cost depends on the number of
// queues and priority classes, not of tasks.
func (x *Index) Collect(to chan<- prometheus.Metric) {
	x.mu.Lock()
	complete, pods, states := x.workloadsComplete, x.elasticPods, x.states()
	x.mu.Unlock()
	if !complete {
		return
	}
	for _, state := range tasks.States {
		to <- prometheus.MustNewConstMetric(tasksDesc, prometheus.GaugeValue, float64(states[state]), string(state))
	}
	to <- prometheus.MustNewConstMetric(elasticPodsDesc, prometheus.GaugeValue, float64(pods.guaranteed), "guaranteed")
	to <- prometheus.MustNewConstMetric(elasticPodsDesc, prometheus.GaugeValue, float64(pods.growth), "growth")
}
