package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func newTestIndex() (*Index, *taskstest.Clock) {
	c := &taskstest.Clock{At: taskstest.Start}
	return New(c.Now), c
}

// After any sequence of changes the index answers as a scan of all Workloads would.
func TestIndexMatchesAFullScan(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		x, c := newTestIndex()
		workloads := map[string]*kueue.Workload{}
		for step := range 400 {
			c.At = c.At.Add(time.Second)
			namespace, name := fmt.Sprintf("ns-%d", random.IntN(4)), fmt.Sprintf("t-%d", random.IntN(60))
			class := []string{"", "a-priority", "b-priority"}[random.IntN(3)]
			key := namespace + name
			switch old := workloads[key]; {
			case old != nil && random.IntN(4) == 0:
				x.DeleteWorkload(old)
				delete(workloads, key)
			default:
				created := c.At
				if old != nil {
					created = old.CreationTimestamp.Time
				}
				state := [][]metav1.Condition{nil, taskstest.Pending(c.At), taskstest.Admitted(c.At), taskstest.Finished(c.At.Add(-time.Second), c.At)}[random.IntN(4)]
				w := taskstest.Workload(namespace, name, class, int32(random.IntN(3)), created, state...)
				if len(state) > 1 {
					taskstest.UsingGPUs(w, fmt.Sprintf("q-%d", random.IntN(3)), 1+random.Int64N(3))
				}
				x.SetWorkload(w, step < 50)
				workloads[key] = w
			}
			if step%7 != 0 {
				continue
			}
			checkFullScan(t, x, c, workloads, random)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func checkFullScan(t *testing.T, x *Index, c *taskstest.Clock, workloads map[string]*kueue.Workload, random *rand.Rand) {
	t.Helper()
	var all []*tasks.Task
	for _, w := range workloads {
		all = append(all, tasks.FromWorkloads([]*kueue.Workload{w}, nil))
	}
	checkAdmitted(t, x, all)
	columnNames := slices.Sorted(maps.Keys(columns))
	q := Query{Sort: columnNames[random.IntN(len(columnNames))], Descending: random.IntN(2) == 0, Page: random.IntN(4), Phase: []Phase{"", Active, Finished}[random.IntN(3)]}
	var in func(tasks.Place) bool
	if random.IntN(2) == 0 {
		in = func(p tasks.Place) bool { return p.Namespace == "ns-1" || p.Namespace == "ns-2" }
	}
	switch random.IntN(4) {
	case 0:
		q.States = []tasks.State{tasks.Running, tasks.Pending}
	case 1:
		q.PriorityClasses = []string{""}
	case 2:
		q.Text = "T-1"
	}
	var want []string
	sortable := all[:0:0]
	for _, task := range all {
		if in != nil && !in(task.Place()) {
			continue
		}
		lower := q
		lower.Text = strings.ToLower(q.Text)
		if lower.matchesState(task.State) && lower.matchesButState(task) {
			sortable = append(sortable, task)
		}
	}
	// A scan has no earlier waits, which the index keeps.
	if q.Sort == ByWaited {
		q.Sort = BySubmitted
	}
	slices.SortFunc(sortable, compare(q.Sort, c.At))
	position := func(task *tasks.Task) (at, of int) {
		if !task.State.Waiting() {
			return 0, 0
		}
		for _, other := range all {
			if other.Namespace == task.Namespace && other.State.Waiting() {
				of++
				if InQueue(other, task) <= 0 {
					at++
				}
			}
		}
		return at, of
	}
	if q.Sort == ByPosition {
		slices.SortStableFunc(sortable, func(a, b *tasks.Task) int {
			left, _ := position(a)
			right, _ := position(b)
			if left == 0 && !q.Descending {
				left = len(all) + 1
			}
			if right == 0 && !q.Descending {
				right = len(all) + 1
			}
			return left - right
		})
	}
	if q.Descending {
		slices.Reverse(sortable)
	}
	for _, task := range sortable {
		want = append(want, task.UID)
	}
	f := x.Query(q, in)
	var got []string
	for _, task := range f.Tasks {
		got = append(got, task.UID)
	}
	from := (f.Page - 1) * PageSize
	if f.Total != len(want) || !slices.Equal(got, want[from:min(from+PageSize, len(want))]) {
		t.Errorf("%+v: got %d tasks %v, want %d: %v", q, f.Total, got, len(want), want)
	}
	counts := map[string]map[tasks.State]int{}
	for _, task := range all {
		if in == nil || in(task.Place()) {
			if counts[task.PriorityClass] == nil {
				counts[task.PriorityClass] = map[tasks.State]int{}
			}
			counts[task.PriorityClass][task.State]++
		}
	}
	rows, _ := x.Classes(in, 0)
	for _, row := range rows {
		for state, n := range row.States {
			if counts[row.PriorityClass][state] != n {
				t.Errorf("priority class %q has %d tasks that are %s, want %d", row.PriorityClass, n, state, counts[row.PriorityClass][state])
			}
			delete(counts[row.PriorityClass], state)
		}
		if len(counts[row.PriorityClass]) > 0 {
			t.Errorf("priority class %q lacks %v", row.PriorityClass, counts[row.PriorityClass])
		}
	}
	for _, task := range all {
		current := x.Find(task.Namespace, "job", task.Name, "")
		got, length := x.Position(current)
		if want, waiting := position(task); got != want || length != waiting {
			t.Errorf("%s is at position %d of %d, want %d of %d", task.Name, got, length, want, waiting)
		}
	}
}

// checkAdmitted compares the admitted workloads, in preemption order, and the usage
// of their ClusterQueues.
func checkAdmitted(t *testing.T, x *Index, all []*tasks.Task) {
	t.Helper()
	own := &explain.Queue{Name: "q-0"}
	c := &explain.Cluster{Queue: own, Queues: map[string]*explain.Queue{"q-0": own, "q-1": {Name: "q-1"}}} // without q-2, which the cohort does not contain
	c.Admitted = AdmittedTo(x.SetUsage(c.Queues), map[string]bool{"q-0": true, "q-1": true})
	var want []*explain.AdmittedWorkload
	used := map[string]resources.Amount{}
	for _, task := range all {
		for i := range task.AdmittedWorkloads {
			if h := &task.AdmittedWorkloads[i]; h.Queue != "q-2" {
				want = append(want, h)
				used[h.Queue] += h.Usage[quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}]
			}
		}
	}
	slices.SortFunc(want, (*explain.AdmittedWorkload).Compare)
	if diff := cmp.Diff(want, c.Admitted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("admitted workloads (-want +got):\n%s", diff)
	}
	for name, q := range c.Queues {
		if got := q.Usage[quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}]; got != used[name] {
			t.Errorf("%s uses %d GPUs, want %d", name, got, used[name])
		}
	}
}

