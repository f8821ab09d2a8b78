package queries

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A viewer who may not see another team learns neither which of its tasks preempted
// theirs, nor that it lends to them, nor its names in events.
func TestOtherTeamsAreNotNamed(t *testing.T) {
	x, _ := newTestService()
	other := taskstest.Workload("secret-ns", "secret-task", "", 9, taskstest.Start, taskstest.Admitted(taskstest.Start)...)
	other.UID = "abc-1"
	x.SetWorkload(other, false)
	x.SetWorkload(taskstest.Workload("mine", "task", "", 0, taskstest.Start, taskstest.PreemptedBy("abc-1", taskstest.Start)...), false)
	task := x.Find("mine", "Job", "task", "")
	member := viewer{
		index: x, scope: access.ScopeOf("mine"), teams: taskstest.Teams("mine", "vision"),
		names: &redactor{names: map[string]bool{"secret-ns": true, "secret-queue": true}, own: map[string]bool{"q": true}},
	}
	for name, v := range map[string]viewer{"member": member, "admin": {index: x, scope: access.Scope{All: true}, teams: taskstest.Teams("secret-ns", "secret")}} {
		l, err := v.life(context.Background(), task)
		if err != nil {
			t.Fatal(err)
		}
		n := v.notice(&corev1.Event{Message: "Preempted workload secret-ns/job-secret-task-1 (UID: 1) in ClusterQueue secret-queue; mine/job-task"})
		text := fmt.Sprint(n.Text, v.lender("secret-queue"))
		for _, e := range l.Timeline {
			if e.Preemptor != nil {
				text += e.Preemptor.Name + e.PreemptorTeam
			}
		}
		want := map[string]string{
			"member": "Preempted workload of another team (UID: 1) in ClusterQueue another team; mine/job-task",
			"admin":  "Preempted workload secret-ns/job-secret-task-1 (UID: 1) in ClusterQueue secret-queue; mine/job-tasksecretsecret-tasksecret",
		}[name]
		if text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
	}
}

// Nor does such a viewer learn names from the Workload as YAML. An admin reads it as it is.
func TestWorkloadOfOtherTeamsIsNotNamed(t *testing.T) {
	const text = "Preempted to accommodate a workload (UID: 1) due to reclamation within the cohort; preemptor path: /all/secret-queue; preemptee path: /all/own"
	workload := func() *kueue.Workload {
		w := taskstest.Workload("mine", "task", "", 0, taskstest.Start, metav1.Condition{Type: "Evicted", Status: "True", Message: text})
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check", Message: "waits for secret-ns"}}
		return w
	}
	w := workload()
	(&redactor{names: map[string]bool{"secret-ns": true, "secret-queue": true}, own: map[string]bool{"own": true}}).redactWorkload(w)
	if got, check := w.Status.Conditions[0].Message, w.Status.AdmissionChecks[0].Message; strings.Contains(got, "secret") || !strings.Contains(got, "/all/own") || check != "waits for another team" {
		t.Errorf("got %q and %q", got, check)
	}
	w = workload()
	(*redactor)(nil).redactWorkload(w)
	if w.Status.Conditions[0].Message != text {
		t.Errorf("an admin gets %q", w.Status.Conditions[0].Message)
	}
}

// Nor does such a viewer learn which tasks of another team use the quota that theirs
// needs, nor how many they are: only their total.
func TestAdmittedWorkloadsOfOtherTeamsAreNotNamed(t *testing.T) {
	fr := quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
	x, _ := newTestService()
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("mine", "low", "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "own", 2), false)
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("secret-ns", "secret-task", "", 9, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "secret-queue", 3), false)
	x.SetWorkload(taskstest.UsingGPUs(taskstest.Workload("secret-ns", "secret-other", "", 9, taskstest.Start, taskstest.Admitted(taskstest.Start)...), "secret-queue", 1), false)
	verdict := func(v viewer, gpus resources.Amount) *explain.Verdict {
		own := &explain.Queue{Name: "own", Cohort: "all", ReclaimWithinCohort: kueue.PreemptionPolicyAny, Flavors: []string{"a100"}, Resources: []string{"nvidia.com/gpu"}, Limits: map[quota.FlavorResource]explain.Limit{fr: {Nominal: 6}}}
		c := &explain.Cluster{Queue: own, Queues: map[string]*explain.Queue{"own": own, "secret-queue": {Name: "secret-queue", Team: "secret", Cohort: "all"}}, Flavors: map[string]kueue.ResourceFlavorSpec{"a100": {}}, PriorityClasses: []explain.PriorityClass{{Name: "high", Priority: 20}}}
		c.Admitted = index.AdmittedTo(x.SetUsage(c.Queues), map[string]bool{"own": true, "secret-queue": true})
		return v.explain(explain.Task{Namespace: "mine", Priority: 5, PodSets: []explain.PodSet{{Name: "main", Count: 1, MinCount: 1, Requests: quota.Resources{"nvidia.com/gpu": gpus}}}}, c)
	}
	member := viewer{index: x, scope: access.ScopeOf("mine"), teams: taskstest.Teams("mine", "vision"), names: &redactor{own: map[string]bool{"own": true}}}
	admin := viewer{index: x, scope: access.Scope{All: true}, teams: taskstest.Teams("mine", "vision", "secret-ns", "secret")}

	seen := verdict(admin, 4)
	redacted := verdict(member, 4)
	if redacted.Constraint != explain.Preempting {
		t.Errorf("got %+v", redacted)
	}
	if borrowers := seen.Shortage.Borrowers; len(borrowers) != 1 || borrowers[0].Team != "secret" || borrowers[0].Amount != 4 {
		t.Errorf("an admin gets the borrowers %+v", borrowers)
	}
	if want := []explain.Borrower{{Team: anotherTeam, Amount: 4}}; !cmp.Equal(want, redacted.Shortage.Borrowers) {
		t.Errorf("a member gets the borrowers %+v", redacted.Shortage.Borrowers)
	}
	if own := redacted.Shortage.InQueue; len(own) != 1 || own[0].Name != "low" || own[0].Team != "vision" {
		t.Errorf("a member gets the workloads %+v of their own team", own)
	}
	if diff := cmp.Diff(seen, verdict(admin, 4)); diff != "" {
		t.Errorf("the redaction for a member changed the verdict of an admin (-before +after):\n%s", diff)
	}
}
