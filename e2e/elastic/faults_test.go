package elastic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A lost node costs the increment whose pods were on it, and a minimum that lost its node
// gets that of growth.
func TestNodeLost(t *testing.T) {
	for name, increment := range map[string]string{"of growth": "1", "of the minimum": "0"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			training := l.team("training", 32, nil)
			e := l.elastic(training, "train", "", steps(0))
			l.size(e, 32, soon)
			l.running(e, 32, soon)
			node := l.nodeOf(e, increment)
			l.loseNode(node)
			t.Logf("24 pods %s after the node was lost", l.size(e, 24, soon))
			last := e.Status.ScaleEvents[len(e.Status.ScaleEvents)-1]
			if last.Cause != v1alpha1.ScaleNodeLost || last.From != 32 || last.To != 24 {
				t.Errorf("last event %+v", last)
			}
			// Pods of the minimum that were on the node wait for their back-off, while the
			// growth that is given up still runs.
			clustertest.Eventually(t, soon, func(context.Context) error {
				if got := len(l.running(e, 24, soon)["0"]); got != 8 {
					return fmt.Errorf("%d pods of the minimum run, want 8", got)
				}
				return nil
			})
		})
	}
}

// loseNode deletes a node, and its pods as Kubernetes' garbage collector of pods does after
// 40 s: each has failed by a disruption.
func (l *lab) loseNode(name string) {
	l.Helper()
	if err := l.Client.Delete(l.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		l.Fatal(err)
	}
	var list corev1.PodList
	if err := l.Client.List(l.Context(), &list); err != nil {
		l.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != name {
			continue
		}
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
		if err := l.Client.Status().Patch(l.Context(), &pod, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
			l.Fatal(err)
		}
		if err := l.Client.Delete(l.Context(), &pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			l.Fatal(err)
		}
	}
}

// nodeOf returns the node of a pod of an increment.
func (l *lab) nodeOf(e *v1alpha1.ElasticJob, increment string) string {
	l.Helper()
	var list corev1.PodList
	if err := l.Client.List(l.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name, v1alpha1.LabelElasticIncrement: increment}); err != nil {
		l.Fatal(err)
	}
	if len(list.Items) == 0 {
		l.Fatalf("increment %s has no pods", increment)
	}
	return list.Items[0].Spec.NodeName
}

// resize patches the elastic policy.
func (l *lab) resize(e *v1alpha1.ElasticJob, fields map[string]any) {
	l.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"elasticPolicy": fields}})
	if err != nil {
		l.Fatal(err)
	}
	if err := l.Client.Patch(l.Context(), e.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		l.Fatal(err)
	}
}

// suspend suspends or resumes a job.
func (l *lab) suspend(e *v1alpha1.ElasticJob, suspend bool) {
	l.Helper()
	if err := l.Client.Patch(l.Context(), e.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend))); err != nil {
		l.Fatal(err)
	}
}

// Minimum and maximum change while the job runs, and the base keeps its pods.
func TestResize(t *testing.T) {
	l := newLab(t, 4)
	training := l.team("training", 32, nil)
	e := l.elastic(training, "train", l.class(50), steps(0))
	l.size(e, 32, soon)
	base := l.running(e, 32, soon)["0"]

	l.resize(e, map[string]any{"maxReplicas": 16})
	t.Logf("16 pods after %s", l.size(e, 16, soon))
	if last := e.Status.ScaleEvents[len(e.Status.ScaleEvents)-1]; last.Cause != v1alpha1.ScaleResized || last.By == "" {
		t.Errorf("last event %+v, want who resized", last)
	}
	l.resize(e, map[string]any{"maxReplicas": 32})
	l.size(e, 32, soon)

	l.resize(e, map[string]any{"minReplicas": 24})
	l.minimum(e, 24, soon)
	l.size(e, 32, soon)
	// Its own class does not preempt what is guaranteed now.
	waits := l.submit(training, "waits", l.class(40), 8)
	l.size(e, 24, soon)
	l.running(e, 24, soon)
	l.remove(waits)
	l.resize(e, map[string]any{"minReplicas": 8})
	l.minimum(e, 8, soon)
	l.size(e, 32, soon)
	if after := l.running(e, 32, soon)["0"]; !slices.Equal(base, after) {
		t.Errorf("the base has other pods: %v, before %v", after, base)
	}
}

