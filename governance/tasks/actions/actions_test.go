package actions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
)

// A stopped task releases its quota to the next one. Resumed, it waits behind it.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("long", 3, "low")
	l.is("long", tasks.Running, "")
	l.job("next", 2, "low")
	l.is("next", tasks.Pending, "")

	r := l.review("long", actions.Stop)
	if r.Obstacle != "" || r.Head == nil || r.Head.Name != "next" || r.Usage["nvidia.com/gpu"] != 3 {
		t.Errorf("got the review of stop %+v", r)
	}
	l.must(l.Stop(t.Context(), l.member, l.at("long")))
	l.is("long", tasks.Stopped, "")
	l.is("next", tasks.Running, "")
	if out := l.c.Kubectl(t, "", "get", "job", "long", "-n", l.name, "-o", "jsonpath={.spec.suspend}"); out != "true" {
		t.Errorf("the job has suspend %s, want true", out)
	}
	l.must(l.Stop(t.Context(), l.member, l.at("long"))) // a repeated request succeeds

	r = l.review("long", actions.Resume)
	if r.Obstacle != "" || r.Current.Position != 1 || r.Current.Verdict.Constraint != explain.Quota {
		t.Errorf("got the review of resume %+v", r.Current)
	}
	l.must(l.Resume(t.Context(), l.member, l.at("long")))
	l.is("long", tasks.Pending, "")
	l.must(l.Stop(t.Context(), l.admin, l.at("next")))
	l.is("long", tasks.Running, "")

	for _, want := range []string{"spec.active: true → false", l.member.Name, "kind=Workload"} {
		if !strings.Contains(l.log.String(), want) {
			t.Errorf("the audit log lacks %q:\n%s", want, l.log)
		}
	}
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := l.c.TryKubectl("", "get", "events", "-n", l.name, "-o", "jsonpath={.items[*].message}")
		if err != nil || !strings.Contains(out, "Changed by "+l.member.Name) || !strings.Contains(out, "spec.active: true → false") {
			return fmt.Errorf("got the events %s (%v)", out, err)
		}
		return nil
	})
}

// Another priority class moves a waiting task at once. A running task keeps running
// until one of a higher class preempts it.
func TestChangePriorityClass(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("runs", 4, "high")
	l.is("runs", tasks.Running, "")
	for _, name := range []string{"first", "second", "third"} {
		l.job(name, 3, "low")
		l.later(l.is(name, tasks.Pending, ""))
	}
	l.job("unclassed", 2, "")
	if d := l.is("unclassed", tasks.Pending, ""); d.Position != 4 {
		t.Errorf("got position %d, want 4", d.Position)
	}

	r := l.review("third", actions.Class)
	high := slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-high" })
	low := slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-low" })
	if r.Obstacle != "" || high < 0 || low < high || r.Choices[high].Position != 1 || r.Choices[low].Position != 3 || r.Choices[low].Ahead.Name != "second" {
		t.Fatalf("got the review of the priority class %q, %+v", r.Obstacle, r.Choices)
	}
	l.must(l.SetClass(t.Context(), l.member, l.at("third"), l.name+"-high"))
	clustertest.Eventually(t, soon, func(context.Context) error { // positions from Kueue are cached for two seconds
		if d := l.is("third", tasks.Pending, "high"); d.Position != 1 {
			return fmt.Errorf("got position %d, want 1", d.Position)
		}
		return nil
	})
	// A waiting job without a class can get one.
	l.must(l.SetClass(t.Context(), l.member, l.at("unclassed"), l.name+"-low"))
	l.is("unclassed", tasks.Pending, "low")

	// A running task keeps running, until one of a higher class preempts it.
	r = l.review("runs", actions.Class)
	if low := r.Choices[slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-low" })]; low.Outranked != 1 || !low.Preempts || low.Verdict != nil {
		t.Errorf("got the choice %+v for the running task", low)
	}
	l.must(l.SetClass(t.Context(), l.admin, l.at("runs"), l.name+"-low"))
	l.is("runs", tasks.Preempted, "low")
	l.is("third", tasks.Running, "high")
	if log := l.log.String(); !strings.Contains(log, "spec.priorityClass: – → ") || !strings.Contains(log, "user="+l.admin.Name) {
		t.Errorf("got the audit log\n%s", l.log)
	}
}

