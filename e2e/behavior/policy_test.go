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

// policyController says whether the controllers that setup starts look after
// the cluster policy.
const policyController = true

// policy is the one ClusterPolicy. It shares idle compute as Kueue does already
// in this phase, so that it has no reason to restart it, and enforces nothing.
type policy struct {
	t       *testing.T
	cluster *clustertest.Cluster
	idle    v1alpha1.IdleComputeStrategy
	exists  bool
}

func newPolicy(t *testing.T, idle v1alpha1.IdleComputeStrategy) *policy {
	return &policy{t: t, cluster: setup(t), idle: idle}
}

// says writes the policy, and waits until it is in force. It goes when the
// test ends.
func (p *policy) says(prioritization v1alpha1.TaskPrioritization, shareUnallocated bool, classes ...v1alpha1.PriorityClass) {
	p.t.Helper()
	wanted := v1alpha1.ClusterPolicySpec{
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
			object.Spec = wanted
			return p.cluster.Client.Update(p.t.Context(), object)
		})
	} else {
		object.Spec = wanted
		if err = p.cluster.Client.Create(p.t.Context(), object); err == nil {
			p.exists = true
			p.t.Cleanup(p.end)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.inForce(object.Generation, prioritization, classes)
}

// inForce waits until every class has its value, and no task an old one.
func (p *policy) inForce(generation int64, prioritization v1alpha1.TaskPrioritization, classes []v1alpha1.PriorityClass) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	wait(p.t, ctx, func() error {
		now := p.object()
		if err := p.cluster.Client.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		ranking := now.Status.Ranking
		if now.Status.ObservedGeneration != generation || ranking == nil || ranking.Step != v1alpha1.RankingSettled || ranking.InForce != prioritization {
			return fmt.Errorf("generation %d of the policy, %s, is not in force: %+v", generation, prioritization, now.Status)
		}
		for _, wanted := range classes {
			var class kueue.WorkloadPriorityClass
			if err := p.cluster.Client.Get(ctx, client.ObjectKey{Name: classObject(wanted)}, &class); err != nil {
				return err
			}
			value := *wanted.Weight
			if prioritization == v1alpha1.FirstComeFirstServe {
				value = 0
			}
			if class.Value != value {
				return fmt.Errorf("%s is worth %d, want %d", class.Name, class.Value, value)
			}
		}
		return nil
	})
}

func (p *policy) end() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = p.cluster.Client.Delete(ctx, p.object())
	wait(p.t, ctx, func() error {
		if err := p.cluster.Client.Get(ctx, client.ObjectKeyFromObject(p.object()), p.object()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the policy is still there: %v", err)
		}
		return nil
	})
}

func (p *policy) object() *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
}

// ranked is a class of a policy, and classObject what tasks call it.
func ranked(name string, weight int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &weight}
}

func classObject(class v1alpha1.PriorityClass) string { return class.Name + "-priority" }
