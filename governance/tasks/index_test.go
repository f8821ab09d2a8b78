package tasks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTestIndex() (*Index, *clock) {
	c := &clock{start}
	return NewIndex(c.now), c
}

// workload is one that a Job made.
func workload(namespace, name, class string, priority int32, created time.Time, conditions ...metav1.Condition) *kueue.Workload {
	yes := true
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "job-" + name, UID: types.UID("w-" + namespace + name), CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: name, UID: types.UID("j-" + namespace + name), Controller: &yes}},
		},
		Spec:   kueue.WorkloadSpec{Priority: &priority, QueueName: "main", PodSets: []kueue.PodSet{{Count: 1}}},
		Status: kueue.WorkloadStatus{Conditions: conditions},
	}
	if class != "" {
		w.Spec.PriorityClassRef = &kueue.PriorityClassRef{Name: class, Kind: kueue.WorkloadPriorityClassKind}
	}
	return w
}

// holdsGPUs has a Workload hold so many GPUs of a queue.
func holdsGPUs(w *kueue.Workload, queue string, gpus int64) *kueue.Workload {
	amount := resource.NewQuantity(gpus, resource.DecimalSI)
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue), PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "a100"}, ResourceUsage: corev1.ResourceList{"nvidia.com/gpu": *amount},
	}}}
	return w
}