// Each wait and each run of a task that is preempted twice counts once, also the
// second wait, whose start Kueue does not keep. A wait for admission checks is a
// part of the wait, which ends with the admission.
func TestTimesOverTwoPreemptions(t *testing.T) {
	t.Run("by quota", func(t *testing.T) { timesOverTwoPreemptions(t, false) })
	t.Run("with checks", func(t *testing.T) { timesOverTwoPreemptions(t, true) })
}

func timesOverTwoPreemptions(t *testing.T, checks bool) {
	x, c := newTestIndex()
	at := func(seconds int) time.Time { return taskstest.Start.Add(time.Duration(seconds) * time.Second) }
	past := int32(0)
	step := func(seconds int, conditions ...metav1.Condition) *tasks.Task {
		c.At = at(seconds)
		w := taskstest.Workload("ns", "t", "a", 1, at(0), conditions...)
		if past > 0 {
			w.Status.AccumulatedPastExecutionTimeSeconds = &past
		}
		x.SetWorkload(w, false)
		return x.Find("ns", "Job", "t", "")
	}
	want := func(task *tasks.Task, state tasks.State, waited, ran int) {
		t.Helper()
		if task.State != state || task.Waited(c.At) != time.Duration(waited)*time.Second || task.Ran(c.At) != time.Duration(ran)*time.Second {
			t.Errorf("at %s the task is %s, waited %s and ran %s, want %s, %d s and %d s", c.At.Sub(taskstest.Start), task.State, task.Waited(c.At), task.Ran(c.At), state, waited, ran)
		}
	}
	// checked has Kueue reserve the quota two seconds before it admits the task.
	checked := func(seconds, waited, ran int, more ...metav1.Condition) {
		t.Helper()
		if checks {
			want(step(seconds, append(more, taskstest.Condition("QuotaReserved", true, "QuotaReserved", at(seconds)), taskstest.Condition("Admitted", false, "UnsatisfiedChecks", at(seconds)))...), tasks.Starting, waited, ran)
		}
	}
	before := func(n int) []metav1.Condition {
		return []metav1.Condition{taskstest.Condition("Evicted", false, "QuotaReserved", at(n)), taskstest.Condition("Preempted", false, "QuotaReserved", at(n)), taskstest.Condition("Requeued", true, "Preempted", at(30))}
	}
	want(step(4, taskstest.Pending(at(0))...), tasks.Pending, 4, 0)
	checked(8, 8, 0)
	want(step(15, taskstest.Admitted(at(10))...), tasks.Running, 10, 5)
	evicted := func(n int) []metav1.Condition {
		return []metav1.Condition{taskstest.Condition("QuotaReserved", false, "Pending", at(n)), taskstest.Condition("Admitted", false, "NoReservation", at(n)), taskstest.Condition("Evicted", true, "Preempted", at(n)), taskstest.Condition("Preempted", true, "InClusterQueue", at(n)), taskstest.Condition("Requeued", true, "Preempted", at(30))}
	}
	past = 20 // the run from 10 to 30
	want(step(37, evicted(30)...), tasks.Preempted, 7, 20)
	again := func(n int) []metav1.Condition {
		return append(taskstest.Admitted(at(n)), before(n)...)
	}
	checked(38, 8, 20, before(38)...)
	want(step(45, again(40)...), tasks.Running, 10, 25)
	past = 30 // plus the run from 40 to 50
	want(step(53, evicted(50)...), tasks.Preempted, 3, 30)
	// Requeued is still of 30: if the index did not keep 50, the wait would be 31 s.
	checked(59, 9, 30, before(59)...)
	want(step(66, again(61)...), tasks.Running, 11, 35)
	want(step(72, append(again(61), taskstest.Condition("Finished", true, "Succeeded", at(70)))...), tasks.Succeeded, 11, 39)

	rows, _ := x.Classes(nil, 0)
	if len(rows) != 1 || rows[0].Waits != 3 || rows[0].AverageWait != (10+10+11)*time.Second/3 || rows[0].LongestWait != 11*time.Second ||
		rows[0].Runs != 3 || rows[0].AverageRun != (20+10+9)*time.Second/3 || rows[0].LongestRun != 20*time.Second {
		t.Errorf("got the priority classes %+v", rows)
	}
}

