package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The usage of a queue contains that of growth, which is also counted apart until the
// growth is preempted.
func TestGrowthIsCountedApart(t *testing.T) {
	x, _ := newTestIndex()
	x.workloadsSynced()
	part := func(n int, class string, priority int32, pods int32) *kueue.Workload {
		w := taskstest.UsingGPUs(taskstest.Workload("ns", "train", class, priority, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "q", int64(pods)*8)
		w.Name, w.UID = fmt.Sprintf("job-train-%d", n), types.UID(fmt.Sprint(n))
		w.OwnerReferences[0].Kind, w.OwnerReferences[0].UID = v1alpha1.ElasticJobKind, "e"
		w.Spec.PodSets[0].Name, w.Spec.PodSets[0].Count, w.Status.Admission.PodSetAssignments[0].Count = "main", pods, &pods
		return w
	}
	base, first, second := part(0, "training", 5, 2), part(1, desired.GrowthClass, -9, 3), part(2, desired.GrowthClass, -9, 4)
	for _, w := range []*kueue.Workload{base, first, second} {
		x.SetWorkload(w, false)
	}
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("ns", "other", "training", 5, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "q", 1), false)
	check := func(guaranteed, growth resources.Amount) {
		t.Helper()
		gpus := quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
		usage := x.ClusterUsage()
		if used := usage.Queues["q"][gpus]; used != 8*(guaranteed+growth)+1 {
			t.Errorf("the queue uses %d GPUs, want %d", used, 8*(guaranteed+growth)+1)
		}
		want := map[string]quota.FlavorResourceQuantities{}
		if growth > 0 {
			want["q"] = quota.FlavorResourceQuantities{gpus: 8 * growth}
		}
		if diff := cmp.Diff(want, usage.Growth); diff != "" {
			t.Errorf("growth (-want +got):\n%s", diff)
		}
		text := fmt.Sprintf(`# HELP kuota_elastic_pods Pods of elastic tasks that use quota: those of the minimum, which are guaranteed, and growth. Absent until the informer caches have synced.
# TYPE kuota_elastic_pods gauge
kuota_elastic_pods{state="growth"} %d
kuota_elastic_pods{state="guaranteed"} %d
`, growth, guaranteed)
		if err := testutil.CollectAndCompare(x, strings.NewReader(text), "kuota_elastic_pods"); err != nil {
			t.Error(err)
		}
	}
	check(2, 7)
	preempted := second.DeepCopy()
	preempted.Status.Admission, preempted.Status.Conditions = nil, taskstest.Pending(taskstest.Start)
	x.SetWorkload(preempted, false)
	check(2, 3)
	x.DeleteWorkload(first)
	x.DeleteWorkload(preempted)
	check(2, 0)
	x.DeleteWorkload(base)
	check(0, 0)
}

// An increment whose Job is deleted ends no task: the other Jobs of the ElasticJob go on.
// Growth that is left of a deleted ElasticJob is its task until it ends, and else no task.
func TestDeletedIncrement(t *testing.T) {
	x, _ := newTestIndex()
	part := func(n int, class string, priority int32, conditions ...metav1.Condition) *kueue.Workload {
		w := taskstest.Workload("ns", "train", class, priority, taskstest.Start, conditions...)
		w.Name, w.UID = fmt.Sprintf("job-train-%d", n), types.UID(fmt.Sprint(n))
		w.OwnerReferences[0].Kind, w.OwnerReferences[0].UID = v1alpha1.ElasticJobKind, "e"
		w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: v1alpha1.ElasticPartName("train", n)})
		return w
	}
	runs := taskstest.Admitted(taskstest.Start)
	deleted := append(slices.Clone(runs), taskstest.Condition(kueue.WorkloadFinished, true, kueue.WorkloadFinishedReasonOwnerNotFound, taskstest.Start))
	check := func(what string, want tasks.State) {
		t.Helper()
		task := x.Find("ns", v1alpha1.ElasticJobKind, "train", "")
		if task == nil && want != "" || task != nil && (task.State != want || task.PriorityClass != "training") {
			t.Errorf("%s: the task is %+v, want %q", what, task, want)
		}
	}
	x.SetWorkload(part(2, desired.GrowthClass, -9, runs...), false)
	check("growth alone", "")
	x.SetWorkload(part(0, "training", 5, runs...), false)
	x.SetWorkload(part(1, desired.GrowthClass, -9, deleted...), false)
	check("without one increment", tasks.Running)
	x.SetWorkload(part(3, "training", 5, deleted...), false)
	check("without a guaranteed increment", tasks.Running)
	x.SetWorkload(part(0, "training", 5, deleted...), false)
	check("without its base", tasks.Stopping)
	x.DeleteWorkload(part(0, "training", 5))
	x.DeleteWorkload(part(3, "training", 5))
	check("growth is left", tasks.Stopping)
	x.DeleteWorkload(part(1, desired.GrowthClass, -9))
	x.DeleteWorkload(part(2, desired.GrowthClass, -9))
	check("nothing is left", "")
}
