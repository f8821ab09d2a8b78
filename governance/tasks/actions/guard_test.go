package actions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guarded is an object of the lab of which users may patch only some fields.
type guarded struct {
	*lab
	version, kind, name string
}

// patch patches the object as user, as a dry run.
func (g guarded) patch(user governance.User, text string) error {
	g.t.Helper()
	writer, err := g.Cluster.ClientAs(user)
	g.must(err)
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: g.version, Kind: g.kind}}
	object.Namespace, object.Name = g.lab.name, g.name
	return writer.Patch(g.t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
}

// refuses checks that one of the admission policies refuses each patch.
func (g guarded) refuses(user governance.User, patches map[string]string, policies ...string) {
	g.t.Helper()
	for name, text := range patches {
		clustertest.Eventually(g.t, soon, func(context.Context) error { // the API server loads a policy with a delay
			err := g.patch(user, text)
			for _, policy := range policies {
				if err != nil && strings.Contains(err.Error(), "'"+policy+"'") {
					return nil
				}
			}
			return fmt.Errorf("%s of %s by %s: %w, want a refusal by the policy", name, g.kind, user.Name, err)
		})
	}
}

// takes waits until a patch succeeds: RBAC takes effect with a delay.
func (g guarded) takes(user governance.User, text string) {
	g.t.Helper()
	clustertest.Eventually(g.t, soon, func(context.Context) error {
		err := g.patch(user, text)
		// A cluster whose policy has other classes refuses this one, by another policy.
		if err != nil && !strings.Contains(err.Error(), "unknown priority class") {
			return fmt.Errorf("%s by %s: %w", text, user.Name, err)
		}
		return nil
	})
}

// grant gives user verbs on a resource in the lab's namespace.
func (l *lab) grant(user governance.User, group, resource, verbs string) {
	l.t.Helper()
	l.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: NAME}
rules: [{apiGroups: ["%[2]s"], resources: [%[3]s], verbs: [%[4]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[5]s}]
`, strings.ReplaceAll(user.Name, "@", "-at-"), group, resource, verbs, user.Name))
}

func (l *lab) govern() {
	l.t.Helper()
	l.c.Kubectl(l.t, "", "label", "namespace", l.name, "kuota.dev/governed=true")
}

// jobPatches would let a job bypass its queue, or change more than its priority class.
var jobPatches = map[string]string{
	"suspend":     `{"spec": {"suspend": true}}`,
	"queue":       `{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}`,
	"no queue":    `{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`,
	"more labels": `{"metadata": {"labels": {"a": "b"}}}`,
	"annotations": `{"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}}`,
	"finalizers":  `{"metadata": {"finalizers": ["example.com/stay"]}}`,
}

// Users who may only patch a job can change its priority class and nothing else, in
// governed namespaces and in others. Neither members nor admins can start a job that
// bypasses its queue.
func TestOnlyTheClassOfAJobIsPatched(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("guarded", 1, "low")
	l.is("guarded", tasks.Running, "")
	g := guarded{l, "batch/v1", "Job", "guarded"}
	runner := governance.User{Name: l.name + "runner@example.com"} // with the rights of the ClusterRole edit
	l.grant(runner, "batch", "jobs", "get, patch, update")
	class := `{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "` + l.name + `-high"}}}`
	for _, govern := range []bool{false, true} {
		if govern {
			l.govern()
		}
		for _, user := range []governance.User{l.member, l.admin} {
			g.refuses(user, jobPatches, "kuota-jobs", "kuota-enforcement-jobs")
			g.refuses(user, map[string]string{"pods": `{"spec": {"parallelism": 3}}`, "time limit": `{"spec": {"activeDeadlineSeconds": 5}}`}, "kuota-jobs")
			g.takes(user, class)
		}
		g.takes(runner, `{"spec": {"activeDeadlineSeconds": 5}}`)
	}
}

// The same rule applies to JobSets, even if their definition is created after the policy.
func TestOnlyTheClassOfAJobSetIsPatched(t *testing.T) {
	l := newLab(t)
	l.definition()
	l.c.Kubectl(t, "", "wait", "--for=condition=Established", "crd/"+jobSets)
	clustertest.Eventually(t, soon, func(context.Context) error { // kubectl discovers the kind with a delay
		_, err := l.c.TryKubectl(strings.ReplaceAll(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: guarded, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: NAME-low}}
spec: {suspend: true, replicatedJobs: []}
`, "NAME", l.name), "apply", "--server-side", "-f", "-")
		return err
	})
	g := guarded{l, "jobset.x-k8s.io/v1alpha2", "JobSet", "guarded"}
	operator := governance.User{Name: l.name + "operator@example.com"}
	l.grant(operator, "jobset.x-k8s.io", "jobsets", "get, patch, update")
	patches := map[string]string{"let go": `{"spec": {"suspend": false}}`, "more jobs": `{"spec": {"replicatedJobs": [{"name": "more"}]}}`}
	for name, text := range jobPatches {
		patches[name] = text
	}
	delete(patches, "suspend") // the JobSet is suspended already
	g.refuses(l.admin, patches, "kuota-jobs")
	g.takes(l.admin, `{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "`+l.name+`-high"}}}`)
	g.takes(operator, `{"spec": {"suspend": false}}`)
}

const jobSets = "jobsets.jobset.x-k8s.io"

// definition creates the CRD of JobSet for the test, unless it exists.
func (l *lab) definition() {
	l.t.Helper()
	if _, err := l.c.TryKubectl("", "get", "crd", jobSets); err == nil {
		return
	}
	l.apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + jobSets + `, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {kind: JobSet, plural: jobsets, singular: jobset}
  versions:
  - {name: v1alpha2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "crd", jobSets, "--wait=false") })
}

