package tasks

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// many is an index of 50,000 tasks in 1,000 teams.
func many(b *testing.B) (*Index, []*kueue.Workload) {
	x, _ := newTestIndex()
	list := make([]*kueue.Workload, 50_000)
	for i := range list {
		at := start.Add(-time.Duration(i) * time.Second)
		state := waits(at)
		if i%3 > 0 {
			state = runs(at)
		}
		w := workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), []string{"a-priority", "b-priority", ""}[i%3], int32(i%3), at, state...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		list[i] = w
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, w := range list {
		x.set(w, true)
	}
	x.find(Query{}, nil)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/50_000, "B/task")
	return x, list
}

func BenchmarkFind(b *testing.B) {
	x, list := many(b)
	for name, q := range map[string]Query{
		"first page": {}, "by name": {Sort: ByName}, "by wait": {Sort: ByWaited}, "filtered": {States: []State{Pending}, Text: "train-4"}, "last page": {Page: 500}, "a team": {Namespaces: []string{"hyperpod-ns-team-7"}},
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				x.set(list[i%len(list)], false) // something changes before each
				x.find(q, nil)
			}
		})
	}
	b.Run("classes", func(b *testing.B) {
		for range b.N {
			x.Classes(func(string) bool { return true })
		}
	})
}
