package elastic_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provisioning is a policy of 1 to 4 pods that asks for nodes of at most two at once.
func provisioning(timeout int32) v1alpha1.ElasticPolicy {
	return v1alpha1.ElasticPolicy{
		MinReplicas: 1, MaxReplicas: 4, ReplicaIncrementStep: ptr.To[int32](1), ScalingTimeoutInSeconds: 1, FaultyScaleDownTimeoutInSeconds: 5, MinStablePeriodSeconds: 20, BackoffMaxSeconds: 60,
		Growth: v1alpha1.GrowthProvision, MaxUnscheduledReplicas: ptr.To[int32](2), ProvisionTimeoutInSeconds: timeout,
	}
}

// pending returns the pods of an ElasticJob that ask for nodes and have none.
func (l *lab) pending(e *v1alpha1.ElasticJob) []corev1.Pod {
	l.Helper()
	var list corev1.PodList
	if err := l.Client.List(l.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name}); err != nil {
		l.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Spec.NodeName != "" || p.DeletionTimestamp != nil || p.Spec.PriorityClassName != v1alpha1.ProvisionClass
	})
}

func causes(e *v1alpha1.ElasticJob) (list []v1alpha1.ScaleCause) {
	for _, event := range e.Status.ScaleEvents {
		list = append(list, event.Cause)
	}
	return list
}

// Growth that finds no node asks for two, which a cluster autoscaler adds; the job reaches
// its maximum.
func TestNodesComeForGrowth(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1) // of eight GPUs: two pods
	e := l.elasticOf(l.team("a", 16, nil), "train", "", provisioning(600), pods(4))
	l.size(e, 2, soon)
	var waiting []corev1.Pod
	for began := time.Now(); len(waiting) < 2; time.Sleep(100 * time.Millisecond) {
		if waiting = l.pending(e); time.Since(began) > soon {
			t.Fatalf("%d pods wait for nodes, want 2: %+v\n%s", len(waiting), e.Status, l.report(e.Namespace))
		}
	}
	for _, p := range waiting {
		if *p.Spec.Priority != -1 || *p.Spec.PreemptionPolicy != corev1.PreemptNever {
			t.Errorf("pod %s has priority %d, %s", p.Name, *p.Spec.Priority, *p.Spec.PreemptionPolicy)
		}
	}
	clustertest.Eventually(t, soon, func(context.Context) error { // the status follows the pods
		l.refresh(e)
		if s := e.Status.Provisioning; e.Status.Replicas != 2 || s == nil || s.UnscheduledReplicas != 2 || s.Until.Sub(s.Since.Time) != 10*time.Minute {
			return fmt.Errorf("size %d and %+v, want 2 with two pods that wait for ten minutes", e.Status.Replicas, s)
		}
		return nil
	})
	if grown := e.Status.ScaleEvents[1]; grown.Cause != v1alpha1.ScaleIdleCompute || grown.Idle == nil || !grown.Idle.Own {
		t.Errorf("it first grew by %+v, want idle compute of its own team", grown)
	}
	l.node(1)
	l.size(e, 4, soon)
	l.running(e, 4, soon)
	if got, want := causes(e), v1alpha1.ScaleProvisioned; !slices.Contains(got, want) || e.Status.Provisioning.UnscheduledReplicas != 0 {
		t.Errorf("causes %v and %+v, want %s and none that waits", got, e.Status.Provisioning, want)
	}
}

// Growth for which no node comes is withdrawn in time; the job keeps what has nodes, and
// still grows into nodes that exist.
func TestNoNodesComeForGrowth(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	const timeout = 3 * time.Second
	policy := provisioning(3)
	policy.MaxUnscheduledReplicas = nil // one step
	e := l.elasticOf(l.team("a", 16, nil), "train", "", policy, pods(4))
	l.size(e, 2, soon)
	waited := time.Duration(0)
	var since time.Time
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		n := len(l.pending(e))
		if n > 1 {
			t.Fatalf("%d pods wait for nodes, and one may", n)
		}
		if n > 0 && since.IsZero() {
			since = time.Now()
		}
		if n == 0 && !since.IsZero() {
			waited = time.Since(since)
			break
		}
		if time.Since(began) > soon {
			t.Fatalf("%d pods wait for nodes\n%s", n, l.report(e.Namespace))
		}
	}
	l.refresh(e)
	if got := e.Status.ScaleEvents[len(e.Status.ScaleEvents)-1]; got.Cause != v1alpha1.ScaleNoNodes || got.From != 2 || got.To != 2 {
		t.Errorf("last event %+v, want that no node came, with size 2", got)
	}
	if waited > timeout+3*time.Second {
		t.Errorf("growth waited for %s, with a timeout of %s", waited, timeout)
	}
	t.Logf("withdrawn after %s, of %s", waited, timeout)
	l.node(1)
	l.size(e, 4, soon)
	if got := causes(e); slices.Contains(got, v1alpha1.ScaleProvisioned) || got[len(got)-1] != v1alpha1.ScaleIdleCompute {
		t.Errorf("causes %v, want growth into nodes that exist", got)
	}
}
