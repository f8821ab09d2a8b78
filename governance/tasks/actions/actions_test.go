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

// Who runs into somebody in the way: stop, and have it go on behind the next.
func TestStopAndResume(t *testing.T) {
	l := newLab(t)
	l.job("long", 3, "low")
	l.is("long", tasks.Running, "")
	l.job("next", 2, "low")
	l.is("next", tasks.Pending, "")

	r := l.review("long", actions.Stop)
	if r.Obstacle != "" || r.Head == nil || r.Head.Name != "next" || r.Usage["nvidia.com/gpu"] != 3 {
		t.Errorf("stopping says %+v", r)
	}
	l.must(l.Stop(t.Context(), l.member, l.at("long")))
	l.is("long", tasks.Stopped, "")
	l.is("next", tasks.Running, "")
	if out := l.c.Kubectl(t, "", "get", "job", "long", "-n", l.name, "-o", "jsonpath={.spec.suspend}"); out != "true" {
		t.Errorf("the job's suspend is %s", out)
	}
	l.must(l.Stop(t.Context(), l.member, l.at("long"))) // sent twice

	r = l.review("long", actions.Resume)
	if r.Obstacle != "" || r.Current.Position != 1 || r.Current.Verdict.Constraint != explain.Quota {
		t.Errorf("resuming says %+v", r.Current)
	}
	l.must(l.Resume(t.Context(), l.member, l.at("long")))
	l.is("long", tasks.Pending, "")
	l.must(l.Stop(t.Context(), l.admin, l.at("next")))
	l.is("long", tasks.Running, "")

	for _, want := range []string{"spec.active: true → false", l.member.Name, "kind=Workload"} {
		if !strings.Contains(l.log.String(), want) {
			t.Errorf("the audit lacks %q:\n%s", want, l.log)
		}
	}
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := l.c.TryKubectl("", "get", "events", "-n", l.name, "-o", "jsonpath={.items[*].message}")
		if err != nil || !strings.Contains(out, "Changed by "+l.member.Name) || !strings.Contains(out, "spec.active: true → false") {
			return fmt.Errorf("events say %s (%v)", out, err)
		}
		return nil
	})
}

// Another class moves a task that waits, at once, and stays with one that runs.
func TestChangeTheClass(t *testing.T) {
	l := newLab(t)
	l.job("runs", 4, "high")
	l.is("runs", tasks.Running, "")
	for _, name := range []string{"first", "second", "third"} {
		l.job(name, 3, "low")
		l.later(l.is(name, tasks.Pending, ""))
	}
	l.job("unclassed", 2, "")
	if d := l.is("unclassed", tasks.Pending, ""); d.Position != 4 {
		t.Errorf("it stands %d", d.Position)
	}

	r := l.review("third", actions.Class)
	high := slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-high" })
	low := slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-low" })
	if r.Obstacle != "" || high < 0 || low < high || r.Choices[high].Position != 1 || r.Choices[low].Position != 3 || r.Choices[low].Ahead.Name != "second" {
		t.Fatalf("changing the class says %q, %+v", r.Obstacle, r.Choices)
	}
	l.must(l.SetClass(t.Context(), l.member, l.at("third"), l.name+"-high"))
	clustertest.Eventually(t, soon, func(context.Context) error { // what Kueue told is kept for two seconds
		if d := l.is("third", tasks.Pending, "high"); d.Position != 1 {
			return fmt.Errorf("it stands %d", d.Position)
		}
		return nil
	})
	// A job that waits and had no class is given one.
	l.must(l.SetClass(t.Context(), l.member, l.at("unclassed"), l.name+"-low"))
	l.is("unclassed", tasks.Pending, "low")

	// A running one goes on, until a higher one wants its place.
	r = l.review("runs", actions.Class)
	if low := r.Choices[slices.IndexFunc(r.Choices, func(c actions.Choice) bool { return c.Name == l.name+"-low" })]; low.Outranked != 1 || !low.Preempts || low.Verdict != nil {
		t.Errorf("lowering the class of what runs says %+v", low)
	}
	l.must(l.SetClass(t.Context(), l.admin, l.at("runs"), l.name+"-low"))
	l.is("runs", tasks.Preempted, "low")
	l.is("third", tasks.Running, "high")
	if log := l.log.String(); !strings.Contains(log, "spec.priorityClass: – → ") || !strings.Contains(log, "user="+l.admin.Name) {
		t.Errorf("the audit says\n%s", l.log)
	}
}

