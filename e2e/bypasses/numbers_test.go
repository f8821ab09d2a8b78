package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

const number = `, kuota.dev/priority: "42"`

// labeled returns the labels of a task with its queue and more.
func labeled(more string) string { return `labels: {kueue.x-k8s.io/queue-name: QUEUE` + more + `}` }

// allowNumbers sets whether the policy allows priorities by number.
func (ns namespace) allowNumbers(t *testing.T, allowed bool) {
	t.Helper()
	ns.Kubectl(t, "", "patch", "clusterpolicy", "default", "--type=merge", "-p", fmt.Sprintf(`{"spec": {"numericPriorities": %t}}`, allowed))
	ns.waitForPolicy(t)
}

// readNumber prints the priority class of a task, and the number that is left.
const readNumber = `jsonpath={.metadata.labels.kueue\.x-k8s\.io/priority-class} {.metadata.labels.kuota\.dev/priority}{.metadata.annotations.kuota\.dev/priority}`

// numberOf creates an object as a dry run, and returns its readNumber.
func (ns namespace) numberOf(manifest string) (string, error) {
	out, err := ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-f", "-", "-o", readNumber)
	return out[strings.LastIndex(out, "\n")+1:], err // after warnings
}

// checkServices checks pods and services with a number, which Kueue has to manage.
func (ns namespace) checkServices(t *testing.T) {
	t.Helper()
	if _, err := ns.TryKubectl("", "get", "mutatingadmissionpolicy", "kuota-priorities"); err != nil {
		return
	}
	ns.allowNumbers(t, true)
	defer ns.allowNumbers(t, false)
	const service = `{apiVersion: apps/v1, kind: %s, metadata: {name: a, namespace: NAMESPACE, %s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b%s}}, spec: {containers: [{name: main, image: none}]}}}}`
	for name, manifest := range map[string]string{
		"a pod":                    podOf("a", labeled(number), ``),
		"a Deployment":             fmt.Sprintf(service, "Deployment", labeled(number), ``),
		"a Deployment by its pods": fmt.Sprintf(service, "Deployment", onlyQueue, number),
		"a StatefulSet":            fmt.Sprintf(service, "StatefulSet", labeled(number), ``),
	} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error { // until the API server has read its parameters
			if out, err := ns.numberOf(manifest); err != nil || out != "kuota-priority-42 " {
				return fmt.Errorf("%s: got %q, %w", name, out, err)
			}
			return nil
		})
	}
}

