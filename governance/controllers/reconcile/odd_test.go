package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// oddCluster has two allocations, two queues, and two nodes of a pool that no longer exists.
// It rejects each change of the objects of the name odd.
type oddCluster struct {
	client.Client
	changed []string
}

func (o *oddCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, name := range []string{"odd", "behind"} {
		metadata := metav1.ObjectMeta{Name: name, Labels: map[string]string{catalog.PoolLabel: "none"}}
		switch list := list.(type) {
		case *v1alpha1.ComputeAllocationList:
			list.Items = append(list.Items, v1alpha1.ComputeAllocation{ObjectMeta: metadata, Status: v1alpha1.ComputeAllocationStatus{
				Budget: &v1alpha1.BudgetStatus{}, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
			}})
		case *corev1.NodeList:
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metadata})
		case *kueue.ClusterQueueList:
			list.Items = append(list.Items, kueue.ClusterQueue{ObjectMeta: metadata, Spec: kueue.ClusterQueueSpec{Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}}})
		}
	}
	return nil
}

func (o *oddCluster) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (o *oddCluster) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if object.GetName() == "odd" {
		return errors.New("rejected")
	}
	o.changed = append(o.changed, object.GetName())
	return nil
}

func (o *oddCluster) Delete(ctx context.Context, object client.Object, _ ...client.DeleteOption) error {
	return o.Patch(ctx, object, nil)
}

func (o *oddCluster) Status() client.SubResourceWriter { return oddStatus{o: o} }

type oddStatus struct {
	client.SubResourceWriter
	o *oddCluster
}

func (s oddStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.o.Patch(ctx, object, patch)
}

// One pass over all objects changes those behind one that is rejected, and returns an error.
func TestOddObjectOfAPass(t *testing.T) {
	for name, pass := range map[string]func(ctx context.Context, c client.Client) error{
		"capacity": func(ctx context.Context, c client.Client) error {
			_, err := (&CapacityReconciler{Client: c}).Reconcile(ctx, ctrl.Request{})
			return err
		},
		"budgets": func(ctx context.Context, c client.Client) error {
			_, err := (&BudgetReconciler{Client: c, Now: time.Now}).Reconcile(ctx, ctrl.Request{})
			return err
		},
		"pools": func(ctx context.Context, c client.Client) error {
			var nodes corev1.NodeList
			_ = c.List(ctx, &nodes)
			return (&PoolReconciler{Client: c}).labelNodes(ctx, nodes.Items, catalog.New(catalog.Input{Nodes: nodes.Items}))
		},
		"ranking, queues": func(ctx context.Context, c client.Client) error {
			_, _, err := (&RankingReconciler{Client: c}).disablePreemption(ctx, c)
			return err
		},
		"ranking, classes": func(ctx context.Context, c client.Client) error {
			return (&RankingReconciler{Client: c}).applyPriorityClasses(ctx, &v1alpha1.ClusterPolicy{}, priorityClasses{obsolete: []string{"odd", "behind"}})
		},
	} {
		c := &oddCluster{}
		if err := pass(t.Context(), c); err == nil || !slices.Equal(c.changed, []string{"behind"}) {
			t.Errorf("%s: changed %v with error %v, want the other object and an error", name, c.changed, err)
		}
	}
}
