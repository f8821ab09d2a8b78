package queries

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
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

// waitingIn returns a viewer of n tasks that wait in 1,000 teams; the last has a class of
// its own.
func waitingIn(n int) viewer {
	x, _ := newTestService()
	for i := range n {
		class := "a-priority"
		if i == n-1 {
			class = "rare-priority"
		}
		w := taskstest.Workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), class, int32(i%3), taskstest.Start.Add(time.Duration(i)*time.Second), taskstest.Pending(taskstest.Start)...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		x.SetWorkload(w, true)
	}
	return viewer{scope: access.Scope{All: true}, reader: teamsOfMany{manyQueues()}, index: x}
}

// TestUpcomingPages checks that the pages have all tasks once, in one order, those that Kueue
// does not try at the end.
func TestUpcomingPages(t *testing.T) {
	v := waitingIn(200)
	for i := range 50 { // in no LocalQueue that exists
		v.index.SetWorkload(taskstest.Workload("elsewhere", fmt.Sprintf("lost-%d", i), "a-priority", 1, taskstest.Start, taskstest.Pending(taskstest.Start)...), true)
	}
	list := func(q UpcomingQuery) Upcoming {
		u, err := new(Service).upcoming(t.Context(), v, q)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var paged []UpcomingItem
	for page := 1; page <= 3; page++ {
		u := list(UpcomingQuery{Page: page})
		if u.Page != page || u.Pages != 3 || u.Total != 250 {
			t.Errorf("got page %d of %d of %d tasks, want page %d of 3 of 250 tasks", u.Page, u.Pages, u.Total, page)
		}
		paged = append(paged, u.Items...)
	}
	all := list(UpcomingQuery{All: true})
	names := func(items []UpcomingItem) (names []string) {
		for _, item := range items {
			names = append(names, fmt.Sprintf("%d %s", item.Order, item.Name))
		}
		return names
	}
	if diff := cmp.Diff(names(all.Items), names(paged)); diff != "" || len(paged) != 250 || all.Pages != 1 || paged[199].Order != 200 || paged[200].Order != 0 {
		t.Errorf("pages of %d tasks (-all +pages):\n%s", len(paged), diff)
	}
	if u := list(UpcomingQuery{Page: 9}); u.Page != 3 || len(u.Items) != 50 {
		t.Errorf("got page %d with %d tasks, want the last page", u.Page, len(u.Items))
	}
}

// BenchmarkUpcoming measures the page "Next to start" without its verdicts, where 50,000
// tasks of 1,000 teams wait, and a filter that selects few of them.
func BenchmarkUpcoming(b *testing.B) {
	v := waitingIn(50_000)
	for name, q := range map[string]UpcomingQuery{"the first 100": {}, "the last 100": {Page: 500}, "of a rare class": {PriorityClasses: []string{"rare-priority"}}} {
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
