package queries

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks/taskstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// teamsOfMany has the LocalQueues of a cohortOfMany, too.
type teamsOfMany struct{ *cohortOfMany }

func (m teamsOfMany) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	locals, ok := list.(*kueue.LocalQueueList)
	if !ok {
		return m.cohortOfMany.List(ctx, list, options...)
	}
	for i := range m.queues {
		locals.Items = append(locals.Items, kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + m.queues[i].Name, Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(m.queues[i].Name)}})
	}
	return nil
}

// BenchmarkUpcoming measures the page "Next to start" without its verdicts, where 50,000
// tasks of 1,000 teams wait, and a filter that selects few of them.
func BenchmarkUpcoming(b *testing.B) {
	x, _ := newTestService()
	for i := range 50_000 {
		class := "a-priority"
		if i%50_000 == 49_999 {
			class = "rare-priority"
		}
		w := taskstest.Workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), class, int32(i%3), taskstest.Start.Add(time.Duration(i)*time.Second), taskstest.Pending(taskstest.Start)...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		x.SetWorkload(w, true)
	}
	v := viewer{reader: teamsOfMany{manyQueues()}, index: x}
	for name, q := range map[string]UpcomingQuery{"the first 100": {Limit: 100}, "of a rare class": {Limit: 100, PriorityClasses: []string{"rare-priority"}}} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				u, err := new(Service).upcoming(b.Context(), v, q)
				if err != nil || len(u.Items) == 0 || u.Waiting != 50_000 {
					b.Fatal(len(u.Items), err)
				}
			}
		})
	}
}
