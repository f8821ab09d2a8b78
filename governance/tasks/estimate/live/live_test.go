package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/estimate"
	"kuota.dev/kuota/governance/tasks/estimate/live"
	"kuota.dev/kuota/governance/tasks/taskstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// simulator answers about one snapshot with Kueue's scheduler, in this process.
type simulator struct {
	snapshot *simulate.Snapshot
	engine   engine.Engine
}

func (s *simulator) Snapshot(context.Context) (*simulate.Snapshot, error) { return s.snapshot, nil }

func (s *simulator) Answer(ctx context.Context, of *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	return s.engine.Answer(ctx, of, q)
}

const gpu = "nvidia.com/gpu"

var now = time.Now().UTC().Truncate(time.Second)

// workload returns a Workload of one pod; running is since when it has quota, zero for
// one that waits.
func workload(name string, gpus int64, submitted, running time.Time) *kueue.Workload {
	amount := *resource.NewQuantity(gpus, resource.DecimalSI)
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vision", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(submitted)},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To[int32](10), Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: amount}}}}}}}}},
	}
	if !running.IsZero() {
		w.Status.Admission = &kueue.Admission{ClusterQueue: "vision", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1),
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: "p5"}, ResourceUsage: corev1.ResourceList{gpu: amount}}}}
		for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(running), Reason: condition})
		}
	}
	return w
}

// newEstimator has a team with 8 GPUs, a task that has run for 30 minutes, one that
// waits for it, and one that is too large.
func newEstimator(t *testing.T) (*live.Estimator, *history.Store, <-chan struct{}) {
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	snapshot := &simulate.Snapshot{
		Time:       now,
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "vision"}}},
		Flavors:    []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}},
		ClusterQueues: []*kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: "vision"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: resource.MustParse("8")}}}}}},
		}}},
		LocalQueues: []*kueue.LocalQueue{{ObjectMeta: metav1.ObjectMeta{Namespace: "vision", Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "vision"}}},
		Workloads: []*kueue.Workload{
			workload("runs", 8, now.Add(-time.Hour), now.Add(-30*time.Minute)), workload("huge", 9, now.Add(-2*time.Minute), time.Time{}),
			workload("waits", 8, now.Add(-time.Minute), time.Time{}),
		},
	}
	changed := make(chan struct{}, 10)
	return &live.Estimator{
		Simulator: &simulator{snapshot: snapshot}, Store: store,
		Task: func(uid types.UID) *tasks.Task {
			return &tasks.Task{Name: "train-" + string(uid), UID: "task-" + string(uid), PriorityClass: "high"}
		},
		Teams:   func(context.Context) (clusterstate.Teams, error) { return taskstest.Teams("vision", "vision"), nil },
		Changed: func() { changed <- struct{}{} }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}, store, changed
}

