package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/quota"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
)

const gpu = "nvidia.com/gpu"

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// cluster builds snapshots with one flavor.
type cluster struct{ *simulate.Snapshot }

func newCluster() cluster {
	return cluster{&simulate.Snapshot{Time: now, Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}}, Cohorts: []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "kuota"}}}}}
}

func (c cluster) team(name string, gpus int64) {
	c.Namespaces = append(c.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	c.ClusterQueues = append(c.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
		Preemption:     &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}}},
	}})
	c.LocalQueues = append(c.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)}})
}

func (c cluster) task(team, name string, gpus int64, priority int32, age time.Duration) *kueue.Workload {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(team + "-" + name), CreationTimestamp: metav1.NewTime(now.Add(-age))},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To(priority), Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}}}}}},
	}
	c.Workloads = append(c.Workloads, w)
	return w
}

func (c cluster) running(team, name string, gpus int64, priority int32, age time.Duration) {
	w := c.task(team, name, gpus, priority, age)
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(team), PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: "p5"}, ResourceUsage: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)), Reason: condition})
	}
}

// TestAnswer simulates a higher priority class: the task preempts one of its own
// team, and nothing happens without the change.
func TestAnswer(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.team("speech", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.running("speech", "b", 4, 10, time.Hour)
	c.task("speech", "low", 8, 10, time.Minute)
	waiting := c.task("vision", "waits", 8, 10, time.Minute)
	raised := waiting.DeepCopy()
	raised.Spec.Priority = ptr.To[int32](100)
	q := &simulate.Question{Change: simulate.Change{Workloads: []*kueue.Workload{raised}}, Target: "vision/waits", Ties: 3}
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, q)
	if err != nil {
		t.Fatal(err)
	}
	usage := quota.FlavorResourceQuantities{{Flavor: "p5", Resource: gpu}: 8}
	four := quota.FlavorResourceQuantities{{Flavor: "p5", Resource: gpu}: 4}
	started := simulate.Effect{Workload: "vision/waits", ClusterQueue: "vision", After: 500 * time.Millisecond, Usage: usage}
	want := &simulate.Report{
		Settled: true, Target: &started, Started: []simulate.Effect{started},
		Preempted: []simulate.Effect{{Workload: "vision/a", ClusterQueue: "vision", Usage: usage, By: "vision/waits", Reason: kueue.InClusterQueueReason}},
		Queues: map[string]simulate.QueueChange{
			"vision": {Before: simulate.Queue{Usage: usage, Pending: 1}, After: simulate.Queue{Usage: usage, Pending: 1}},
			"speech": {Before: simulate.Queue{Usage: four, Pending: 1}, After: simulate.Queue{Usage: four, Pending: 1}},
		},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
}

// TestClosedPreemptionGate shows why growth of ElasticJobs cannot be kept from reclaiming by a
// preemption gate: with its default feature gates Kueue preempts for a Workload whose gate is
// closed.
func TestClosedPreemptionGate(t *testing.T) {
	for gate, want := range map[string]int{"": 1, string(features.ConcurrentAdmission): 0, string(features.MultiKueueOrchestratedPreemption): 0} {
		c := newCluster()
		c.team("vision", 4)
		c.team("speech", 4)
		c.running("speech", "borrows", 8, 10, time.Hour)
		growth := c.task("vision", "growth", 4, -1_000_000, 0)
		growth.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: "kuota.dev/growth"}}
		if gate != "" {
			c.Configuration.FeatureGates = map[string]bool{gate: true}
		}
		report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Target: "vision/growth", Ties: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Preempted) != want {
			t.Errorf("with the gate %q, Kueue preempts %+v, want %d", gate, report.Preempted, want)
		}
	}
}

// TestTie has one free GPU and two tasks, created in the same second in two queues.
func TestTie(t *testing.T) {
	c := newCluster()
	c.team("vision", 0)
	c.team("speech", 0)
	c.team("idle", 1)
	c.task("vision", "one", 1, 10, time.Minute)
	c.task("speech", "one", 1, 10, time.Minute)
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Target: "vision/one", Ties: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Started) != 2 || !report.Started[0].Tied || !report.Started[1].Tied || !report.TargetTied {
		t.Errorf("started %+v, target tied %v; want both, tied", report.Started, report.TargetTied)
	}
}

// TestSameReport answers a question about random clusters 20 times each.
func TestSameReport(t *testing.T) {
	for seed := range uint64(4) {
		c := randomCluster(seed)
		var first *simulate.Report
		for range 20 {
			report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = report
			} else if diff := cmp.Diff(first, report); diff != "" {
				t.Fatalf("seed %d: reports differ (-first +other):\n%s", seed, diff)
			}
		}
	}
}

