package index

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// What was seen of a task outlives its Workloads: its runs, its requests, its pool, and
// its outcome, whichever object says it.
func TestWhatWasSeenIsKept(t *testing.T) {
	const submitted = -time.Hour
	run := func(uid string, created, admitted time.Duration) *kueue.Workload {
		w := taskstest.UsingGPUs(taskstest.Workload("a", "j", "high", 5, taskstest.Start.Add(created), taskstest.Admitted(taskstest.Start.Add(admitted))...), "q", 2)
		if uid != "" {
			w.UID = "w-again"
		}
		return w
	}
	finished := run("", submitted, -10*time.Minute)
	finished.Status.Conditions = taskstest.Finished(taskstest.Start.Add(-10*time.Minute), taskstest.Start)
	type seen struct {
		State              tasks.State
		Ran                time.Duration
		Pools              []string
		Class              string
		Submitted, Ended   time.Duration // after Start
		Runs               int
		NoWorkload, Exists bool
	}
	for name, tc := range map[string]struct {
		do   func(x *Index, c *taskstest.Clock)
		want seen
	}{
		"its Workload is deleted, and Kueue creates another": {
			do: func(x *Index, c *taskstest.Clock) {
				x.SetWorkload(run("", submitted, -10*time.Minute), false)
				x.DeleteWorkload(run("", submitted, 0))
				c.At = c.At.Add(time.Minute)
				x.SetWorkload(run("again", time.Minute, time.Minute), false)
				c.At = c.At.Add(5 * time.Minute)
			},
			want: seen{State: tasks.Running, Ran: 15 * time.Minute, Pools: []string{"a100"}, Class: "high", Submitted: submitted, Runs: 1, Exists: true},
		},
		"its Workload is deleted, and then its job": {
			do: func(x *Index, c *taskstest.Clock) {
				x.SetWorkload(run("", submitted, -10*time.Minute), false)
				x.DeleteWorkload(run("", submitted, 0))
				c.At = c.At.Add(time.Second)
				x.dropJob(jobObject("a", "j"))
			},
			want: seen{State: tasks.Running, Ran: 10 * time.Minute, Pools: []string{"a100"}, Class: "high", Submitted: submitted, Runs: 1, NoWorkload: true},
		},
		"its Workload is deleted after it finished": {
			do: func(x *Index, _ *taskstest.Clock) {
				x.SetWorkload(run("", submitted, -10*time.Minute), false)
				x.SetWorkload(finished, false)
				x.DeleteWorkload(finished)
				x.setJob(jobObject("a", "j", complete(batchv1.JobComplete, taskstest.Start)))
			},
			want: seen{State: tasks.Succeeded, Ran: 10 * time.Minute, Pools: []string{"a100"}, Class: "high", Submitted: submitted, Runs: 1, NoWorkload: true, Exists: true},
		},
		"the same of a job whose own status is not known": {
			do: func(x *Index, c *taskstest.Clock) {
				x.SetWorkload(run("", submitted, -10*time.Minute), false)
				x.SetWorkload(finished, false)
				c.At = c.At.Add(time.Minute)
				x.DeleteWorkload(finished)
			},
			want: seen{State: tasks.Succeeded, Ran: 10 * time.Minute, Pools: []string{"a100"}, Class: "high", Submitted: submitted, Runs: 1, NoWorkload: true, Exists: true},
		},
		"its Workload is deleted before anybody saw it finish": {
			do: func(x *Index, _ *taskstest.Clock) {
				x.SetWorkload(run("", submitted, -10*time.Minute), false)
				x.DeleteWorkload(run("", submitted, 0))
				x.setJob(jobObject("a", "j", complete(batchv1.JobFailed, taskstest.Start)))
			},
			want: seen{State: tasks.Failed, Ran: 10 * time.Minute, Pools: []string{"a100"}, Class: "high", Submitted: submitted, Runs: 1, NoWorkload: true, Exists: true},
		},
		"nobody saw its Workload": {
			do: func(x *Index, _ *taskstest.Clock) {
				x.setJob(jobObject("a", "j", complete(batchv1.JobComplete, taskstest.Start)))
				x.setJob(jobObject("a", "j", complete(batchv1.JobComplete, taskstest.Start))) // a change of its metadata
			},
			want: seen{State: tasks.Succeeded, Ran: 5 * time.Minute, Submitted: submitted, NoWorkload: true, Exists: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, c := newTestIndex()
			x.Record()
			x.workloadsSynced()
			x.setJob(jobObject("a", "j"))
			tc.do(x, c)
			var last timeline.Snapshot
			for _, s := range x.TakeChanged(10) {
				last = s
			}
			if last.Task == nil {
				t.Fatal("nothing is recorded")
			}
			_, runs := last.Spans()
			end := c.At
			if !last.DeletedAt.IsZero() {
				end = last.DeletedAt
			}
			got := seen{State: last.State, Ran: last.Ran(end), Pools: last.Pools, Class: last.PriorityClass, Submitted: last.Submitted.Sub(taskstest.Start), Runs: len(runs), NoWorkload: last.NoWorkload, Exists: last.DeletedAt.IsZero()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, one := range runs {
				if !one.Began.Equal(taskstest.Start.Add(-10*time.Minute)) || !one.Ended.Equal(taskstest.Start) {
					t.Errorf("it ran from %s to %s, want the ten minutes before %s", one.Began, one.Ended, taskstest.Start)
				}
			}
		})
	}
}

// The timeline has the end of a run whose Workload was deleted.
func TestDeletedWorkloadInTimeline(t *testing.T) {
	x, c := newTestIndex()
	x.workloadsSynced()
	x.setJob(jobObject("a", "j"))
	w := taskstest.Workload("a", "j", "", 0, taskstest.Start.Add(-time.Hour), taskstest.Admitted(taskstest.Start.Add(-10*time.Minute))...)
	x.SetWorkload(w, false)
	x.DeleteWorkload(w)
	again := taskstest.Workload("a", "j", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
	again.UID = "w-again"
	c.At = c.At.Add(time.Minute)
	x.SetWorkload(again, false)
	var got []string
	for _, e := range x.Timeline(x.Find("a", "job", "j", "")) {
		got = append(got, string(e.Type)+" "+e.Reason)
		if e.Reason == timeline.WorkloadDeleted && e.Ran != 10*time.Minute {
			t.Errorf("its Workload ran for %s, want 10 minutes", e.Ran)
		}
	}
	if diff := cmp.Diff([]string{"Submitted ", "Admitted Admitted", "Evicted WorkloadDeleted"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	x.DeleteWorkload(again)
	x.dropJob(&job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "j", UID: "j-aj"}, kind: "Job"})
	if len(x.life.pasts) != 0 || x.Len() != 0 {
		t.Errorf("after its deletion %d tasks and %v are left", x.Len(), x.life.pasts)
	}
}