func condition(name string, yes bool, reason string, at time.Time) metav1.Condition {
	status := metav1.ConditionFalse
	if yes {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: name, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
}

func waits(at time.Time) []metav1.Condition {
	return []metav1.Condition{condition("QuotaReserved", false, "WaitingForQuota", at)}
}

func runs(at time.Time) []metav1.Condition {
	return []metav1.Condition{condition("QuotaReserved", true, "QuotaReserved", at), condition("Admitted", true, "Admitted", at)}
}

func ends(admitted, at time.Time) []metav1.Condition {
	return append(runs(admitted), condition("Finished", true, "Succeeded", at))
}

// Whatever comes and goes, an index answers as somebody would who looks at all
// Workloads each time.
func TestIndexAnswersLikeALook(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		x, c := newTestIndex()
		there := map[string]*kueue.Workload{}
		for step := range 400 {
			c.at = c.at.Add(time.Second)
			namespace, name := fmt.Sprintf("ns-%d", random.IntN(4)), fmt.Sprintf("t-%d", random.IntN(60))
			class := []string{"", "a-priority", "b-priority"}[random.IntN(3)]
			key := namespace + name
			switch old := there[key]; {
			case old != nil && random.IntN(4) == 0:
				x.drop(old)
				delete(there, key)
			default:
				created := c.at
				if old != nil {
					created = old.CreationTimestamp.Time
				}
				state := [][]metav1.Condition{nil, waits(c.at), runs(c.at), ends(c.at.Add(-time.Second), c.at)}[random.IntN(4)]
				w := workload(namespace, name, class, int32(random.IntN(3)), created, state...)
				if len(state) > 1 {
					holdsGPUs(w, fmt.Sprintf("q-%d", random.IntN(3)), 1+random.Int64N(3))
				}
				x.set(w, step < 50)
				there[key] = w
			}
			if step%7 != 0 {
				continue
			}
			checkLikeALook(t, x, c, there, random)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func checkLikeALook(t *testing.T, x *Index, c *clock, there map[string]*kueue.Workload, random *rand.Rand) {
	t.Helper()
	var all []*Task
	for _, w := range there {
		all = append(all, FromWorkloads([]*kueue.Workload{w}, nil))
	}
	checkHolders(t, x, all)
	columnNames := slices.Sorted(maps.Keys(columns))
	q := Query{Sort: columnNames[random.IntN(len(columnNames))], Descending: random.IntN(2) == 0, Page: random.IntN(4), Phase: []Phase{"", Active, Finished}[random.IntN(3)]}
	var sees map[string]bool
	if random.IntN(2) == 0 {
		sees = map[string]bool{"ns-1": true, "ns-2": true}
	}
	switch random.IntN(5) {
	case 0:
		q.States = []State{Running, Pending}
	case 1:
		q.PriorityClasses = []string{""}
	case 2:
		q.Text = "T-1"
	case 3:
		q.Namespaces = []string{"ns-1", "ns-3"}
	}
	var want []string
	sortable := all[:0:0]
	for _, task := range all {
		if sees != nil && !sees[task.Namespace] || len(q.Namespaces) > 0 && !slices.Contains(q.Namespaces, task.Namespace) {
			continue
		}
		lower := q
		lower.Text = strings.ToLower(q.Text)
		if lower.matchesState(task.State) && lower.matchesButState(task) {
			sortable = append(sortable, task)
		}
	}
	// What the index remembers of earlier waits is not in a fresh look.
	if q.Sort == ByWaited {
		q.Sort = BySubmitted
	}
	slices.SortFunc(sortable, compare(q.Sort, c.at))
	place := func(task *Task) (place, of int) {
		if !task.State.Waiting() {
			return 0, 0
		}
		for _, other := range all {
			if other.Namespace == task.Namespace && other.State.Waiting() {
				place, of = place+b2i(inQueue(other, task) <= 0), of+1
			}
		}
		return place, of
	}
	if q.Sort == ByPosition {
		slices.SortStableFunc(sortable, func(a, b *Task) int {
			of, than := 0, 0
			if of, _ = place(a); of == 0 && !q.Descending {
				of = len(all) + 1
			}
			if than, _ = place(b); than == 0 && !q.Descending {
				than = len(all) + 1
			}
			return of - than
		})
	}
	if q.Descending {
		slices.Reverse(sortable)
	}
	for _, task := range sortable {
		want = append(want, task.UID)
	}
	f := x.find(q, sees)
	var got []string
	for _, task := range f.page {
		got = append(got, task.UID)
	}
	from := (f.number - 1) * PageSize
	if f.total != len(want) || !slices.Equal(got, want[from:min(from+PageSize, len(want))]) {
		t.Errorf("%+v finds %d tasks %v, want %d: %v", q, f.total, got, len(want), want)
	}
	counts := map[string]map[State]int{}
	for _, task := range all {
		if sees == nil || sees[task.Namespace] {
			if counts[task.PriorityClass] == nil {
				counts[task.PriorityClass] = map[State]int{}
			}
			counts[task.PriorityClass][task.State]++
		}
	}
	rows, _ := x.Classes(func(namespace string) bool { return sees == nil || sees[namespace] }, 0)
	for _, row := range rows {
		for state, n := range row.States {
			if counts[row.PriorityClass][state] != n {
				t.Errorf("class %q has %d %s, want %d", row.PriorityClass, n, state, counts[row.PriorityClass][state])
			}
			delete(counts[row.PriorityClass], state)
		}
		if len(counts[row.PriorityClass]) > 0 {
			t.Errorf("class %q misses %v", row.PriorityClass, counts[row.PriorityClass])
		}
	}
	for _, task := range all {
		current := x.Find(task.Namespace, "job", task.Name, "")
		got, of := x.Position(current)
		if want, waiting := place(task); got != want || of != waiting {
			t.Errorf("%s stands at %d of %d, want %d of %d", task.Name, got, of, want, waiting)
		}
	}
}

// checkHolders compares who holds what, in the order in which Kueue stops them.
func checkHolders(t *testing.T, x *Index, all []*Task) {
	t.Helper()
	own := &explain.Queue{Name: "q-0"}
	c := &explain.Cluster{Queue: own, Queues: map[string]*explain.Queue{"q-0": own, "q-1": {Name: "q-1"}}} // others of which all is borrowed, and one of no concern
	x.fill(c)
	var want []*explain.AdmittedWorkload
	used := map[string]int64{}
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
		t.Errorf("holders are not as a look tells: %s", diff)
	}
	for name, q := range c.Queues {
		if got := q.Usage[quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}]; got != used[name] {
			t.Errorf("of %s %d are used, want %d", name, got, used[name])
		}
	}
}

// A task that is preempted twice: each wait and each run counts once, also the
// second wait, whose start Kueue forgets. A wait for admission checks is a part of
// the wait: it ends with the admission.
func TestTimesOverTwoPreemptions(t *testing.T) {
	t.Run("by quota", func(t *testing.T) { timesOverTwoPreemptions(t, false) })
	t.Run("with checks", func(t *testing.T) { timesOverTwoPreemptions(t, true) })
}

func timesOverTwoPreemptions(t *testing.T, checks bool) {
	x, c := newTestIndex()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	past := int32(0)
	step := func(seconds int, conditions ...metav1.Condition) *Task {
		c.at = at(seconds)
		w := workload("ns", "t", "a", 1, at(0), conditions...)
		if past > 0 {
			w.Status.AccumulatedPastExecutionTimeSeconds = &past
		}
		x.set(w, false)
		return x.Find("ns", "Job", "t", "")
	}
	want := func(task *Task, state State, waited, ran int) {
		t.Helper()
		if task.State != state || task.Waited(c.at) != time.Duration(waited)*time.Second || task.Ran(c.at) != time.Duration(ran)*time.Second {
			t.Errorf("at %s it is %s, waited %s and ran %s, want %s, %d s and %d s", c.at.Sub(start), task.State, task.Waited(c.at), task.Ran(c.at), state, waited, ran)
		}
	}
	// checked has its quota two seconds before it is admitted.
	checked := func(seconds, waited, ran int, more ...metav1.Condition) {
		t.Helper()
		if checks {
			want(step(seconds, append(more, condition("QuotaReserved", true, "QuotaReserved", at(seconds)), condition("Admitted", false, "UnsatisfiedChecks", at(seconds)))...), Starting, waited, ran)
		}
	}
	before := func(n int) []metav1.Condition {
		return []metav1.Condition{condition("Evicted", false, "QuotaReserved", at(n)), condition("Preempted", false, "QuotaReserved", at(n)), condition("Requeued", true, "Preempted", at(30))}
	}
	want(step(4, waits(at(0))...), Pending, 4, 0)
	checked(8, 8, 0)
	want(step(15, runs(at(10))...), Running, 10, 5)
	evicted := func(n int) []metav1.Condition {
		return []metav1.Condition{condition("QuotaReserved", false, "Pending", at(n)), condition("Admitted", false, "NoReservation", at(n)), condition("Evicted", true, "Preempted", at(n)), condition("Preempted", true, "InClusterQueue", at(n)), condition("Requeued", true, "Preempted", at(30))}
	}
	past = 20 // it ran from 10 to 30
	want(step(37, evicted(30)...), Preempted, 7, 20)
	again := func(n int) []metav1.Condition {
		return append(runs(at(n)), before(n)...)
	}
	checked(38, 8, 20, before(38)...)
	want(step(45, again(40)...), Running, 10, 25)
	past = 30 // and from 40 to 50
	want(step(53, evicted(50)...), Preempted, 3, 30)
	// Requeued still says 30: without the memory of 50, the wait would be 31 s.
	checked(59, 9, 30, before(59)...)
	want(step(66, again(61)...), Running, 11, 35)
	want(step(72, append(again(61), condition("Finished", true, "Succeeded", at(70)))...), Succeeded, 11, 39)

	rows, _ := x.Classes(func(string) bool { return true }, 0)
	if len(rows) != 1 || rows[0].Waits != 3 || rows[0].AverageWait != (10+10+11)*time.Second/3 || rows[0].LongestWait != 11*time.Second ||
		rows[0].Runs != 3 || rows[0].AverageRun != (20+10+9)*time.Second/3 || rows[0].LongestRun != 20*time.Second {
		t.Errorf("its class is %+v", rows)
	}
}

// A task whose job was deleted is gone, whichever of its Workloads is told of
// first: it has not succeeded, nor is its job one without a Workload.
func TestOrphanedWorkload(t *testing.T) {
	slice := func(name, of string, conditions ...metav1.Condition) *kueue.Workload {
		w := workload("ns", "t", "a", 1, start, conditions...)
		w.Name, w.UID, w.Annotations = name, types.UID(name), map[string]string{sliceName: "first"}
		if of != "" {
			w.Annotations[replaces] = "ns/" + of
		}
		return w
	}
	outgrown := slice("first", "", append(runs(start), condition("Finished", true, "WorkloadSliceReplaced", start))...)
	orphan := condition("Finished", true, "OwnerNotFound", start)
	for name, steps := range map[string][]func(x *Index){
		"one Workload": {func(x *Index) { x.set(slice("only", "", append(runs(start), orphan)...), false) }},
		"of two slices, the one that runs": {
			func(x *Index) { x.set(outgrown, false) },
			func(x *Index) { x.set(slice("second", "first", append(runs(start), orphan)...), false) },
			func(x *Index) { x.drop(slice("second", "first")) },
		},
		"the slice that runs is deleted first": {
			func(x *Index) { x.set(outgrown, false) },
			func(x *Index) { x.drop(slice("second", "first")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newTestIndex()
			x.told()
			x.setJob(jobObject("ns", "t")) // of which nobody has said yet that it is gone
			x.set(slice("only", "", runs(start)...), false)
			if len(steps) > 1 {
				x.set(outgrown, false)
				x.drop(slice("only", ""))
				x.set(slice("second", "first", runs(start)...), false)
			}
			if task := x.Find("ns", "Job", "t", ""); task == nil || task.State != Running || task.NoWorkload {
				t.Fatalf("before, it is %+v", task)
			}
			for i, step := range steps {
				if step(x); i == 0 && len(steps) > 1 {
					continue
				}
				if task := x.Find("ns", "Job", "t", ""); task != nil {
					t.Errorf("after %d steps it is still there, %s", i+1, task.State)
				}
			}
		})
	}
}

// A task that is being stopped is not explained by the checks that Kueue resets
// meanwhile.
func TestStoppingIsNotExplained(t *testing.T) {
	w := workload("ns", "t", "a", 1, start, append(runs(start), condition("Evicted", true, "Preempted", start))...)
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStatePending}}
	task := FromWorkloads([]*kueue.Workload{w}, nil)
	if verdict, err := (viewer{}).why(t.Context(), task, nil, PodCount{}); task.State != Stopping || verdict != nil || err != nil {
		t.Errorf("%s, it is explained by %+v, %v", task.State, verdict, err)
	}
}

