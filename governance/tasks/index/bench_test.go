package index

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fillIndex returns an index of 50,000 tasks in 1,000 teams, their Workloads, and the
// bytes of heap for each Workload and for each task.
func fillIndex(b *testing.B) (x *Index, list []*kueue.Workload, perWorkload, perTask float64) {
	x, _ = newTestIndex()
	slim := new(slimmer)
	list = make([]*kueue.Workload, 50_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range list {
		at := taskstest.Start.Add(-time.Duration(i) * time.Second)
		state := taskstest.Pending(at)
		if i%3 > 0 {
			state = taskstest.Admitted(at)
		}
		w := taskstest.Workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), []string{"a-priority", "b-priority", ""}[i%3], int32(i%3), at, state...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Name: "train", Image: "example.com/train:1", Command: []string{"python", "train.py", "--run", fmt.Sprint(i)}, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		if len(state) > 1 {
			taskstest.UsingGPUs(w, fmt.Sprintf("team-%d", i%1000), int64(1+i%4))
		}
		text, err := json.Marshal(w) // as the client decodes it
		if err != nil {
			b.Fatal(err)
		}
		list[i] = &kueue.Workload{}
		if err := json.Unmarshal(text, list[i]); err != nil {
			b.Fatal(err)
		}
		slim.slim(list[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perWorkload = float64(after.HeapAlloc-before.HeapAlloc) / 50_000
	for _, w := range list {
		x.SetWorkload(w, true)
	}
	x.Query(Query{}, nil)
	runtime.GC()
	before = after
	runtime.ReadMemStats(&after)
	return x, list, perWorkload, float64(after.HeapAlloc-before.HeapAlloc) / 50_000
}

func BenchmarkFind(b *testing.B) {
	x, list, _, _ := fillIndex(b)
	type query struct {
		Query
		in func(tasks.Place) bool
	}
	for name, q := range map[string]query{
		"first page": {}, "by name": {Query: Query{Sort: ByName}}, "by wait": {Query: Query{Sort: ByWaited}}, "filtered": {Query: Query{States: []tasks.State{tasks.Pending}, Text: "train-4"}}, "last page": {Query: Query{Page: 500}},
		"a team": {in: func(p tasks.Place) bool { return p.Namespace == "hyperpod-ns-team-7" }},
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				x.SetWorkload(list[i%len(list)], false) // each query sees a change
				x.Query(q.Query, q.in)
			}
		})
	}
	b.Run("classes", func(b *testing.B) {
		for range b.N {
			x.Classes(nil, 0)
		}
	})
}

// BenchmarkMemory reports the heap that 50,000 Workloads and their tasks use.
func BenchmarkMemory(b *testing.B) {
	x, list, perWorkload, perTask := fillIndex(b)
	for b.Loop() {
		runtime.KeepAlive(x)
	}
	b.ReportMetric(perWorkload, "B/Workload")
	b.ReportMetric(perTask, "B/task")
	runtime.KeepAlive(list)
}
