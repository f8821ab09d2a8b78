package actions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
)

// owned creates a Workload as Kueue does for these objects, and returns its address.
func (l *lab) owned(name, kind string, controller bool, owners ...string) tasks.Address {
	l.t.Helper()
	var references []string
	for _, owner := range owners {
		resource, object, _ := strings.Cut(owner, "/")
		uid := l.c.Kubectl(l.t, "", "get", resource, object, "-n", l.name, "-o", "jsonpath={.metadata.uid}")
		version := l.c.Kubectl(l.t, "", "get", resource, object, "-n", l.name, "-o", "jsonpath={.apiVersion}")
		owned := l.c.Kubectl(l.t, "", "get", resource, object, "-n", l.name, "-o", "jsonpath={.kind}")
		references = append(references, fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: %t}", version, owned, object, uid, controller))
	}
	l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: %s, namespace: NAME, ownerReferences: [%s]}
spec: {active: false, queueName: main, priority: 0, podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}]}
`, name, strings.Join(references, ", ")))
	at := tasks.Address{Namespace: l.name, Kind: kind, Name: name}
	if controller {
		_, at.Name, _ = strings.Cut(owners[0], "/")
	}
	clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
		_, err := l.Review(ctx, l.member, at, actions.Delete)
		return err
	})
	return at
}

// The console may only delete tasks of kinds whose pods could be changed. For other
// actions it shows the command. Of a pod group it deletes all pods.
func TestOtherKinds(t *testing.T) {
	l := newLab(t)
	l.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edits, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME` + ada + `}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: served, namespace: NAME}
spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: NAME}
spec: {nodeSelector: {no: where}, containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: NAME}
spec: {nodeSelector: {no: where}, containers: [{name: a, image: a}]}
`)
	served := l.owned("served-workload", "StatefulSet", true, "statefulsets.apps/served")
	r, err := l.Review(t.Context(), l.member, served, actions.Class)
	if want := "kubectl label statefulsets.apps served -n " + l.name + " --overwrite kueue.x-k8s.io/priority-class=CLASS"; err != nil || !strings.Contains(r.Obstacle, want) {
		t.Errorf("got the obstacle %q (%v)", r.Obstacle, err)
	}
	l.refused(l.SetClass(t.Context(), l.member, served, l.name+"-high"), governance.Forbidden, "the console may not do it for you")
	l.must(l.Delete(t.Context(), l.member, served))

	group := l.owned("group", "PodGroup", false, "pods/one", "pods/two")
	if r, err = l.Review(t.Context(), l.member, group, actions.Class); err != nil || !strings.Contains(r.Obstacle, "pods without a job") {
		t.Errorf("got the obstacle %q (%v)", r.Obstacle, err)
	}
	if r, err = l.Review(t.Context(), l.member, group, actions.Delete); err != nil || r.Obstacle != "" || r.Pods != 2 {
		t.Errorf("got the review of delete %q, %d pods (%v)", r.Obstacle, r.Pods, err)
	}
	l.must(l.Delete(t.Context(), l.member, group))
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out, err := l.c.TryKubectl("", "get", "statefulsets,pods,workloads", "-n", l.name, "-o", "name"); err != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("%s still exist (%v)", out, err)
		}
		return nil
	})
}

// A job whose priority class does not exist has no Workload. It can get another class,
// and cannot be stopped.
func TestJobWithoutAWorkload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("lost", 1, "missing")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		d, err := l.Tasks.Detail(ctx, l.member, l.name, "Job", "lost", "")
		if err == nil && !d.NoWorkload {
			err = fmt.Errorf("the job has a Workload")
		}
		if err != nil {
			return err
		}
		offers, err := l.Offers(ctx, l.member, d)
		if err == nil && (len(offers) != 2 || offers[0].Action != actions.Class || offers[1].Action != actions.Delete) {
			t.Errorf("got the offers %+v, want class and delete", offers)
		}
		return err
	})
	l.refused(l.Stop(t.Context(), l.member, l.at("lost")), governance.Conflict, "created no Workload for it")
	r := l.review("lost", actions.Class)
	if r.Obstacle != "" || len(r.Choices) < 2 {
		t.Errorf("got the obstacle %q and choices %+v", r.Obstacle, r.Choices)
	}
	l.must(l.SetClass(t.Context(), l.member, l.at("lost"), l.name+"-high"))
	l.is("lost", tasks.Running, "high")

	l.job("lost-too", 1, "missing")
	clustertest.Eventually(t, soon, func(ctx context.Context) error { return l.Delete(ctx, l.member, l.at("lost-too")) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := l.Tasks.Detail(ctx, l.member, l.name, "Job", "lost-too", "")
		if governance.KindOf(err) != governance.NotFound {
			return fmt.Errorf("lost-too still exists: %w", err)
		}
		return nil
	})
}
