package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// many is an index of 50,000 tasks in 1,000 teams.
func many(b *testing.B) (x *Index, list []*kueue.Workload, perWorkload, perTask float64) {
	x, _ = newTestIndex()
	slim := new(slimmer)
	list = make([]*kueue.Workload, 50_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range list {
		at := start.Add(-time.Duration(i) * time.Second)
		state := waits(at)
		if i%3 > 0 {
			state = runs(at)
		}
		w := workload(fmt.Sprintf("hyperpod-ns-team-%d", i%1000), fmt.Sprintf("train-%d", i), []string{"a-priority", "b-priority", ""}[i%3], int32(i%3), at, state...)
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Name: "train", Image: "example.com/train:1", Command: []string{"python", "train.py", "--run", fmt.Sprint(i)}, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")}}}}
		if len(state) > 1 {
			holdsGPUs(w, fmt.Sprintf("team-%d", i%1000), int64(1+i%4))
		}
		text, err := json.Marshal(w) // as it comes from the API server
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
		x.set(w, true)
	}
	x.find(Query{}, nil)
	runtime.GC()
	before = after
	runtime.ReadMemStats(&after)
	return x, list, perWorkload, float64(after.HeapAlloc-before.HeapAlloc) / 50_000
}

func BenchmarkFind(b *testing.B) {
	x, list, _, _ := many(b)
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
			x.Classes(func(string) bool { return true }, 0)
		}
	})
}

// cohortOfMany is a reader of 1,000 teams in one cohort, each with a ClusterQueue of 8
// GPUs that lends and borrows.
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

// BenchmarkBrief measures explanations for a list: a turn of the work computes as
// many as it can after one survey.
func BenchmarkBrief(b *testing.B) {
	x, _, _, _ := many(b)
	page := x.find(Query{States: []State{Pending}}, nil).page
	v := viewer{reader: manyQueues(), index: x, teams: map[string]string{}}
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
			if _, err := v.why(b.Context(), page[i%len(page)], nil, PodCount{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMemory tells what 50,000 Workloads and their tasks keep on the heap.
func BenchmarkMemory(b *testing.B) {
	x, list, perWorkload, perTask := many(b)
	for b.Loop() {
		runtime.KeepAlive(x)
	}
	b.ReportMetric(perWorkload, "B/Workload")
	b.ReportMetric(perTask, "B/task")
	runtime.KeepAlive(list)
}