// Kueue adds no priority class to a running job without one: stop it, change the
// class, and resume it.
func TestClassOfARunningTaskWithoutOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("bare", 1, "")
	l.is("bare", tasks.Running, "")
	if r := l.review("bare", actions.Class); !strings.Contains(r.Obstacle, "three steps") {
		t.Errorf("got the obstacle %q", r.Obstacle)
	}
	l.c.Kubectl(t, "", "wait", "job/bare", "-n", l.name, "--for=jsonpath={.spec.suspend}=false") // Kueue starts a job after it admits it
	// Kueue refuses it too, if the task starts between the review and the action.
	l.refused(l.SetClass(t.Context(), l.member, l.at("bare"), l.name+"-high"), governance.Invalid, "cannot be added to a non-suspended workload")
	l.must(l.Stop(t.Context(), l.member, l.at("bare")))
	l.is("bare", tasks.Stopped, "")
	if r := l.review("bare", actions.Class); r.Obstacle != "" {
		t.Errorf("got the obstacle %q", r.Obstacle)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // the job is suspended a moment later
		return l.SetClass(ctx, l.member, l.at("bare"), l.name+"-high")
	})
	l.must(l.Resume(t.Context(), l.member, l.at("bare")))
	l.is("bare", tasks.Running, "high")
}

// Moving to the front sets the lowest priority class that makes the task the first.
func TestMoveToTheFront(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("runs", 4, "low")
	l.is("runs", tasks.Running, "")
	l.job("first", 4, "low")
	l.later(l.is("first", tasks.Pending, ""))
	if r := l.review("first", actions.Front); !strings.Contains(r.Obstacle, "first in its queue already") {
		t.Errorf("got the obstacle %q", r.Obstacle)
	}
	l.job("urgent", 4, "")
	l.is("urgent", tasks.Pending, "")
	r := l.review("urgent", actions.Front)
	if r.Obstacle != "" || len(r.Choices) != 1 || r.Choices[0].Position != 1 || r.Choices[0].Priority <= 10 {
		t.Fatalf("got the review %q %+v", r.Obstacle, r.Choices)
	}
	if v := r.Choices[0].Verdict; v.Constraint != explain.Preempting {
		t.Errorf("got the verdict %+v, want a preemption", v)
	}
	l.must(l.MoveToFront(t.Context(), l.member, l.at("urgent"), r.Choices[0].Name))
	if !strings.Contains(l.log.String(), "action=front kind=Job") {
		t.Errorf("got the audit log\n%s", l.log)
	}
	l.is("urgent", tasks.Running, "")
	l.is("runs", tasks.Preempted, "")
	l.is("first", tasks.Pending, "")
}

// Deleting a task deletes its job, its pods and its Workload.
func TestDelete(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("goes", 2, "low")
	l.is("goes", tasks.Running, "")
	l.must(l.Delete(t.Context(), l.member, l.at("goes")))
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out, err := l.c.TryKubectl("", "get", "jobs,workloads,pods", "-n", l.name, "-o", "name"); err != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("%s still exist (%v)", out, err)
		}
		return nil
	})
	l.refused(l.Delete(t.Context(), l.member, l.at("goes")), governance.NotFound, "Task not found")

	// A Workload without an owner, which an admin may delete and a member may not.
	l.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: alone, namespace: NAME}