// What ended of a Job's pods says nothing about those that are missing: they were
// replaced, or are no longer counted.
func TestMissingPods(t *testing.T) {
	for _, tc := range []struct {
		kind    string
		missing int32
	}{{"Job", 1}, {podGroup, 0}} {
		task := &Task{Kind: tc.kind, Size: Size{Admitted: 2}}
		placed := placement(task, nil, PodCount{Total: 1, Ended: 1})
		if placed == nil && tc.missing > 0 || placed != nil && placed.Missing != tc.missing {
			t.Errorf("of a %s it is %+v, want %d missing", tc.kind, placed, tc.missing)
		}
	}
}

// A list by place: those of several queues beside one another, and what stands in
// none last, whichever way round.
func TestListByPlace(t *testing.T) {
	x, _ := newTestIndex()
	for i, queue := range []string{"b", "b", "a"} {
		w := workload("ns", fmt.Sprint("t", i), "", int32(i), start.Add(time.Duration(i)*time.Second), waits(start)...)
		w.Spec.QueueName = kueue.LocalQueueName(queue)
		x.set(w, false)
	}
	x.set(workload("ns", "runs", "", 9, start.Add(time.Minute), runs(start)...), false)
	for _, tc := range []struct {
		q    Query
		want string
	}{
		{Query{Sort: ByPosition}, "t1 1 t2 1 t0 2 runs 0 "},
		{Query{Sort: ByPosition, Descending: true}, "t0 2 t2 1 t1 1 runs 0 "},
		{Query{Sort: ByPosition, Namespaces: []string{"ns"}}, "t1 1 t2 1 t0 2 runs 0 "},
		{Query{Sort: ByPosition, States: []State{Pending}, Descending: true}, "t0 2 t2 1 t1 1 "},
	} {
		f, got := x.find(tc.q, nil), ""
		for i, task := range f.page {
			got += fmt.Sprintf("%s %d ", task.Name, f.places[i])
		}
		if got != tc.want {
			t.Errorf("%+v finds %s, want %s", tc.q, got, tc.want)
		}
	}
}

