package queries

import (
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A task that Kueue evicts is not explained by the admission checks that Kueue resets
// meanwhile.
func TestStoppingIsNotExplained(t *testing.T) {
	w := taskstest.Workload("ns", "t", "a", 1, taskstest.Start, append(taskstest.Admitted(taskstest.Start), taskstest.Condition("Evicted", true, "Preempted", taskstest.Start))...)
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStatePending}}
	task := tasks.FromWorkloads([]*kueue.Workload{w}, nil)
	if verdict, err := (viewer{}).why(t.Context(), task, nil, index.PodCount{}); task.State != tasks.Stopping || verdict != nil || err != nil {
		t.Errorf("the task is %s with the verdict %+v, %v, want no verdict", task.State, verdict, err)
	}
}

// Ended pods of a Job do not count as present: the Job replaces them. A pod group
// replaces none, so that they are not missing.
func TestMissingPods(t *testing.T) {
	for _, tc := range []struct {
		kind    string
		missing int64
	}{{"Job", 1}, {tasks.PodGroup, 0}} {
		task := &tasks.Task{Kind: tc.kind, Size: tasks.Size{Admitted: 2}}
		placed := placement(task, nil, index.PodCount{Total: 1, Ended: 1})
		if placed == nil && tc.missing > 0 || placed != nil && placed.Missing != tc.missing {
			t.Errorf("%s: got %+v, want %d missing", tc.kind, placed, tc.missing)
		}
	}
}