// minimum waits until so many pods are guaranteed.
func (l *lab) minimum(e *v1alpha1.ElasticJob, want int32, limit time.Duration) {
	l.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if l.refresh(e); e.Status.Minimum == want {
			return
		}
		if time.Since(began) > limit {
			l.Fatalf("%d pods of %s are guaranteed, want %d\n%s", e.Status.Minimum, e.Name, want, l.report(e.Namespace))
		}
	}
}

// A Job and a Service of another owner that have the names that an ElasticJob needs stay,
// and the status says so until they are deleted.
func TestNameConflict(t *testing.T) {
	l := newLab(t, 1)
	training := l.team("training", 8, nil)
	foreign := l.submit(training, "train-base", "", 1)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(training), Name: "train-pods"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "mine"}}}
	if err := l.Client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	policy := steps(0)
	policy.MinReplicas, policy.MaxReplicas, policy.ReplicaIncrementStep = 2, 4, ptr.To[int32](2)
	e := l.elastic(training, "train", "", policy)
	l.blocked(e, "Service "+service.Namespace+"/train-pods exists")
	if err := l.Client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	l.blocked(e, "Job "+foreign.Namespace+"/train-base exists")
	var still batchv1.Job
	if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), &still); err != nil || still.UID != foreign.UID {
		t.Errorf("the other Job: %v", err)
	}
	l.remove(foreign)
	l.size(e, 4, soon)
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionJobsCreated); c != nil {
		t.Errorf("condition %+v remains", c)
	}
}

// blocked waits until the status says that a Job cannot be created.
func (l *lab) blocked(e *v1alpha1.ElasticJob, message string) {
	l.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		l.refresh(e)
		c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionJobsCreated)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonConflict && strings.Contains(c.Message, message) {
			return
		}
		if time.Since(began) > 20*time.Second {
			l.Fatalf("condition %+v, want %q", c, message)
		}
	}
}

// Failed pods of growth cost the increment, and it backs off.
func TestFailedPods(t *testing.T) {
	l := newLab(t, 2)
	training := l.team("training", 16, nil)
	e := l.elastic(training, "train", "", steps(0))
	l.resize(e, map[string]any{"maxReplicas": 16})
	l.size(e, 16, soon)
	l.running(e, 16, soon)
	deadline := time.Now().Add(time.Minute)
	for e.Status.Replicas != 8 {
		if time.Now().After(deadline) {
			t.Fatalf("size %d\n%s", e.Status.Replicas, l.report(e.Namespace))
		}
		l.fail(e, "1")
		time.Sleep(500 * time.Millisecond)
		l.refresh(e)
	}
	if last := e.Status.ScaleEvents[len(e.Status.ScaleEvents)-1]; last.Cause != v1alpha1.ScalePodsFailed {
		t.Errorf("last event %+v", last)
	}
	if e.Status.GrowsAfter == nil || time.Until(e.Status.GrowsAfter.Time) < time.Second {
		t.Errorf("it grows after %v, want a backoff", e.Status.GrowsAfter)
	}
}

// fail makes the running pods of an increment fail.
func (l *lab) fail(e *v1alpha1.ElasticJob, increment string) {
	l.Helper()
	ctx := context.Background()
	var list corev1.PodList
	if err := l.Client.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name, v1alpha1.LabelElasticIncrement: increment}); err != nil {
		l.Fatal(err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		p.Status.Phase = corev1.PodFailed
		for j := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[j].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
		}
		if err := l.Client.Status().Update(ctx, p); client.IgnoreNotFound(err) != nil {
			l.Logf("fail %s: %v", p.Name, err)
		}
	}
}
