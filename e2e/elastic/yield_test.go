package elastic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// steps is a policy from 8 to 32 pods in steps of 8.
func steps(grace int32) v1alpha1.ElasticPolicy {
	return v1alpha1.ElasticPolicy{
		MinReplicas: 8, MaxReplicas: 32, ReplicaIncrementStep: ptr.To[int32](8),
		GracefulShutdownTimeoutInSeconds: grace, ScalingTimeoutInSeconds: 2, FaultyScaleDownTimeoutInSeconds: 5, MinStablePeriodSeconds: 5, BackoffMaxSeconds: 60,
	}
}

// An elastic task of 32 GPUs gives a task of another team, with that quota, exactly what
// it needs, and goes on: its base and the other increments keep their pods.
func TestGivesBackWhatIsNeeded(t *testing.T) {
	l := newLab(t, 4)
	training, other := l.team("training", 8, nil), l.team("other", 24, nil)
	e := l.elastic(training, "train", "", steps(0))
	l.Logf("32 GPUs after %s", l.size(e, 32, soon))
	before := l.running(e, 32, soon)
	task := l.submit(other, "inference", "", 8)
	l.Logf("admitted after %s", l.admitted(task, soon))
	l.Logf("24 GPUs after %s", l.size(e, 24, soon))
	after := l.running(e, 24, soon)
	for increment, uids := range after {
		if diff := cmp.Diff(before[increment], uids); diff != "" {
			t.Errorf("pods of increment %s changed (-before +after):\n%s", increment, diff)
		}
	}
	if len(after["0"]) != 8 {
		t.Errorf("the base has %d pods, want 8", len(after["0"]))
	}
	l.remove(task)
	l.Logf("32 GPUs again after %s", l.size(e, 32, soon))
}

// Within one team, a task of a higher class gets exactly what it needs: by preemption, and
// where the team preempts nothing, because the growth is withdrawn.
func TestGivesBackWithinTheTeam(t *testing.T) {
	for name, within := range map[string]v1alpha1.WithinTeam{"preempted": v1alpha1.PreemptLowerPriority, "withdrawn": v1alpha1.PreemptNever} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			training := l.team("training", 32, func(spec *v1alpha1.ComputeAllocationSpec) { spec.Preemption.WithinTeam = within })
			e := l.elastic(training, "train", "", steps(0))
			l.size(e, 32, soon)
			before := l.running(e, 32, soon)
			task := l.submit(training, "inference", l.class(100), 8)
			l.Logf("admitted after %s", l.admitted(task, soon))
			l.size(e, 24, soon)
			for increment, uids := range l.running(e, 24, soon) {
				if diff := cmp.Diff(before[increment], uids); diff != "" {
					t.Errorf("pods of increment %s changed (-before +after):\n%s", increment, diff)
				}
			}
		})
	}
}

// A task that needs part of an increment gets the whole one; with sizes that are no equal
// steps, the least that lands on an allowed size.
func TestGivesBackDownToAnAllowedSize(t *testing.T) {
	clustertest.OnlyVerify(t)
	l := newLab(t, 4)
	training, other := l.team("training", 4, nil), l.team("other", 28, nil)
	policy := steps(0)
	policy.MinReplicas, policy.ReplicaIncrementStep, policy.ReplicaDiscreteValues = 4, nil, []int32{4, 8, 16, 32}
	e := l.elastic(training, "train", "", policy)
	l.size(e, 32, soon)
	l.admitted(l.submit(other, "small", "", 2), soon)
	l.size(e, 16, soon)
	l.admitted(l.submit(other, "large", "", 18), soon)
	l.size(e, 8, soon)
	l.running(e, 8, soon)
}

// Two jobs of two teams that could both grow into the same room grow into all of it, and no
// growth causes an eviction, though each is within the quota of its team.
func TestGrowthCausesNoEviction(t *testing.T) {
	l := newLab(t, 4)
	first, second := l.team("first", 16, nil), l.team("second", 16, nil)
	a, b := l.elastic(first, "train", "", steps(0)), l.elastic(second, "train", "", steps(0))
	l.size(a, 8, soon)
	l.size(b, 8, soon)
	deadline := time.Now().Add(30 * time.Second)
	for a.Status.Replicas+b.Status.Replicas < 32 {
		if time.Now().After(deadline) {
			t.Fatalf("sizes %d and %d, want 32 in all\n%s", a.Status.Replicas, b.Status.Replicas, l.report(namespace(first))+l.report(namespace(second)))
		}
		l.refresh(a)
		l.refresh(b)
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(3 * time.Second)
	for _, team := range []string{first, second} {
		for _, w := range l.workloads(namespace(team)) {
			if s := w.Status.SchedulingStats; s != nil && len(s.Evictions) > 0 {
				t.Errorf("Kueue evicted %s: %+v", w.Name, s.Evictions)
			}
		}
	}
}

// A task that takes the room at the moment in which growth starts is not preempted for it, though
// growth is within the quota of its team: the API server denies that to Kueue, and Kueue can
// preempt the same task for another one.
func TestGrowthCannotPreempt(t *testing.T) {
	l := newLab(t, 4)
	team, other := l.team("own", 16, nil), l.team("other", 16, nil)
	l.admitted(l.submit(other, "borrows", "", 32), soon)
	growth := l.submit(team, "growth", desired.GrowthClass, 16)
	clustertest.Eventually(t, soon, func(context.Context) error {
		for _, w := range l.workloads(namespace(team)) {
			if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && strings.Contains(c.Message, "Preempting 1 workload(s) failed") {
				return nil
			}
		}
		return fmt.Errorf("Kueue has not tried to preempt for growth:\n%s", l.report(namespace(team)))
	})
	for _, w := range l.workloads(namespace(other)) {
		if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) || w.Status.SchedulingStats != nil && len(w.Status.SchedulingStats.Evictions) > 0 {
			t.Errorf("Kueue evicted %s for growth: %+v", w.Name, w.Status)
		}
	}
	l.remove(growth)
	l.admitted(l.submit(team, "task", "", 16), soon)
}
