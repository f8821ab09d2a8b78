package recorder_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// elastic creates an ElasticJob. No controller runs it: tests write its status.
func (l *lab) elastic(team string) *v1alpha1.ElasticJob {
	l.t.Helper()
	l.apply(`
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: train, namespace: %s, labels: {kueue.x-k8s.io/queue-name: none}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 8, replicaIncrementStep: 1}
  template: {spec: {containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 2}}}]}}
`, space(team))
	e := &v1alpha1.ElasticJob{}
	e.Namespace, e.Name = space(team), "train"
	if err := l.c.Client.Get(l.t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "elasticjob", e.Name, "-n", e.Namespace, "--wait=false") })
	return e
}

// scale adds changes of size to the status of an ElasticJob, as its controller does.
func (l *lab) scale(e *v1alpha1.ElasticJob, changes int, by types.UID) {
	l.t.Helper()
	for range changes {
		before, number := e.Status.Replicas, int64(1)
		if n := len(e.Status.ScaleEvents); n > 0 {
			number = e.Status.ScaleEvents[n-1].Number + 1
		}
		e.Status.Replicas = int32(number%8) + 1
		e.Status.ScaleEvents = append(e.Status.ScaleEvents, v1alpha1.ScaleEvent{
			Number: number, Time: metav1.Now().Rfc3339Copy(), From: before, To: e.Status.Replicas, Minimum: 1, Cause: v1alpha1.ScalePreempted, ForWorkload: by,
		})
		e.Status.ScaleEvents = e.Status.ScaleEvents[max(0, len(e.Status.ScaleEvents)-v1alpha1.MaxScaleEvents):]
	}
	if err := l.c.Client.Status().Update(l.t.Context(), e); err != nil {
		l.t.Fatal(err)
	}
}

// recordedScales waits until the events 1 to n of an ElasticJob are recorded, and no others.
func (l *lab) recordedScales(e *v1alpha1.ElasticJob, n int) (events []history.ScaleEvent) {
	l.t.Helper()
	l.eventually(func() (err error) {
		if events, err = l.store.ScaleEvents(l.t.Context(), string(e.UID), 1000); err != nil {
			return err
		}
		if missing := history.GainOf(events, time.Now()).Missing; len(events) != n || missing != nil {
			return fmt.Errorf("%d events are recorded, want %d; missing %v", len(events), n, missing)
		}
		return nil
	})
	return events
}

// Changes of size are recorded once and completely over restarts, while the database is
// unreachable, and after the job is deleted.
func TestScaleEvents(t *testing.T) {
	l := newLab(t)
	server := historytest.Start(t)
	store, err := history.Open(t.Context(), server.Database(t), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l.store = store
	l.node("", 8)
	team, other := l.team("vision", 4), l.team("nlp", 4)
	e := l.elastic(team)
	l.scale(e, 3, "")
	l.start(store, nil)
	l.recordedScales(e, 3)
	l.job(other, "tune", 1, "", "1h")
	var preemptor types.UID
	l.eventually(func() error {
		out, err := l.c.TryKubectl("", "get", "workloads", "-n", space(other), "-o", "jsonpath={.items[0].metadata.uid}")
		if preemptor = types.UID(out); err == nil && out == "" {
			err = errors.New("no Workload")
		}
		return err
	})
	l.eventually(func() error { // the recorder names tasks that it has seen
		if _, _, err := l.timeline(other, "tune"); err != nil {
			return err
		}
		return nil
	})
	l.scale(e, 1, preemptor)
	last := l.recordedScales(e, 4)[3]
	if last.Team != team || last.For.Team != other || last.For.Name != "tune" || last.For.Namespace != space(other) || last.WorkloadUID != string(preemptor) || last.PerPod != 2 {
		t.Errorf("the event is %+v, want one for task tune of %s", last, other)
	}

	l.stop()
	l.scale(e, 10, "")
	l.start(store, nil)
	l.recordedScales(e, 14)

	server.Stop(t)
	for range 6 { // more than the status keeps
		l.scale(e, 10, "")
	}
	l.kubectl("delete", "elasticjob", e.Name, "-n", e.Namespace)
	l.eventually(func() error {
		if s := l.recorder.State(); s.LastError == "" || s.Pending == 0 {
			return fmt.Errorf("state is %+v", s)
		}
		return nil
	})
	server.Restart(t)
	events := l.recordedScales(e, 74)
	for i, event := range events[1:] {
		if event.From != events[i].To {
			t.Errorf("event %d begins with %d pods, want %d", event.Number, event.From, events[i].To)
		}
	}
}

// Two replicas that record at once, each of which the database refuses while the other
// leads, record each event once.
func TestScaleEventsOfTwoRecorders(t *testing.T) {
	l := newLab(t)
	l.node("", 8)
	e := l.elastic(l.team("vision", 4))
	l.start(l.store, nil)
	second, err := history.Open(t.Context(), l.file, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	l.start(second, nil)
	for range 20 {
		l.scale(e, 2, "")
	}
	numbers := []int64{}
	for _, event := range l.recordedScales(e, 40) {
		numbers = append(numbers, event.Number)
	}
	if !slices.IsSorted(numbers) || numbers[39] != 40 {
		t.Errorf("events are %v", numbers)
	}
}