// A task whose job was deleted leaves the index, whichever of its Workloads changes
// first. It has not succeeded, nor is it a job without a Workload.
func TestOrphanedWorkload(t *testing.T) {
	slice := func(name, of string, conditions ...metav1.Condition) *kueue.Workload {
		w := taskstest.Workload("ns", "t", "a", 1, taskstest.Start, conditions...)
		w.Name, w.UID, w.Annotations = name, types.UID(name), map[string]string{tasks.SliceNameAnnotation: "first"}
		if of != "" {
			w.Annotations[tasks.SliceReplacementAnnotation] = "ns/" + of
		}
		return w
	}
	outgrown := slice("first", "", append(taskstest.Admitted(taskstest.Start), taskstest.Condition("Finished", true, "WorkloadSliceReplaced", taskstest.Start))...)
	orphan := taskstest.Condition("Finished", true, "OwnerNotFound", taskstest.Start)
	for name, steps := range map[string][]func(x *Index){
		"one Workload": {func(x *Index) {
			x.SetWorkload(slice("only", "", append(taskstest.Admitted(taskstest.Start), orphan)...), false)
		}},
		"of two slices, the one that runs": {
			func(x *Index) { x.SetWorkload(outgrown, false) },
			func(x *Index) {
				x.SetWorkload(slice("second", "first", append(taskstest.Admitted(taskstest.Start), orphan)...), false)
			},
			func(x *Index) { x.DeleteWorkload(slice("second", "first")) },
		},
		"the slice that runs is deleted first": {
			func(x *Index) { x.SetWorkload(outgrown, false) },
			func(x *Index) { x.DeleteWorkload(slice("second", "first")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.workloadsSynced()
			x.setJob(jobObject("ns", "t")) // whose deletion the index has not received yet
			x.SetWorkload(slice("only", "", taskstest.Admitted(taskstest.Start)...), false)
			if len(steps) > 1 {
				x.SetWorkload(outgrown, false)
				x.DeleteWorkload(slice("only", ""))
				x.SetWorkload(slice("second", "first", taskstest.Admitted(taskstest.Start)...), false)
			}
			if task := x.Find("ns", "Job", "t", ""); task == nil || task.State != tasks.Running || task.NoWorkload {
				t.Fatalf("before the deletion the task is %+v, want it to run", task)
			}
			for i, step := range steps {
				if step(x); i == 0 && len(steps) > 1 {
					continue
				}
				if task := x.Find("ns", "Job", "t", ""); task != nil {
					t.Errorf("after %d steps the task still exists and is %s", i+1, task.State)
				}
			}
		})
	}
}

// Sorted by position, tasks of several queues mix, and tasks outside of queues come
// last in both directions.
func TestListByPosition(t *testing.T) {
	x, _ := newTestIndex()
	for i, queue := range []string{"b", "b", "a"} {
		w := taskstest.Workload("ns", fmt.Sprint("t", i), "", int32(i), taskstest.Start.Add(time.Duration(i)*time.Second), taskstest.Pending(taskstest.Start)...)
		w.Spec.QueueName = kueue.LocalQueueName(queue)
		x.SetWorkload(w, false)
	}
	x.SetWorkload(taskstest.Workload("ns", "runs", "", 9, taskstest.Start.Add(time.Minute), taskstest.Admitted(taskstest.Start)...), false)
	for _, tc := range []struct {
		q    Query
		want string
	}{
		{Query{Sort: ByPosition}, "t1 1 t2 1 t0 2 runs 0 "},
		{Query{Sort: ByPosition, Descending: true}, "t0 2 t2 1 t1 1 runs 0 "},
		{Query{Sort: ByPosition, States: []tasks.State{tasks.Pending}, Descending: true}, "t0 2 t2 1 t1 1 "},
	} {
		f, got := x.Query(tc.q, nil), ""
		for i, task := range f.Tasks {
			got += fmt.Sprintf("%s %d ", task.Name, f.Positions[i])
		}
		if got != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.q, got, tc.want)
		}
	}
}

