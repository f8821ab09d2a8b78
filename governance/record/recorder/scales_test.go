package recorder

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// elasticJob returns an ElasticJob whose status has the events first to last.
func elasticJob(uid types.UID, first, last int64) *v1alpha1.ElasticJob {
	e := &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns-vision", Name: "train", UID: uid}}
	e.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("8"), "vpc.amazonaws.com/efa": resource.MustParse("4"),
	}}}}
	for n := first; n <= last; n++ {
		e.Status.ScaleEvents = append(e.Status.ScaleEvents, v1alpha1.ScaleEvent{
			Number: n, Time: metav1.NewTime(at(int(n))), From: int32(n - 1), To: int32(n), Minimum: 1, Cause: v1alpha1.ScaleIdleCompute,
		})
	}
	return e
}

func nothing(types.UID) *tasks.Task { return nil }

// Events are recorded once, although a recorder starts again, or notes all of them again,
// and the status keeps only the latest.
func TestScaleEventsAreRecordedOnce(t *testing.T) {
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	added := 0
	record := func(l *scaleLog) {
		t.Helper()
		for noted := l.take(7); len(noted) > 0; noted = l.take(7) {
			var events []history.ScaleEvent
			for _, e := range noted {
				events = append(events, newScaleEvent(e, taskstest.Teams("ns-vision", "vision"), nothing))
			}
			once, err := store.RecordScaleEvents(t.Context(), events)
			if err != nil {
				t.Fatal(err)
			}
			added += len(once)
		}
	}
	first := &scaleLog{}
	first.OnAdd(elasticJob("a", 1, 3), true)
	for last := int64(4); last <= 40; last++ {
		first.OnUpdate(nil, elasticJob("a", max(1, last-31), last))
		if last%5 == 0 {
			record(first)
		}
	}
	first.noteAll()
	record(first)
	second := &scaleLog{} // such as after a restart
	second.OnAdd(elasticJob("a", 11, 42), true)
	second.OnAdd(elasticJob("b", 1, 2), true)
	second.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: elasticJob("b", 1, 3)}) // with an event that the watch missed
	second.noteAll()
	record(second)

	for uid, want := range map[string]int64{"a": 42, "b": 3} {
		events, err := store.ScaleEvents(t.Context(), uid, 100)
		if err != nil || int64(len(events)) != want || events[want-1].Number != want || history.GainOf(events, time.Now()).Missing != nil {
			t.Errorf("task %s has %d events, want 1 to %d (%v)", uid, len(events), want, err)
		}
	}
	if added != 45 {
		t.Errorf("%d events were added, want 45", added)
	}
}

func TestNewScaleEvent(t *testing.T) {
	job := elasticJob("a", 1, 1)
	e := v1alpha1.ScaleEvent{Number: 2, Time: metav1.NewTime(at(9)), From: 3, To: 1, Minimum: 1, Cause: v1alpha1.ScalePreempted, ForWorkload: "w9", By: "ada", Node: "gpu-1",
		Idle: &v1alpha1.IdleSources{Own: true, Lenders: []types.UID{"uid-nlp", "uid-deleted"}}}
	want := history.ScaleEvent{
		Namespace: "ns-vision", Name: "train", TaskUID: "a", Team: "vision", Number: 2, At: at(9).UTC(), From: 3, To: 1, Minimum: 1,
		Cause: "Preempted", Accelerator: "nvidia.com/gpu", PerPod: 8, By: "ada", Node: "gpu-1", WorkloadUID: "w9",
		Idle: &history.IdleSources{Own: true, Lenders: []history.TeamRef{{Namespace: "ns-nlp", Team: "nlp"}, {}}},
	}
	teams := taskstest.Teams("ns-vision", "vision", "ns-nlp", "nlp")
	if diff := cmp.Diff(want, newScaleEvent(notedScale{job, e}, teams, nothing)); diff != "" {
		t.Errorf("unknown counterpart (-want +got):\n%s", diff)
	}
	want.For = history.TaskRef{Namespace: "ns-nlp", Kind: "Job", Name: "tune", UID: "j9", Team: "nlp"}
	got := newScaleEvent(notedScale{job, e}, teams, func(uid types.UID) *tasks.Task {
		if uid != "w9" {
			t.Errorf("the task of Workload %s was looked up, want w9", uid)
		}
		return &tasks.Task{Namespace: "ns-nlp", Kind: "Job", Name: "tune", UID: "j9"}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("known counterpart (-want +got):\n%s", diff)
	}
}

// A recorder that cannot write keeps a bounded number of events, the latest. One that
// does not lead keeps those of the last minute, and notes all when it does.
func TestScaleLogIsBounded(t *testing.T) {
	l := &scaleLog{}
	for n := range 1000 {
		l.OnAdd(elasticJob(types.UID(fmt.Sprint(n)), 1, 30), true)
	}
	if len(l.noted) != maxNoted {
		t.Fatalf("%d events are noted, want %d", len(l.noted), maxNoted)
	}
	if last := l.noted[maxNoted-1]; last.job.UID != "999" || last.Number != 30 {
		t.Errorf("the last is event %d of %s, want 30 of 999", last.Number, last.job.UID)
	}
	l = &scaleLog{}
	l.OnAdd(elasticJob("a", 1, 30), true)
	l.OnAdd(elasticJob("deleted", 1, 30), true)
	l.OnDelete(elasticJob("deleted", 1, 30))
	l.forget(at(21))
	if len(l.noted) != 20 {
		t.Errorf("%d events remain, want the last ten of each job", len(l.noted))
	}
	l.noteAll()
	if found := l.take(1000); len(found) != 50 { // 10 of the deleted job, 10 and 30 of the other
		t.Errorf("%d events are taken, want 50", len(found))
	}
}