// TestPriorityNumbers checks that a task that names its priority by number gets the class of the
// number, whichever client submits or changes it, or that the rejection says what is wrong.
func TestPriorityNumbers(t *testing.T) {
	ns := newNamespace(t)
	defer ns.clear(t)
	annotated := func(value string) string {
		return onlyQueue + `, annotations: {kuota.dev/priority: "` + value + `"}`
	}
	job := func(metadata string) string { return jobOf("a", metadata, ``, ``) }
	ofPods := func(metadata, template string) string {
		return strings.Replace(job(metadata), `pod-complete.stage.kwok.x-k8s.io/delay: 1h}`, `pod-complete.stage.kwok.x-k8s.io/delay: 1h`+template+`}`, 1)
	}
	rejected := func(manifest, text string) {
		t.Helper()
		clustertest.Eventually(t, waitLimit, func(context.Context) error { // until the API server has read its parameters
			if out, err := ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(out, text) {
				return fmt.Errorf("got %s and error %v, want a rejection with %q", out, err, text)
			}
			return nil
		})
	}
	const instead = "set the label kueue.x-k8s.io/priority-class to kuota-priority-42 instead"
	rejected(job(labeled(number)), "Job: the cluster policy allows no priority by number: remove kuota.dev/priority")
	rejected(job(labeled(`, kueue.x-k8s.io/priority-class: kuota-priority-42`)), "unknown priority class kuota-priority-42: set the label kueue.x-k8s.io/priority-class to one of training-priority, dev-priority")
	ns.allowNumbers(t, true)
	defer ns.allowNumbers(t, false)
	if _, err := ns.TryKubectl("", "get", "mutatingadmissionpolicy", "kuota-priorities"); err != nil {
		rejected(job(labeled(number)), instead)
		ns.accepts(t, job(labeled(`, kueue.x-k8s.io/priority-class: kuota-priority-42`)))
		return
	}

	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.numberOf(job(labeled(number)))
		if err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	for name, tc := range map[string]struct{ manifest, want string }{
		"a label":                   {job(labeled(number)), "kuota-priority-42 "},
		"an annotation":             {job(annotated("42")), "kuota-priority-42 "},
		"both":                      {job(labeled(number) + `, annotations: {kuota.dev/priority: "42"}`), "kuota-priority-42 "},
		"no labels":                 {`{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NAMESPACE}, spec: {template: ` + template(labeled(number), ``) + `}}`, "kuota-priority-42 "}, // Kubernetes copies those of pods
		"the lowest":                {job(annotated("0")), "kuota-priority-0 "},
		"the highest":               {job(annotated("99")), "kuota-priority-99 "},
		"two digits":                {job(annotated("07")), "kuota-priority-7 "},
		"a label of pods":           {jobOf("a", onlyQueue, `labels: {kuota.dev/priority: "42"}`, ``), "kuota-priority-42 "},
		"an annotation of pods":     {ofPods(onlyQueue, `, kuota.dev/priority: "42"`), "kuota-priority-42 "},
		"an ElasticJob":             {elasticFor("a", labeled(number), ""), "kuota-priority-42 "},
		"a CronJob for its Jobs":    {cronJobOf(labeled(number)), " "},
		"the class and its number":  {job(labeled(number + `, kueue.x-k8s.io/priority-class: kuota-priority-42`)), "kuota-priority-42 42"},
		"a number and a time limit": {job(labeled(number + `, kueue.x-k8s.io/max-exec-time-seconds: "60"`)), "kuota-priority-42 "},
	} {
		for range 3 { // the API server invokes policies in any order
			if out, err := ns.numberOf(tc.manifest); err != nil || out != tc.want {
				t.Errorf("%s: got %q, %v, want %q", name, out, err, tc.want)
			}
		}
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"above 99":            {job(annotated("100")), "Job: kuota.dev/priority is 100, and must be a whole number from 0 to 99"},
		"below 0":             {job(annotated("-1")), "Job: kuota.dev/priority is -1, and must be a whole number from 0 to 99"},
		"no number":           {job(labeled(`, kuota.dev/priority: high`)), "Job: kuota.dev/priority is high, and must be a whole number from 0 to 99"},
		"a class":             {job(labeled(number + `, kueue.x-k8s.io/priority-class: training-priority`)), "Job: it has the priority 42 and the priority class training-priority: remove kuota.dev/priority or the label kueue.x-k8s.io/priority-class"},
		"two numbers":         {job(labeled(number) + `, annotations: {kuota.dev/priority: "43"}`), "Job: it has the priority 43 and the priority class kuota-priority-42"},
		"another one of pods": {ofPods(labeled(number), `, kuota.dev/priority: "43"`), "Job: it has the priority 43 and the priority class kuota-priority-42"},
		"a class of pods":     {jobOf("a", labeled(number), `labels: {kueue.x-k8s.io/priority-class: dev-priority}`, ``), "Job: it has the priority 42 and the priority class dev-priority"},
		"an ElasticJob":       {elasticFor("a", annotated("100"), ""), "ElasticJob: kuota.dev/priority is 100"},
		"a CronJob":           {cronJobOf(annotated("100")), "CronJob: kuota.dev/priority is 100"},
		"a CronJob with both": {cronJobOf(labeled(number + `, kueue.x-k8s.io/priority-class: dev-priority`)), "CronJob: it has the priority 42 and the priority class dev-priority"},
		"an unknown class":    {job(labeled(`, kueue.x-k8s.io/priority-class: kuota-priority-100`)), "unknown priority class kuota-priority-100: set the label kueue.x-k8s.io/priority-class to one of training-priority, dev-priority, kuota-priority-0 to kuota-priority-99"},
	} {
		t.Run(name, func(t *testing.T) { ns.rejects(t, tc.manifest, tc.want) })
	}

	// A member changes the number of a running task.
	member := "member-" + ns.team
	ns.Apply(t, ns.fill(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: members, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+member+`}]
`))
	ns.accepts(t, job(labeled(number)))
	ns.running(t, "batch.kubernetes.io/job-name=a", 1)
	as := func(args ...string) (string, error) {
		return ns.TryKubectl("", append(args, "-n", ns.name, "--as", member)...)
	}
	for _, change := range [][2]string{{"label", "50"}, {"annotate", "51"}} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error { // until the permission applies
			if out, err := as(change[0], "job", "a", "kuota.dev/priority="+change[1]); err != nil {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
		if out := ns.Kubectl(t, "", "get", "job", "a", "-n", ns.name, "-o", readNumber); out != "kuota-priority-"+change[1]+" " {
			t.Errorf("%s: got %q, want the class of %s", change[0], out, change[1])
		}
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			if out := ns.Kubectl(t, "", "get", "workloads", "-n", ns.name, "-o", "jsonpath={.items[*].spec.priority}"); out != change[1] {
				return fmt.Errorf("the Workload has priority %s, want %s", out, change[1])
			}
			return nil
		})
	}
	for range 2 { // a manifest with the number can be applied again, also by its field manager
		ns.Apply(t, ns.fill(job(labeled(number))))
		if out := ns.Kubectl(t, "", "get", "job", "a", "-n", ns.name, "-o", readNumber); out != "kuota-priority-42 " {
			t.Errorf("applied: got %q, want the class of 42", out)
		}
	}
	for _, change := range []string{"100", "high"} {
		if out, err := as("annotate", "job", "a", "kuota.dev/priority="+change); err == nil {
			t.Errorf("a member sets %s: %s", change, out)
		}
		if out, err := ns.TryKubectl("", "annotate", "job", "a", "-n", ns.name, "kuota.dev/priority="+change); err == nil || !strings.Contains(out, "must be a whole number from 0 to 99") {
			t.Errorf("an admin sets %s: got %s, %v", change, out, err)
		}
	}

	ns.Kubectl(t, "", "delete", "mutatingadmissionpolicybinding", "kuota-priorities")
	defer ns.Apply(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: kuota-priorities}, spec: {policyName: kuota-priorities, paramRef: {name: kuota-enforcement, namespace: kuota-system, parameterNotFoundAction: Allow}}}`)
	rejected(jobOf("b", labeled(number), ``, ``), instead)
	ns.accepts(t, jobOf("b", labeled(`, kueue.x-k8s.io/priority-class: kuota-priority-42`), ``, ``))
	ns.enforce(t, v1alpha1.RequireQueue)
}