// Heads takes the first waiting tasks of several queues in turns.
func TestHeadOfQueues(t *testing.T) {
	x, _ := newTestIndex()
	for i, queue := range []string{"b", "b", "b", "a", "a"} {
		w := taskstest.Workload("ns", fmt.Sprint("t", i), "", int32(i), taskstest.Start, taskstest.Pending(taskstest.Start)...)
		w.Spec.QueueName = kueue.LocalQueueName(queue)
		x.SetWorkload(w, false)
	}
	x.SetWorkload(taskstest.Workload("other", "t", "", 9, taskstest.Start, taskstest.Pending(taskstest.Start)...), false)
	x.SetWorkload(taskstest.Workload("ns", "runs", "", 9, taskstest.Start, taskstest.Admitted(taskstest.Start)...), false)
	list, of := x.Heads(func(key QueueKey) bool { return key.Namespace == "ns" }, 4)
	names := ""
	for _, first := range list {
		names += fmt.Sprintf("%s %d ", first.Task.Name, first.Position)
	}
	if names != "t4 1 t2 1 t3 2 t1 2 " || of != 5 {
		t.Errorf("got %sof %d, want t4 1 t2 1 t3 2 t1 2 of 5", names, of)
	}
}

// The slices of an elastic job are one task, which runs and waits for more pods.
func TestElasticJobIsOneTask(t *testing.T) {
	x, c := newTestIndex()
	slice := func(n int, count int32, created time.Time, conditions ...metav1.Condition) *kueue.Workload {
		w := taskstest.Workload("ns", "grows", "a", 1, created, conditions...)
		w.Name, w.UID = fmt.Sprintf("job-grows-%d", n), types.UID(fmt.Sprint(n))
		w.Annotations = map[string]string{tasks.SliceNameAnnotation: "job-grows-1"}
		w.Spec.PodSets[0].Count = count
		if len(conditions) > 1 {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &count}}}
		}
		return w
	}
	at := func(seconds int) time.Time { return taskstest.Start.Add(time.Duration(seconds) * time.Second) }
	x.SetWorkload(slice(1, 2, at(0), append(taskstest.Admitted(at(1)), taskstest.Condition("Finished", true, kueue.WorkloadSliceReplaced, at(11)))...), false)
	x.SetWorkload(slice(2, 3, at(10), taskstest.Admitted(at(11))...), false)
	x.SetWorkload(slice(3, 6, at(20), taskstest.Pending(at(20))...), false)
	c.At = at(31)
	task := x.Find("ns", "job", "grows", "")
	if x.Len() != 1 || task.State != tasks.Running || task.Size != (tasks.Size{Min: 6, Admitted: 3, Wanted: 6, Guaranteed: 3}) || !task.Growing() || task.Ran(c.At) != 30*time.Second || !task.Submitted.Equal(at(0)) {
		t.Errorf("got %d tasks, and %+v that ran %s", x.Len(), task, task.Ran(c.At))
	}
	x.DeleteWorkload(slice(3, 6, at(20)))
	if task = x.Find("ns", "job", "grows", ""); task.Growing() || task.Size.Wanted != 3 {
		t.Errorf("without its last slice the task is %+v", task)
	}
}