// randomCluster has teams that borrow and preempt, tasks created in the same few
// seconds, and fair sharing in every second cluster.
func randomCluster(seed uint64) cluster {
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCluster()
	if seed%2 == 1 {
		c.Configuration.FairSharing = &config.FairSharing{}
	}
	for q := range 2 + r.IntN(5) {
		team := fmt.Sprintf("team-%d", q)
		c.team(team, r.Int64N(9))
		for i := range r.IntN(6) {
			c.running(team, fmt.Sprintf("r-%d", i), 1+r.Int64N(4), r.Int32N(3)*10, time.Hour)
		}
		for i := range r.IntN(12) {
			c.task(team, fmt.Sprintf("w-%d", i), 1+r.Int64N(8), r.Int32N(4)*10, time.Duration(r.IntN(5))*time.Second)
		}
	}
	return c
}

func BenchmarkRun(b *testing.B) {
	for _, distinct := range []int{2, 50} {
		c := newCluster()
		for q := range 100 {
			team := fmt.Sprintf("team-%d", q)
			c.team(team, 8)
			for i := range 8 {
				c.running(team, fmt.Sprintf("r-%d", i), 1, 10, time.Hour)
			}
			for i := range 35 {
				c.task(team, fmt.Sprintf("w-%d", i), int64(1+i%distinct), int32(i%4), time.Duration(i+1)*time.Minute+time.Duration(q)*time.Second)
			}
		}
		last := ""
		b.Run(fmt.Sprintf("shapes-%d", distinct), func(b *testing.B) {
			for b.Loop() {
				out, err := engine.Run(b.Context(), c.Snapshot, engine.Options{})
				if err != nil {
					b.Fatal(err)
				}
				last = fmt.Sprintf("%d events, settled %v", len(out.Events), out.Settled)
			}
			b.Log(last)
		})
	}
}

// TestScope has two cohorts: a question about one does not simulate the other.
func TestScope(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.team("other", 8)
	c.ClusterQueues[1].Spec.CohortName = "elsewhere"
	c.task("vision", "a", 8, 10, time.Minute)
	c.task("other", "b", 8, 10, time.Minute)
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Target: "vision/a"})
	if err != nil {
		t.Fatal(err)
	}
	if report.Target == nil || len(report.Started) != 1 || len(report.Queues) != 1 {
		t.Errorf("report %+v, want a started task of one queue", report)
	}
}

// TestAsItIs asks about two tasks of a snapshot in which nothing happens: the second
// answer needs no run, which would fail.
func TestAsItIs(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.task("vision", "one", 8, 10, time.Minute)
	c.task("vision", "two", 8, 10, time.Minute)
	e, ctx := &engine.Engine{}, t.Context()
	for _, target := range []string{"vision/one", "vision/two"} {
		report, err := e.Answer(ctx, c.Snapshot, &simulate.Question{Target: target, OnlyTarget: true})
		if err != nil || report.Target != nil {
			t.Errorf("%s: report %+v, error %v; want none and no start", target, report, err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
}

// TestTriedFirst frees quota for one of two tasks. Kueue tries the head of a StrictFIFO
// queue, and a task that the change touches, before those that it tried in vain.
func TestTriedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		strict, raised, restarted bool
		message                   string // of the newer task's condition
		want                      string
	}{
		"in the order of creation": {want: "vision/older"},
		"head of StrictFIFO":       {strict: true, want: "speech/newer"},
		"tried in each cycle":      {message: "Workload no longer fits after processing another workload", want: "speech/newer"},
		"changed":                  {raised: true, want: "speech/newer"},
		"restart of Kueue":         {strict: true, restarted: true, want: "vision/older"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.team("vision", 0)
			c.team("speech", 0)
			c.team("idle", 4)
			c.running("idle", "ends", 4, 10, time.Hour)
			if test.strict {
				c.ClusterQueues[1].Spec.QueueingStrategy = kueue.StrictFIFO
			}
			for _, w := range []*kueue.Workload{c.task("vision", "older", 4, 10, 2*time.Minute), c.task("speech", "newer", 4, 10, time.Minute)} {
				w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: kueue.WorkloadQuotaReservedReasonWaitingForQuota}}
			}
			c.Workloads[2].Status.Conditions[0].Message = test.message
			change := simulate.Change{Removed: simulate.Removed{Workloads: []types.NamespacedName{{Namespace: "idle", Name: "ends"}}}}
			if test.raised {
				change.Workloads = []*kueue.Workload{c.Workloads[2].DeepCopy()}
			}
			if test.restarted {
				change.Configuration = &c.Configuration
			}
			report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Change: change})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Started) != 1 || report.Started[0].Workload != test.want {
				t.Errorf("got started %+v, want %s", report.Started, test.want)
			}
		})
	}
}

