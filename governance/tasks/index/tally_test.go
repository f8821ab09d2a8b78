package index

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The metric equals the list, and is absent before the Workloads have synced.
func TestMetricOfTasks(t *testing.T) {
	x, _ := newTestIndex()
	admitted := metav1.Condition{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(taskstest.Start)}
	x.SetWorkload(taskstest.Workload("a", "one", "", 0, taskstest.Start), false)
	x.SetWorkload(taskstest.Workload("a", "two", "high", 9, taskstest.Start), false)
	deleted := taskstest.Workload("b", "three", "high", 9, taskstest.Start.Add(time.Second))
	x.SetWorkload(deleted, false)
	x.SetWorkload(taskstest.Workload("b", "four", "", 0, taskstest.Start, admitted), false)
	if n := testutil.CollectAndCount(x); n != 0 {
		t.Errorf("got %d metrics before the sync, want 0", n)
	}
	x.workloadsSynced()
	x.DeleteWorkload(deleted)
	states := map[tasks.State]int{}
	for _, one := range x.all(ByName) {
		states[one.State]++
	}
	if states[tasks.Pending] != 2 {
		t.Fatalf("the tasks are %v", states)
	}
	var want strings.Builder
	want.WriteString("# HELP kuota_tasks Tasks by state. Absent until the informer caches have synced.\n# TYPE kuota_tasks gauge\n")
	for _, state := range tasks.States {
		want.WriteString(`kuota_tasks{state="` + string(state) + `"} ` + string(rune('0'+states[state])) + "\n")
	}
	if err := testutil.CollectAndCompare(x, strings.NewReader(want.String()), "kuota_tasks"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(x); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