// The first of those that wait, of several queues in turns.
func TestHeadOfQueues(t *testing.T) {
	x, _ := newTestIndex()
	for i, queue := range []string{"b", "b", "b", "a", "a"} {
		w := workload("ns", fmt.Sprint("t", i), "", int32(i), start, waits(start)...)
		w.Spec.QueueName = kueue.LocalQueueName(queue)
		x.set(w, false)
	}
	x.set(workload("other", "t", "", 9, start, waits(start)...), false)
	x.set(workload("ns", "runs", "", 9, start, runs(start)...), false)
	list, of := x.head(func(namespace string) bool { return namespace == "ns" }, 4)
	names := ""
	for _, first := range list {
		names += fmt.Sprintf("%s %d ", first.task.Name, first.place)
	}
	if names != "t4 1 t2 1 t3 2 t1 2 " || of != 5 {
		t.Errorf("they are %sof %d", names, of)
	}
}

// Slices of an elastic job are one task, which runs and wants more.
func TestElasticJobIsOneTask(t *testing.T) {
	x, c := newTestIndex()
	slice := func(n int, count int32, created time.Time, conditions ...metav1.Condition) *kueue.Workload {
		w := workload("ns", "grows", "a", 1, created, conditions...)
		w.Name, w.UID = fmt.Sprintf("job-grows-%d", n), types.UID(fmt.Sprint(n))
		w.Annotations = map[string]string{sliceName: "job-grows-1"}
		w.Spec.PodSets[0].Count = count
		if len(conditions) > 1 {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &count}}}
		}
		return w
	}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	x.set(slice(1, 2, at(0), append(runs(at(1)), condition("Finished", true, replaced, at(11)))...), false)
	x.set(slice(2, 3, at(10), runs(at(11))...), false)
	x.set(slice(3, 6, at(20), waits(at(20))...), false)
	c.at = at(31)
	task := x.Find("ns", "job", "grows", "")
	if x.Len() != 1 || task.State != Running || task.Size != (Size{Min: 6, Admitted: 3, Wanted: 6, Guaranteed: 3}) || !task.Growing() || task.Ran(c.at) != 30*time.Second || !task.Submitted.Equal(at(0)) {
		t.Errorf("of %d tasks it is %+v, %s", x.Len(), task, task.Ran(c.at))
	}
	x.drop(slice(3, 6, at(20)))
	if task = x.Find("ns", "job", "grows", ""); task.Growing() || task.Size.Wanted != 3 {
		t.Errorf("without its last slice it is %+v", task)
	}
}