// TestTermination preempts a task, whose end takes half a second or, in every second
// order of ties, five seconds.
func TestTermination(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.task("vision", "urgent", 8, 100, time.Minute)
	for tie, want := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		out, err := engine.Run(t.Context(), c.Snapshot, engine.Options{Tie: uint64(tie), Until: "vision/urgent"})
		if err != nil {
			t.Fatal(err)
		}
		if last := out.Events[len(out.Events)-1]; last.Workload != "vision/urgent" || last.After != want {
			t.Errorf("order %d: the last event is %+v, want a start after %s", tie, last, want)
		}
	}
}

// TestEnded ends the run of a task that has quota in the snapshot, by its run time and
// by deactivating it: the next one starts.
func TestEnded(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.task("vision", "waits", 8, 10, time.Minute)
	t.Run("finished", func(t *testing.T) {
		out, err := engine.Run(t.Context(), c.Snapshot, engine.Options{Remaining: map[string]time.Duration{"vision/a": time.Minute}, Horizon: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(out.Events, func(e simulate.Event) bool { return e.Kind == simulate.Started && e.Workload == "vision/waits" }) {
			t.Fatalf("the task does not start: %+v", out.Events)
		}
	})
	t.Run("deactivated", func(t *testing.T) {
		stopped := c.Workloads[0].DeepCopy()
		stopped.Spec.Active = ptr.To(false)
		q := &simulate.Question{Change: simulate.Change{Workloads: []*kueue.Workload{stopped}}, Target: "vision/waits"}
		report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, q)
		if err != nil {
			t.Fatal(err)
		}
		if report.Target == nil {
			t.Fatalf("the task does not start: %+v", report)
		}
	})
}

// TestDraws has two draws of the remaining time of one task, and another task that
// can never start.
func TestDraws(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.task("vision", "first", 8, 10, 2*time.Minute)
	c.task("vision", "second", 8, 10, time.Minute)
	c.task("vision", "huge", 9, 10, time.Minute)
	draw := func(remaining, first time.Duration) simulate.Draw {
		return simulate.Draw{RunTimes: simulate.RunTimes{Remaining: map[string]time.Duration{"vision/a": remaining}, Whole: map[string]time.Duration{"vision/first": first}}}
	}
	q := &simulate.Question{Horizon: 24 * time.Hour, Draws: []simulate.Draw{draw(time.Minute, time.Hour), draw(10*time.Minute, 48*time.Hour)}}
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, q)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*simulate.Start{
		"vision/first":  {After: []time.Duration{61 * time.Second, 601 * time.Second}},
		"vision/second": {After: []time.Duration{time.Hour + 62*time.Second, simulate.NotStarted}},
		"vision/huge":   {After: []time.Duration{simulate.NotStarted, simulate.NotStarted}, Exceeds: true},
	}
	if diff := cmp.Diff(want, report.Starts); diff != "" {
		t.Errorf("starts differ (-want +got):\n%s", diff)
	}
}

// expiring is a context whose deadline passes after so many calls of Err.
type expiring struct {
	context.Context
	left int
}