spec: {active: false, queueName: main, priority: 0, podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}]}
`)
	alone := tasks.Address{Namespace: l.name, Kind: "Workload", Name: "alone"}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		r, err := l.Review(ctx, l.member, alone, actions.Delete)
		if err == nil && !strings.Contains(r.Obstacle, "right to delete workloads.kueue.x-k8s.io in namespace "+l.name) {
			err = errors.New(r.Obstacle)
		}
		return err
	})
	l.refused(l.Delete(t.Context(), l.member, alone), governance.Forbidden, "Nothing was changed")
	if r, err := l.Review(t.Context(), l.admin, alone, actions.Class); err != nil || !strings.Contains(r.Obstacle, "This Workload has no job") {
		t.Errorf("%q, %v", r.Obstacle, err)
	}
	l.must(l.Delete(t.Context(), l.admin, alone))
}

// A member of another team learns nothing, not even that the task exists.
func TestAnotherTeam(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("secret", 1, "low")
	l.is("secret", tasks.Running, "")
	_, existing := l.Review(t.Context(), l.other, l.at("secret"), actions.Stop)
	_, absent := l.Review(t.Context(), l.other, l.at("nothing"), actions.Stop)
	if governance.KindOf(existing) != governance.NotFound || existing.Error() != absent.Error() {
		t.Errorf("got %v for an existing task, and %v for an absent one", existing, absent)
	}
	for name, do := range map[string]func() error{
		"stop":   func() error { return l.Stop(t.Context(), l.other, l.at("secret")) },
		"resume": func() error { return l.Resume(t.Context(), l.other, l.at("secret")) },
		"class":  func() error { return l.SetClass(t.Context(), l.other, l.at("secret"), l.name+"-high") },
		"delete": func() error { return l.Delete(t.Context(), l.other, l.at("secret")) },
	} {
		if err := do(); governance.KindOf(err) != governance.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.is("secret", tasks.Running, "low")
}

// A viewer who may only read gets every offer with the permission that is missing.
func TestReadOnlyViewer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kueue-workload-viewer-role}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME-reader}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reads-workloads, namespace: NAME}
rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-workloads, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads-workloads}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME-reader}]
`)
	l.job("seen", 1, "low")
	d := l.is("seen", tasks.Running, "")
	reader := governance.User{Name: l.name + "-reader"}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := l.Review(ctx, reader, l.at("seen"), actions.Stop)
		return err
	})
	offers, err := l.Offers(t.Context(), reader, d)
	l.must(err)
	var rights []string
	for _, offer := range offers {
		rights = append(rights, string(offer.Action)+": "+offer.Missing.String())
	}
	in := " in namespace " + l.name
	if want := []string{"stop: patch workloads.kueue.x-k8s.io" + in, "class: patch jobs" + in, "delete: delete jobs" + in}; !slices.Equal(rights, want) {
		t.Errorf("got the missing permissions %q, want %q", rights, want)
	}
	l.refused(l.Stop(t.Context(), reader, l.at("seen")), governance.Forbidden, "you may not do this")
	offers, err = l.Offers(t.Context(), l.member, d)
	l.must(err)
	if slices.ContainsFunc(offers, func(o actions.Offer) bool { return o.Missing != nil }) || len(offers) != 3 {
		t.Errorf("a member gets the offers %+v, want 3 that are permitted", offers)
	}
}

// An action on a task that has changed meanwhile is refused with the reason.
func TestRaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("ends", 1, "low")
	d := l.is("ends", tasks.Running, "")
	old := tasks.Address{Namespace: l.name, Kind: "Job", Name: "ends", UID: d.UID}

	l.refused(l.SetClass(t.Context(), l.member, old, l.name+"-deleted"), governance.Conflict, "no priority class "+l.name+"-deleted any more")

	// A new job with the name of the deleted one is not changed.
	l.c.Kubectl(t, "", "delete", "job", "ends", "-n", l.name, "--wait")
	l.job("ends", 1, "low")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		now, err := l.Tasks.Detail(ctx, l.member, l.name, "Job", "ends", "")
		if err == nil && (now.UID == d.UID || now.State != tasks.Running) {
			err = errors.New("the new job does not run yet")
		}
		return err
	})
	for name, do := range map[string]func() error{
		"stop":   func() error { return l.Stop(t.Context(), l.member, old) },
		"class":  func() error { return l.SetClass(t.Context(), l.member, old, l.name+"-high") },
		"delete": func() error { return l.Delete(t.Context(), l.member, old) },
	} {
		if err := do(); governance.KindOf(err) != governance.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.is("ends", tasks.Running, "low")

	// Ended tasks can be submitted again or deleted.
	clustertest.Eventually(t, soon, func(context.Context) error { // once the Job controller has set its startTime
		out, err := l.c.TryKubectl("", "patch", "job", "ends", "-n", l.name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"active":0,"ready":0,"failed":1,"uncountedTerminatedPods":{},"conditions":[{"type":"FailureTarget","status":"True","reason":"x"},{"type":"Failed","status":"True","reason":"x"}]}}`)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	l.is("ends", tasks.Failed, "")
	for action, want := range map[actions.Action]string{actions.Stop: "submitted again or deleted", actions.Resume: "submitted again or deleted", actions.Class: "submitted again or deleted", actions.Front: "submitted again or deleted", actions.Delete: ""} {
		if r := l.review("ends", action); r.Obstacle != want && (want == "" || !strings.Contains(r.Obstacle, want)) {
			t.Errorf("%s: got the obstacle %q", action, r.Obstacle)
		}
	}
	l.refused(l.Stop(t.Context(), l.member, l.at("ends")), governance.Conflict, "has ended in between")
	l.refused(l.SetClass(t.Context(), l.member, l.at("ends"), l.name+"-high"), governance.Conflict, "has ended in between")
	l.must(l.Delete(t.Context(), l.member, l.at("ends")))
}