// Kueue gives no class to what runs without one: stop, change, resume.
func TestClassOfARunningTaskWithoutOne(t *testing.T) {
	l := newLab(t)
	l.job("bare", 1, "")
	l.is("bare", tasks.Running, "")
	if r := l.review("bare", actions.Class); !strings.Contains(r.Obstacle, "three steps") {
		t.Errorf("the obstacle is %q", r.Obstacle)
	}
	// Kueue itself says so too, to whoever comes here in between.
	l.refused(l.SetClass(t.Context(), l.member, l.at("bare"), l.name+"-high"), governance.Invalid, "cannot be added to a non-suspended workload")
	l.must(l.Stop(t.Context(), l.member, l.at("bare")))
	l.is("bare", tasks.Stopped, "")
	if r := l.review("bare", actions.Class); r.Obstacle != "" {
		t.Errorf("the obstacle is %q", r.Obstacle)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // once the job is suspended too
		return l.SetClass(ctx, l.member, l.at("bare"), l.name+"-high")
	})
	l.must(l.Resume(t.Context(), l.member, l.at("bare")))
	l.is("bare", tasks.Running, "high")
}

// To the front is the lowest class that puts it there, and it is then the next.
func TestMoveToTheFront(t *testing.T) {
	l := newLab(t)
	l.job("runs", 4, "low")
	l.is("runs", tasks.Running, "")
	l.job("first", 4, "low")
	l.later(l.is("first", tasks.Pending, ""))
	if r := l.review("first", actions.Front); !strings.Contains(r.Obstacle, "first in its queue already") {
		t.Errorf("the obstacle is %q", r.Obstacle)
	}
	l.job("urgent", 4, "")
	l.is("urgent", tasks.Pending, "")
	r := l.review("urgent", actions.Front)
	if r.Obstacle != "" || len(r.Choices) != 1 || r.Choices[0].Position != 1 || r.Choices[0].Priority <= 10 {
		t.Fatalf("it says %q %+v", r.Obstacle, r.Choices)
	}
	if v := r.Choices[0].Verdict; v.Constraint != explain.Preempting || len(v.Shortage.LowerPriority) != 1 || v.Shortage.LowerPriority[0].Name != "runs" {
		t.Errorf("it would push out %+v", v)
	}
	l.must(l.SetClass(t.Context(), l.member, l.at("urgent"), r.Choices[0].Name))
	l.is("urgent", tasks.Running, "")
	l.is("runs", tasks.Preempted, "")
	l.is("first", tasks.Pending, "")
}

// Deleting takes the job, its pods and Kueue's record of it.
func TestDelete(t *testing.T) {
	l := newLab(t)
	l.job("goes", 2, "low")
	l.is("goes", tasks.Running, "")
	l.must(l.Delete(t.Context(), l.member, l.at("goes")))
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out, err := l.c.TryKubectl("", "get", "jobs,workloads,pods", "-n", l.name, "-o", "name"); err != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("there are still %s (%v)", out, err)
		}
		return nil
	})
	l.refused(l.Delete(t.Context(), l.member, l.at("goes")), governance.NotFound, "Task not found")

	// A Workload that nobody owns, which a member may not delete and an admin may.
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

