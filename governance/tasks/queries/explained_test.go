package queries

import (
	"kuota.dev/kuota/governance/tasks/taskstest"
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A task that is being stopped is not explained by the checks that Kueue resets
// meanwhile.
func TestStoppingIsNotExplained(t *testing.T) {
	w := taskstest.Workload("ns", "t", "a", 1, taskstest.Start, append(taskstest.Admitted(taskstest.Start), taskstest.Condition("Evicted", true, "Preempted", taskstest.Start))...)
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStatePending}}
	task := tasks.FromWorkloads([]*kueue.Workload{w}, nil)
	if verdict, err := (viewer{}).why(t.Context(), task, nil, index.PodCount{}); task.State != tasks.Stopping || verdict != nil || err != nil {
		t.Errorf("%s, it is explained by %+v, %v", task.State, verdict, err)
	}
}

// What ended of a Job's pods says nothing about those that are missing: they were
// replaced, or are no longer counted.
func TestMissingPods(t *testing.T) {
	for _, tc := range []struct {
		kind    string
		missing int32
	}{{"Job", 1}, {tasks.PodGroup, 0}} {
		task := &tasks.Task{Kind: tc.kind, Size: tasks.Size{Admitted: 2}}
		placed := placement(task, nil, index.PodCount{Total: 1, Ended: 1})
		if placed == nil && tc.missing > 0 || placed != nil && placed.Missing != tc.missing {
			t.Errorf("of a %s it is %+v, want %d missing", tc.kind, placed, tc.missing)
		}
	}
}