// A guaranteed part and increments of lower priority, as HyperPod's operator
// creates them, are one task.
func TestIncrementsAreOneTask(t *testing.T) {
	x, _ := newTestIndex()
	for i, priority := range []int32{90, 10, 10} {
		state := taskstest.Admitted(taskstest.Start)
		if i == 2 {
			state = taskstest.Pending(taskstest.Start)
		}
		w := taskstest.Workload("ns", "train", "a", priority, taskstest.Start, state...)
		w.Name, w.UID = fmt.Sprintf("train-%d", i), types.UID(fmt.Sprint(i))
		w.Spec.PodSets[0].Count = 4
		if i < 2 {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &w.Spec.PodSets[0].Count}}}
		}
		x.SetWorkload(w, false)
	}
	task := x.Find("ns", "job", "train", "")
	if x.Len() != 1 || task.State != tasks.Running || task.Priority != 90 || task.Size != (tasks.Size{Min: 4, Admitted: 8, Wanted: 12, Guaranteed: 4}) {
		t.Errorf("got %d tasks, and %+v", x.Len(), task)
	}
}

// Workloads that lack fields, or have unknown ones, are listed with what they have.
func TestIncompleteWorkloadsAreListed(t *testing.T) {
	x, c := newTestIndex()
	future := taskstest.Start.Add(time.Hour)
	incomplete := []*kueue.Workload{
		{},
		{ObjectMeta: metav1.ObjectMeta{UID: "1", Namespace: "ns", Name: "bare"}},
		taskstest.Workload("ns", "future", "", 0, future, taskstest.Admitted(future)...),
		taskstest.Workload("ns", "unknown", "", 0, taskstest.Start, taskstest.Condition("QuotaReserved", false, "SomethingNew", taskstest.Start), taskstest.Condition("Other", true, "", taskstest.Start)),
		{ObjectMeta: metav1.ObjectMeta{UID: "2", Namespace: "ns", Name: "group", OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "a"}, {Kind: "Pod", Name: "b"}}}},
		{ObjectMeta: metav1.ObjectMeta{UID: "3", Namespace: "ns", Name: "set", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "s"}}}},
	}
	for _, w := range incomplete {
		x.SetWorkload(w, false)
	}
	f := x.Query(Query{}, nil)
	if f.Total != len(incomplete) {
		t.Errorf("got %d tasks, want %d", f.Total, len(incomplete))
	}
	if task := x.Find("ns", "job", "future", ""); task.Ran(c.At) != 0 || task.Waited(c.At) != 0 {
		t.Errorf("from times in the future, got a run of %s and a wait of %s, want 0", task.Ran(c.At), task.Waited(c.At))
	}
	if x.Find("ns", "podgroup", "group", "") == nil || x.Find("ns", "statefulset", "web", "") == nil || x.Find("ns", "workload", "bare", "") == nil {
		t.Error("a task is not found by its owner")
	}
}

// The counts of a query are of what its filters select, of whatever state, whether the
// tasks are counted or looked through.
func TestQueryCountsStates(t *testing.T) {
	x, c := newTestIndex()
	for i, name := range []string{"train-1", "train-2", "eval"} {
		conditions := []metav1.Condition{taskstest.Condition("QuotaReserved", false, "Pending", c.At)}
		if i == 1 {
			conditions = taskstest.Admitted(c.At)
		}
		x.SetWorkload(taskstest.Workload("ns", name, "", 0, c.At, conditions...), false)
	}
	for text, want := range map[string]map[tasks.State]int{
		"":      {tasks.Pending: 2, tasks.Running: 1},
		"train": {tasks.Pending: 1, tasks.Running: 1},
		"none":  {},
	} {
		for _, states := range [][]tasks.State{nil, {tasks.Pending}} {
			for _, phase := range []Phase{"", Active} {
				f := x.Query(Query{Text: text, States: states, Phase: phase}, nil)
				total := 0
				for state, n := range f.States {
					if total += n; n != want[state] {
						t.Errorf("%q, %v, %q: got %d %s, want %d", text, states, phase, n, state, want[state])
					}
				}
				if f.Phases[Active] != total || total != want[tasks.Pending]+want[tasks.Running] {
					t.Errorf("%q, %v, %q: got %d in all and %d active", text, states, phase, total, f.Phases[Active])
				}
			}
		}
	}
}