// Users who may only patch a Workload can change spec.active and nothing else, in every
// namespace. In governed namespaces that also applies to users who may update
// Workloads, but not to Kueue, which writes their status.
func TestOnlyActiveOfAWorkloadIsPatched(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.job("guarded", 1, "low")
	d := l.is("guarded", tasks.Running, "")
	g := guarded{l, "kueue.x-k8s.io/v1beta2", "Workload", d.Main.Name}
	editor := governance.User{Name: l.name + "editor@example.com"} // with the rights of Kueue's role for admins
	l.grant(editor, "kueue.x-k8s.io", "workloads", "get, patch, update")
	kueue := governance.User{Name: l.name + "kueue@example.com"}
	l.grant(kueue, "kueue.x-k8s.io", "workloads, workloads/status", "get, patch, update")
	patches := map[string]string{
		"priority":   `{"spec": {"priority": 1000}}`,
		"boost":      `{"metadata": {"annotations": {"kueue.x-k8s.io/priority-boost": "9"}}}`,
		"labels":     `{"metadata": {"labels": {"kueue.x-k8s.io/job-uid": "1"}}}`,
		"finalizers": `{"metadata": {"finalizers": ["example.com/stay"]}}`,
	}
	priority := patches["priority"]
	for _, user := range []governance.User{l.member, l.admin} {
		g.refuses(user, patches, "kuota-workloads")
		g.takes(user, `{"spec": {"active": false}}`)
	}
	g.takes(editor, priority)
	g.takes(kueue, priority)

	l.govern()
	for _, user := range []governance.User{l.member, l.admin, editor} {
		g.refuses(user, patches, "kuota-workloads")
		g.takes(user, `{"spec": {"active": false}}`)
	}
	g.takes(kueue, priority)

	// Users who may stop the task may remove the mark of the loop guard. Only the loop
	// guard may set it.
	mark := func(value string) string {
		return fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}, "spec": {"active": false}}`, loopguard.MarkAnnotation, value)
	}
	l.c.Kubectl(t, "", "annotate", "workload", g.name, "-n", l.name, loopguard.MarkAnnotation+"="+loopguard.Mark{Identity: "x"}.String())
	for _, user := range []governance.User{l.member, l.admin} {
		g.refuses(user, map[string]string{"another mark": mark(`"{}"`), "mark and more": `{"metadata": {"annotations": {"` + loopguard.MarkAnnotation + `": null, "a": "b"}}}`}, "kuota-workloads")
		g.takes(user, mark("null"))
	}
	l.c.Kubectl(t, "", "annotate", "workload", g.name, "-n", l.name, loopguard.MarkAnnotation+"-")
	g.refuses(l.member, map[string]string{"a mark": mark(`"{}"`)}, "kuota-workloads")
}

// Stop and Resume of a task that the loop guard holds remove the mark, so that the
// guard does not activate the task later.
func TestActionsTakeAHeldTaskOver(t *testing.T) {
	for name, tc := range map[string]struct {
		do         func(l *lab, at tasks.Address) error
		wantActive string
		wantState  tasks.State
	}{
		"stop":   {func(l *lab, at tasks.Address) error { return l.Stop(l.t.Context(), l.member, at) }, "false", tasks.Stopped},
		"resume": {func(l *lab, at tasks.Address) error { return l.Resume(l.t.Context(), l.member, at) }, "true", tasks.Running},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.job("held", 1, "low")
			d := l.is("held", tasks.Running, "")
			mark := loopguard.Mark{Identity: "x", Preemptor: "y", Until: time.Now().Add(time.Hour)}
			l.c.Kubectl(t, "", "patch", "workload", d.Main.Name, "-n", l.name, "--type=merge", "-p",
				fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}, "spec": {"active": false}}`, loopguard.MarkAnnotation, mark))
			d = l.is("held", tasks.Preempted, "")
			if _, held := d.Hold(); !held {
				t.Errorf("the task is %s without a hold", d.State)
			}
			if d.Verdict == nil || d.Verdict.Constraint != explain.LoopHeld || d.Agreement != explain.Agrees {
				t.Errorf("got the verdict %+v, and its agreement with Kueue: %s", d.Verdict, d.Agreement)
			}
			l.must(tc.do(l, tasks.Address{Namespace: l.name, Kind: "Job", Name: "held"}))
			l.is("held", tc.wantState, "")
			got := l.c.Kubectl(t, "", "get", "workload", d.Main.Name, "-n", l.name, "-o", "jsonpath={.spec.active} {.metadata.annotations}")
			if !strings.HasPrefix(got, tc.wantActive) || strings.Contains(got, loopguard.MarkAnnotation) {
				t.Errorf("got the Workload %s, want active %s without a mark", got, tc.wantActive)
			}
		})
	}
}
