package engine_test

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// An odd object takes nothing from the answer about the others, as in Kueue.
func TestOddObjects(t *testing.T) {
	for name, deform := range map[string]func(c cluster){
		"nothing": func(cluster) {},
		"Cohorts in a cycle": func(c cluster) {
			for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
				c.Cohorts = append(c.Cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: pair[0]}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(pair[1])}})
			}
			c.team("odd", 8)
			c.ClusterQueues[len(c.ClusterQueues)-1].Spec.CohortName = "a"
			c.task("odd", "waits", 1, 0, time.Minute)
		},
		"a ClusterQueue with an unknown selector": func(c cluster) {
			c.team("odd", 8)
			c.ClusterQueues[len(c.ClusterQueues)-1].Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
			c.task("odd", "waits", 1, 0, time.Minute)
		},
		"a ClusterQueue twice": func(c cluster) { c.ClusterQueues = append(c.ClusterQueues, c.ClusterQueues[0]) },
		"a ClusterQueue without resources": func(c cluster) {
			c.team("odd", 8)
			c.ClusterQueues[len(c.ClusterQueues)-1].Spec.ResourceGroups = nil
			c.task("odd", "waits", 1, 0, time.Minute)
		},
		"a LocalQueue twice": func(c cluster) { c.LocalQueues = append(c.LocalQueues, c.LocalQueues[0]) },
		"a LocalQueue of nothing": func(c cluster) {
			c.LocalQueues = append(c.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "none", Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "none"}})
		},
		"a Workload of nothing":   func(c cluster) { c.Workloads = append(c.Workloads, &kueue.Workload{}) },
		"a Workload without pods": func(c cluster) { c.task("speech", "odd", 1, 0, time.Minute).Spec.PodSets = nil },
		"a Workload without fields": func(c cluster) {
			w := c.task("speech", "odd", 1, 0, time.Minute)
			w.Spec.Priority, w.Spec.Active = nil, nil
		},
		"a Workload beyond int64": func(c cluster) {
			c.task("speech", "odd", 1, 0, time.Minute).Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse("1e99")}
		},
		"a Workload that is admitted to nothing": func(c cluster) {
			c.running("speech", "odd", 1, 0, time.Minute)
			c.Workloads[len(c.Workloads)-1].Status.Admission.ClusterQueue = "none"
		},
		"a Workload that is admitted without pods": func(c cluster) {
			c.running("speech", "odd", 1, 0, time.Minute)
			c.Workloads[len(c.Workloads)-1].Status.Admission.PodSetAssignments = nil
		},
		"a Workload that is reserved without an admission": func(c cluster) {
			c.running("speech", "odd", 1, 0, time.Minute)
			c.Workloads[len(c.Workloads)-1].Status.Admission = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.team("vision", 8)
			c.team("speech", 8)
			c.task("vision", "waits", 8, 10, time.Minute)
			deform(c)
			report, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, &simulate.Question{Target: "vision/waits", OnlyTarget: true})
			if err != nil {
				t.Fatal(err)
			}
			if report.Target == nil {
				t.Errorf("got %+v, want that the task starts", report)
			}
		})
	}
}