// ran records tasks that ran for 60 to 99 minutes.
func ran(t *testing.T, store *history.Store, n int) {
	var records []history.Record
	for i := range n {
		records = append(records, history.Record{Task: history.Task{
			Namespace: "vision", Kind: "Job", Name: fmt.Sprintf("train-%d", i), UID: fmt.Sprint("past-", i), Team: "vision", PriorityClass: "high",
			SubmittedAt: now.Add(-24 * time.Hour), FinishedAt: now.Add(-time.Hour), RunTime: time.Duration(60+i) * time.Minute,
		}})
	}
	if err := store.RecordTasks(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

func latest(t *testing.T, e *live.Estimator, changed <-chan struct{}) *live.Estimates {
	if known := e.Latest("waits"); known != nil {
		t.Fatalf("got %+v at once", known)
	}
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("not estimated")
	}
	found := e.Latest("waits")
	if found == nil || found.Failed != nil {
		t.Fatalf("got %+v", found)
	}
	return found
}

// refusing refuses the estimate of one task.
type refusing struct{ *history.Store }

func (r refusing) RecordEstimates(ctx context.Context, estimates []history.Estimate) error {
	if slices.ContainsFunc(estimates, func(e history.Estimate) bool { return e.WorkloadUID == "odd" }) {
		return errors.New("refused")
	}
	return r.Store.RecordEstimates(ctx, estimates)
}

// TestEstimates has 40 recorded runs: the running task ends in 30 to 69 minutes. It is
// estimated and recorded behind a task that can never start, and one whose estimate is refused.
func TestEstimates(t *testing.T) {
	e, store, changed := newEstimator(t)
	e.Store = refusing{store}
	of := e.Simulator.(*simulator)
	of.snapshot.Workloads = append([]*kueue.Workload{workload("odd", 8, now, time.Time{})}, of.snapshot.Workloads...)
	ran(t, store, 40)
	found := latest(t, e, changed)
	waits := found.Starts["waits"]
	if middle := (waits.Low + waits.High) / 2; waits.Low <= 0 || waits.Low > 50*time.Minute || waits.High < 50*time.Minute || middle > 2*time.Hour {
		t.Errorf("the task starts in %+v, want a range around 50 minutes", waits)
	}
	if huge := found.Starts["huge"]; !huge.Exceeds || huge.High != 0 {
		t.Errorf("the task that is too large starts in %+v", huge)
	}
	recorded, err := store.Estimates(t.Context(), 10)
	if err != nil || len(recorded) != 1 {
		t.Fatalf("recorded %+v, %v; want one estimate", recorded, err)
	}
	if r := recorded[0]; r.WorkloadUID != "waits" || r.TaskUID != "task-waits" || r.Team != "vision" || r.PriorityClass != "high" || r.Low != waits.Low.Truncate(time.Millisecond) || r.Forecast < 30*time.Minute {
		t.Errorf("recorded %+v", r)
	}
}

// cutting leaves out the starts of a Workload, as if there was no time to simulate them.
type cutting struct {
	*simulator
	key string
}

func (s cutting) Answer(ctx context.Context, of *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	report, err := s.simulator.Answer(ctx, of, q)
	if err == nil {
		delete(report.Starts, s.key)
		report.Cut = true
	}
	return report, err
}

// TestCutSimulations estimates the tasks that start in simulations that ended early, and
// says of the others that nothing is known.
func TestCutSimulations(t *testing.T) {
	e, store, changed := newEstimator(t)
	ran(t, store, 40)
	of := e.Simulator.(*simulator)
	of.snapshot.Workloads = append(of.snapshot.Workloads, workload("later", 8, now, time.Time{}))
	e.Simulator = cutting{of, "vision/later"}
	found := latest(t, e, changed)
	if waits := found.Starts["waits"]; waits.High == 0 || waits.Unknown {
		t.Errorf("got %+v of a task that starts", waits)
	}
	if later := found.Starts["later"]; later != (live.Start{Unknown: true}) {
		t.Errorf("got %+v of a task that does not start, want unknown", later)
	}
	if huge := found.Starts["huge"]; huge != (live.Start{Exceeds: true}) {
		t.Errorf("got %+v of a task that is too large", huge)
	}
}

// TestRecord shows how many past estimates held, and ranges become wider when they
// did not.
func TestRecord(t *testing.T) {
	e, store, changed := newEstimator(t)
	ran(t, store, 40)
	var past []history.Estimate
	var records []history.Record
	for i := range 60 {
		uid, at := fmt.Sprint("before-", i), now.Add(-48*time.Hour)
		past = append(past, history.Estimate{WorkloadUID: uid, TaskUID: uid, Team: "vision", PriorityClass: "high", MadeAt: at, Low: 30 * time.Minute, High: time.Hour, Forecast: 45 * time.Minute})
		wait := 45 * time.Minute
		if i%2 == 1 {
			wait = 10 * time.Hour
		}
		records = append(records, history.Record{Task: history.Task{Namespace: "vision", Name: uid, UID: uid, Team: "vision", SubmittedAt: at}, Spans: []history.Span{{WorkloadUID: uid, Kind: history.Wait, Began: at, Ended: at.Add(wait)}}})
	}
	if err := store.RecordEstimates(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	if err := store.RecordTasks(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	found := latest(t, e, changed)
	if want := (estimate.Record{Held: 30, Of: 60}); found.Record != want {
		t.Errorf("the record is %+v, want %+v", found.Record, want)
	}
	if waits := found.Starts["waits"]; waits.High < 5*time.Hour {
		t.Errorf("the task starts in %+v, want a range that past estimates widened", waits)
	}
}

// TestSubmissions has a history in which a task of a higher priority was submitted each
// ten minutes, each day: the task that waits starts after most of those of a day.
func TestSubmissions(t *testing.T) {
	e, store, changed := newEstimator(t)
	ran(t, store, 40)
	var records []history.Record
	for i := range 3 * 144 {
		at := now.Add(-72*time.Hour + time.Duration(i)*10*time.Minute)
		task := history.Task{Namespace: "vision", Kind: "Job", Name: fmt.Sprintf("eval-%d", i), UID: fmt.Sprint("eval-", i), Team: "vision", PriorityClass: "high", Priority: 1000, Queue: "queue",
			Pools: []string{"p5"}, Requests: map[string]resources.Amount{gpu: 8}, SubmittedAt: at, FinishedAt: at.Add(12 * time.Minute), RunTime: 12 * time.Minute}
		if i%144 > 36 { // for six hours of a day
			task.Queue = "deleted"
		}
		records = append(records, history.Record{Task: task})
	}
	if err := store.RecordTasks(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	latest(t, e, changed)
	recorded, err := store.Estimates(t.Context(), 10)
	if err != nil || len(recorded) != 1 {
		t.Fatalf("recorded %+v, %v; want one estimate", recorded, err)
	}
	if f := recorded[0].Forecast; f < 7*time.Hour || f > 10*time.Hour {
		t.Errorf("forecast %v, want the time of 36 tasks of 12 minutes after the one that runs", f)
	}
}

// TestTooFewRuns has 29 recorded runs.
func TestTooFewRuns(t *testing.T) {
	e, store, changed := newEstimator(t)
	ran(t, store, estimate.MinRuns-1)
	if found := latest(t, e, changed); !found.TooFew() || found.Runs != estimate.MinRuns-1 || len(found.Starts) != 0 {
		t.Errorf("got %+v, want too few runs", found)
	}
}
