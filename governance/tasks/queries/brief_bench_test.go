package queries

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// cohortOfMany reads 1,000 teams of one cohort, each with a ClusterQueue of 8 GPUs that
// lends and borrows.
type cohortOfMany struct {
	client.Reader
	queues []kueue.ClusterQueue
}

func manyQueues() *cohortOfMany {
	m := &cohortOfMany{}
	for i := range 1000 {
		q := kueue.ClusterQueue{Spec: kueue.ClusterQueueSpec{CohortName: "shared", NamespaceSelector: &metav1.LabelSelector{}, Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny}}}
		q.Name = fmt.Sprintf("team-%d", i)
		q.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu", "nvidia.com/gpu"}, Flavors: []kueue.FlavorQuotas{{Name: "a100", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("1000")}, {Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("8")}}}}}}
		m.queues = append(m.queues, q)
	}
	return m
}

func (m *cohortOfMany) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *kueue.LocalQueue:
		o.Spec.ClusterQueue = kueue.ClusterQueueReference(strings.TrimPrefix(key.Namespace, "hyperpod-ns-"))
	case *kueue.ResourceFlavor:
	default:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (m *cohortOfMany) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if queues, ok := list.(*kueue.ClusterQueueList); ok {
		queues.Items = m.queues
	}
	return nil
}

// BenchmarkBrief measures explanations for a list: one survey serves as many as the
// worker computes before the next.
func BenchmarkBrief(b *testing.B) {
	x, _ := newTestService()
	for i := range 50_000 {
		at := taskstest.Start.Add(-time.Duration(i) * time.Second)
		state := taskstest.Pending(at)
		if i%3 > 0 {
			state = taskstest.Admitted(at)
		}
		w := taskstest.Workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), []string{"a-priority", "b-priority", ""}[i%3], int32(i%3), at, state...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		if len(state) > 1 {
			taskstest.UsingGPUs(w, fmt.Sprintf("team-%d", i%1000), int64(1+i%4))
		}
		x.SetWorkload(w, true)
	}
	page := x.Query(index.Query{States: []tasks.State{tasks.Pending}}, nil).Tasks
	v := viewer{scope: access.Scope{All: true}, reader: manyQueues(), index: x}
	b.Run("survey and the first", func(b *testing.B) {
		for i := range b.N {
			if _, err := newSurvey(v).brief(b.Context(), page[i%len(page)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("each further one", func(b *testing.B) {
		s := newSurvey(v)
		for i := range b.N {
			verdict, err := s.brief(b.Context(), page[i%len(page)])
			if err != nil || verdict == nil || verdict.Constraint == "" {
				b.Fatal(verdict, err)
			}
		}
	})
	b.Run("in full", func(b *testing.B) {
		for i := range b.N {
			if _, err := v.why(b.Context(), page[i%len(page)], nil, index.PodCount{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