// Somebody of another team learns nothing, not even that the task is there.
func TestAnotherTeam(t *testing.T) {
	l := newLab(t)
	l.job("secret", 1, "low")
	l.is("secret", tasks.Running, "")
	_, there := l.Review(t.Context(), l.other, l.at("secret"), actions.Stop)
	_, absent := l.Review(t.Context(), l.other, l.at("nothing"), actions.Stop)
	if governance.KindOf(there) != governance.NotFound || there.Error() != absent.Error() {
		t.Errorf("%v, and of one that is not there %v", there, absent)
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

// Whoever only looks is offered nothing, and told which right is missing.
func TestOnlooker(t *testing.T) {
	l := newLab(t)
	l.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: onlooker, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kueue-workload-viewer-role}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME-onlooker}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looks, namespace: NAME}
rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: looks, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME-onlooker}]
`)
	l.job("seen", 1, "low")
	d := l.is("seen", tasks.Running, "")
	onlooker := governance.User{Name: l.name + "-onlooker"}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := l.Review(ctx, onlooker, l.at("seen"), actions.Stop)
		return err
	})
	offers, err := l.Offers(t.Context(), onlooker, d)
	l.must(err)
	var rights []string
	for _, offer := range offers {
		rights = append(rights, string(offer.Action)+": "+offer.Missing.String())
	}
	in := " in namespace " + l.name
	if want := []string{"stop: patch workloads.kueue.x-k8s.io" + in, "class: patch jobs" + in, "delete: delete jobs" + in}; !slices.Equal(rights, want) {
		t.Errorf("missing are %q", rights)
	}
	l.refused(l.Stop(t.Context(), onlooker, l.at("seen")), governance.Forbidden, "you may not do this")
	offers, err = l.Offers(t.Context(), l.member, d)
	l.must(err)
	if slices.ContainsFunc(offers, func(o actions.Offer) bool { return o.Missing != nil }) || len(offers) != 3 {
		t.Errorf("a member is offered %+v", offers)
	}
}

// What changed in between is told, and nothing is lost by it.
func TestRaces(t *testing.T) {
	l := newLab(t)
	l.job("ends", 1, "low")
	d := l.is("ends", tasks.Running, "")
	old := tasks.Address{Namespace: l.name, Kind: "Job", Name: "ends", UID: d.UID}

	l.refused(l.SetClass(t.Context(), l.member, old, l.name+"-gone"), governance.Conflict, "no priority class "+l.name+"-gone any more")

	// Deleted, and submitted anew under its name: the new one is not touched.
	l.c.Kubectl(t, "", "delete", "job", "ends", "-n", l.name, "--wait")
	l.job("ends", 1, "low")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		now, err := l.Tasks.Detail(ctx, l.member, l.name, "Job", "ends", "")
		if err == nil && (now.UID == d.UID || now.State != tasks.Running) {
			err = errors.New("the old one still")
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

	// What has ended can only be deleted.
	l.c.Kubectl(t, "", "patch", "job", "ends", "-n", l.name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"active":0,"ready":0,"failed":1,"uncountedTerminatedPods":{},"conditions":[{"type":"FailureTarget","status":"True","reason":"x"},{"type":"Failed","status":"True","reason":"x"}]}}`)
	l.is("ends", tasks.Failed, "")
	for action, want := range map[actions.Action]string{actions.Stop: "can only be deleted", actions.Resume: "can only be deleted", actions.Class: "can only be deleted", actions.Front: "can only be deleted", actions.Delete: ""} {
		if r := l.review("ends", action); r.Obstacle != want && (want == "" || !strings.Contains(r.Obstacle, want)) {
			t.Errorf("%s: the obstacle is %q", action, r.Obstacle)
		}
	}
	l.refused(l.Stop(t.Context(), l.member, l.at("ends")), governance.Conflict, "has ended in between")
	l.refused(l.SetClass(t.Context(), l.member, l.at("ends"), l.name+"-high"), governance.Conflict, "has ended in between")
	l.must(l.Delete(t.Context(), l.member, l.at("ends")))
}
