package behavior_test

import (
	"context"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// policy is the ClusterPolicy of the cluster. Its strategy for idle compute is the
// one that Kueue runs with in this phase, so that the controllers do not restart
// Kueue. It enforces nothing.
type policy struct {
	t       *testing.T
	cluster *clustertest.Cluster
	idle    v1alpha1.IdleComputeStrategy
	exists  bool
}

func newPolicy(t *testing.T, idle v1alpha1.IdleComputeStrategy) *policy {
	return &policy{t: t, cluster: setup(t), idle: idle}
}

// apply writes the policy and waits until it is active. The policy is deleted
// when the test ends.
func (p *policy) apply(prioritization v1alpha1.TaskPrioritization, shareUnallocated bool, classes ...v1alpha1.PriorityClass) {
	p.t.Helper()
	spec := v1alpha1.ClusterPolicySpec{
		TaskPrioritization: prioritization,
		PriorityClasses:    classes,
		IdleCompute:        v1alpha1.IdleCompute{Strategy: p.idle, ShareUnallocated: shareUnallocated},
		Enforcement:        v1alpha1.EnforcementNone,
	}
	object := p.object()
	var err error
	if p.exists {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := p.cluster.Client.Get(p.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			object.Spec = spec
			return p.cluster.Client.Update(p.t.Context(), object)
		})
	} else {
		object.Spec = spec
		if err = p.cluster.Client.Create(p.t.Context(), object); err == nil {
			p.exists = true
			p.t.Cleanup(p.delete)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.waitUntilActive(object.Generation, prioritization, classes)
}

// waitUntilActive waits until the ranking is settled, which means that no task has
// an old priority, and every priority class has its value.
func (p *policy) waitUntilActive(generation int64, prioritization v1alpha1.TaskPrioritization, classes []v1alpha1.PriorityClass) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	wait(p.t, ctx, func() error {
		current := p.object()
		if err := p.cluster.Client.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return err
		}
		ranking := current.Status.Ranking
		if current.Status.ObservedGeneration != generation || ranking == nil || ranking.Step != v1alpha1.RankingSettled || ranking.Active != prioritization || ranking.ActiveCopy != prioritization {
			return fmt.Errorf("got policy status %+v, want generation %d settled with %s", current.Status, generation, prioritization)
		}
		for _, want := range classes {
			var class kueue.WorkloadPriorityClass
			if err := p.cluster.Client.Get(ctx, client.ObjectKey{Name: classObject(want)}, &class); err != nil {
				return err
			}
			value := *want.Weight
			if prioritization == v1alpha1.FirstComeFirstServe {
				value = 0
			}
			if class.Value != value {
				return fmt.Errorf("WorkloadPriorityClass %s: got value %d, want %d", class.Name, class.Value, value)
			}
		}
		return nil
	})
}

func (p *policy) delete() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = p.cluster.Client.Delete(ctx, p.object())
	wait(p.t, ctx, func() error {
		if err := p.cluster.Client.Get(ctx, client.ObjectKeyFromObject(p.object()), p.object()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get the deleted policy: got %v, want not found", err)
		}
		return nil
	})
}

func (p *policy) object() *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
}

// priorityClass returns a priority class of the policy.
func priorityClass(name string, weight int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &weight}
}

// classObject returns the name of the WorkloadPriorityClass that the controllers
// create for class.
func classObject(class v1alpha1.PriorityClass) string { return class.Name + "-priority" }