// A guaranteed part and increments of lower priority, as HyperPod's operator
// makes them, are one task.
func TestIncrementsAreOneTask(t *testing.T) {
	x, _ := newTestIndex()
	for i, priority := range []int32{90, 10, 10} {
		state := runs(start)
		if i == 2 {
			state = waits(start)
		}
		w := workload("ns", "train", "a", priority, start, state...)
		w.Name, w.UID = fmt.Sprintf("train-%d", i), types.UID(fmt.Sprint(i))
		w.Spec.PodSets[0].Count = 4
		if i < 2 {
			w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: &w.Spec.PodSets[0].Count}}}
		}
		x.set(w, false)
	}
	task := x.Find("ns", "job", "train", "")
	if x.Len() != 1 || task.State != Running || task.Priority != 90 || task.Size != (Size{Min: 4, Admitted: 8, Wanted: 12, Guaranteed: 4}) {
		t.Errorf("of %d tasks it is %+v", x.Len(), task)
	}
}

// Bad objects make no trouble: they are shown with what they have.
func TestBadWorkloads(t *testing.T) {
	x, c := newTestIndex()
	future := start.Add(time.Hour)
	bad := []*kueue.Workload{
		{},
		{ObjectMeta: metav1.ObjectMeta{UID: "1", Namespace: "ns", Name: "bare"}},
		workload("ns", "future", "", 0, future, runs(future)...),
		workload("ns", "unknown", "", 0, start, condition("QuotaReserved", false, "SomethingNew", start), condition("Other", true, "", start)),
		{ObjectMeta: metav1.ObjectMeta{UID: "2", Namespace: "ns", Name: "group", OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "a"}, {Kind: "Pod", Name: "b"}}}},
		{ObjectMeta: metav1.ObjectMeta{UID: "3", Namespace: "ns", Name: "set", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "s"}}}},
	}
	for _, w := range bad {
		x.set(w, false)
	}
	f := x.find(Query{}, nil)
	if f.total != len(bad) {
		t.Errorf("there are %d of %d", f.total, len(bad))
	}
	if task := x.Find("ns", "job", "future", ""); task.Ran(c.at) != 0 || task.Waited(c.at) != 0 {
		t.Errorf("times in the future are %s and %s", task.Ran(c.at), task.Waited(c.at))
	}
	if x.Find("ns", "podgroup", "group", "") == nil || x.Find("ns", "statefulset", "web", "") == nil || x.Find("ns", "workload", "bare", "") == nil {
		t.Error("owners are not known")
	}
}
