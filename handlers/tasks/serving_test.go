package tasks

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// served returns a serving task with this many replicas, of which some have quota.
func served(kind string, admitted, wanted int) *tasks.Task {
	var parts []*kueue.Workload
	for i := range wanted {
		w := taskstest.Workload("a", string(rune('a'+i)), "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
		if i < admitted {
			w.Status.Conditions = taskstest.Admitted(taskstest.Start.Add(time.Duration(i) * time.Second))
			taskstest.UsingGPUs(w, "q", 1).Status.Admission.PodSetAssignments[0].Count = new(int32(1))
		}
		w.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "serve", UID: "d-1", Controller: new(true)}}
		parts = append(parts, w)
	}
	return tasks.FromWorkloads(parts, nil)
}

// A service shows how many of its replicas have quota, as its lead and in lists, and as
// long as some wait.
func TestReplicaWords(t *testing.T) {
	for name, tc := range map[string]struct {
		task             *tasks.Task
		want, wantInList string
	}{
		"some":       {served("Deployment", 3, 5), "3 of 5 replicas have quota", "3 of 5 replicas have quota"},
		"all":        {served("LeaderWorkerSet", 5, 5), "5 replicas have quota", ""},
		"one":        {served("Deployment", 1, 1), "1 replica has quota", ""},
		"none":       {served("Deployment", 0, 2), "0 of 2 replicas have quota", ""},
		"none of it": {served("Deployment", 0, 1), "0 of 1 replicas have quota", ""},
		"a job":      {served("Job", 1, 2), "", "1 of 2 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replicaWords(tc.task); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := sizeWords(queries.Item{Task: tc.task}); got != tc.wantInList {
				t.Errorf("in the list: got %q, want %q", got, tc.wantInList)
			}
		})
	}
}

// The page of a service says why its replicas wait, and how it is resumed.
func TestWhyOfServices(t *testing.T) {
	shortage := &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}, Needed: 1, Nominal: 3, Used: 3}}
	stopped := served("Deployment", 0, 1)
	stopped.State, stopped.Parts = tasks.Stopped, nil
	remembered := *stopped
	remembered.StoppedReplicas = 5
	for name, tc := range map[string]struct {
		task    *tasks.Task
		verdict *explain.Verdict
		want    []string
	}{
		"replicas wait":     {served("Deployment", 3, 5), shortage, []string{"Why do some replicas wait?", "3 of 5 replicas have quota; 2 wait. The next one is explained here. It requests 1 GPU"}},
		"stopped":           {&remembered, &explain.Verdict{Constraint: explain.Deactivated}, []string{"It is scaled to 0. Resume it to scale it to 5 replicas again."}},
		"scaled by another": {stopped, &explain.Verdict{Constraint: explain.Deactivated}, []string{"it is scaled to 0, or its pods are rejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			why := WhyOf(queries.Detail{Item: queries.Item{Task: tc.task}, About: queries.Item{Task: tc.task}, Verdict: tc.verdict})
			for _, want := range tc.want {
				if got := why.Title + " " + why.Text; !strings.Contains(got, want) {
					t.Errorf("%q does not contain %q", got, want)
				}
			}
		})
	}
}

// The reviews of stopping and resuming a service say what happens to its replicas.
func TestEffectsOnServices(t *testing.T) {
	running, stopped := served("Deployment", 3, 5), served("Deployment", 0, 1)
	stopped.State, stopped.StoppedReplicas = tasks.Stopped, 5
	review := func(task *tasks.Task, replicas int32) actions.Review {
		return actions.Review{Detail: queries.Detail{Item: queries.Item{Task: task}}, Replicas: replicas}
	}
	for name, tc := range map[string]struct {
		got, want []string
	}{
		"stop": {stopEffects(review(running, 0), "1h"), []string{
			"It is scaled to 0, and its pods end. It loses its 3 GPUs.", "It has run for 1h.",
			"It stays stopped until someone resumes it. It then gets as many replicas as it has now.", "No tasks wait in its queue now.",
		}},
		"resume": {resumeServingEffects(review(stopped, 5)), []string{
			"It is scaled to 5 replicas. It had as many when it was stopped.", "Each of them waits in its queue, and starts by itself.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

// The replicas of one task are one line among the tasks that use quota, and hidden tasks
// are not added to it.
func TestReplicasAreOneLink(t *testing.T) {
	fr := quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
	uses := func(uid, name string, n resources.Amount) explain.AdmittedWorkload {
		return explain.AdmittedWorkload{Namespace: "a", UID: uid, Name: name, Usage: quota.FlavorResourceQuantities{fr: n}}
	}
	var got []string
	for _, link := range workloadLinks([]explain.AdmittedWorkload{uses("d-1", "serve", 1), uses("j-1", "train", 4), uses("d-1", "serve", 2), {Team: "another team", Usage: quota.FlavorResourceQuantities{fr: 7}}}, fr) {
		got = append(got, link.Name+" "+link.Amount)
	}
	if diff := cmp.Diff([]string{"serve 3 GPUs", "train 4 GPUs", "another team 7 GPUs"}, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}