func (c *expiring) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestDrawsWithoutTime has tasks of one team that take longer to simulate than there is time:
// what started before is known, of all teams.
func TestDrawsWithoutTime(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.team("speech", 8)
	c.running("speech", "a", 8, 10, time.Hour)
	c.task("speech", "soon", 8, 10, time.Minute)
	options := engine.Options{Arrivals: true, Partial: true, Horizon: 240 * time.Hour, RunTimes: map[string]time.Duration{}, Remaining: map[string]time.Duration{"speech/a": time.Minute}}
	for i := range 200 {
		name := fmt.Sprint("sweep-", i)
		c.task("vision", name, 8, 10, time.Minute)
		options.RunTimes["vision/"+name] = time.Hour
	}
	out, err := engine.Run(&expiring{t.Context(), 50}, c.Snapshot, options)
	if err != nil || !out.Cut {
		t.Fatalf("got %+v, %v, want a run that was cut", out, err)
	}
	if starts := simulate.Starts([]string{"speech/soon", "vision/sweep-199"}, []*simulate.Outcome{out}); starts["speech/soon"] == nil || starts["speech/soon"].After[0] > 2*time.Minute || starts["vision/sweep-199"] != nil {
		t.Errorf("got %+v of %d events", starts, len(out.Events))
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	report, err := new(engine.Engine).Answer(late, c.Snapshot, &simulate.Question{Horizon: time.Hour, Draws: make([]simulate.Draw, 20)})
	if err != nil || !report.Cut {
		t.Errorf("got %+v, %v without any time, want an answer that is cut", report, err)
	}
}

// TestDrawsSubmissions submits a task of a higher priority before quota becomes free, in
// one draw of two.
func TestDrawsSubmissions(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.running("vision", "a", 8, 10, time.Hour)
	c.task("vision", "waits", 8, 10, time.Minute)
	c.ClusterQueues[0].Spec.Preemption = nil
	submitted := c.task("vision", "template", 8, 100, 0)
	c.Workloads = c.Workloads[:len(c.Workloads)-1]
	draw := simulate.Draw{RunTimes: simulate.RunTimes{Remaining: map[string]time.Duration{"vision/a": 10 * time.Minute}, Whole: map[string]time.Duration{"vision/waits": time.Hour}}}
	later := draw
	later.Submissions = []simulate.Submission{{Workload: 0, After: 5 * time.Minute, RunTime: 20 * time.Minute}}
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Horizon: 24 * time.Hour, Draws: []simulate.Draw{draw, later}, Submitted: []*kueue.Workload{submitted}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*simulate.Start{"vision/waits": {After: []time.Duration{601 * time.Second, 1802 * time.Second}}}
	if diff := cmp.Diff(want, report.Starts); diff != "" {
		t.Errorf("starts differ (-want +got):\n%s", diff)
	}
}

// TestTriedEach has a cluster whose Kueue tries each of equal Workloads: so does the
// simulation, unless there are many.
func TestTriedEach(t *testing.T) {
	for _, tasks := range []int{1000, 1001} {
		c := newCluster()
		c.Configuration.FeatureGates = map[string]bool{"SchedulingEquivalenceHashing": false}
		c.team("vision", 1)
		for i := range tasks {
			c.task("vision", fmt.Sprint("waits-", i), 2, 10, time.Minute)
		}
		if _, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{}); err != nil {
			t.Fatal(err)
		}
		if once := features.Enabled(features.SchedulingEquivalenceHashing); once != (tasks > 1000) {
			t.Errorf("%d Workloads: equal ones are tried once: %t", tasks, once)
		}
	}
}

// TestArrivals has a task that is submitted later, and starts then.
func TestArrivals(t *testing.T) {
	c := newCluster()
	c.team("vision", 8)
	c.task("vision", "later", 8, 10, -10*time.Minute)
	out, err := engine.Run(t.Context(), c.Snapshot, engine.Options{Arrivals: true, Horizon: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Events) != 1 || out.Events[0].After.Round(time.Second) < 10*time.Minute {
		t.Errorf("events %+v, want a start after ten minutes", out.Events)
	}
}

// TestRestart resumes a queue whose tasks were drained, activates a stopped task, and
// passes a backoff: each can start, and what its queue could never have is no news.
func TestRestart(t *testing.T) {
	c := newCluster()
	c.team("vision", 4)
	hold := kueue.HoldAndDrain
	c.ClusterQueues[0].Spec.StopPolicy = &hold
	evicted := func(name, reason string) *kueue.Workload {
		w := c.task("vision", name, 1, 10, time.Minute)
		w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: reason}}
		return w
	}
	evicted("drained", kueue.WorkloadEvictedByClusterQueueStopped)
	evicted("queue", kueue.WorkloadEvictedByLocalQueueStopped)
	evicted("active", kueue.WorkloadDeactivated)
	later := evicted("later", kueue.WorkloadEvictedByPodsReadyTimeout)
	later.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(now.Add(30 * time.Second)))}
	c.task("vision", "large", 9, 10, time.Minute)
	stopped := evicted("stopped", kueue.WorkloadDeactivated)
	stopped.Spec.Active = ptr.To(false)
	resumed := c.ClusterQueues[0].DeepCopy()
	resumed.Spec.StopPolicy = nil
	report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Change: simulate.Change{ClusterQueues: []*kueue.ClusterQueue{resumed}}})
	if err != nil {
		t.Fatal(err)
	}
	var started []string
	for _, e := range report.Started {
		started = append(started, e.Workload+" "+e.After.String())
	}
	want := []string{"vision/active 0s", "vision/drained 0s", "vision/queue 0s", "vision/later 30s"}
	if diff := cmp.Diff(want, started); diff != "" || report.Exceeding != nil {
		t.Errorf("exceeding %v, started differ (-want +got):\n%s", report.Exceeding, diff)
	}
}
