package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// launchJob is the Job of HyperPod's launch post, whose labels are on its pods. The API server
// copies them to a Job without labels; to one with a label of its own the admission policy does.
const launchJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: gpu-training-job, namespace: NAMESPACE, labels: {app: training}}
spec:
  parallelism: 1
  completions: 1
  suspend: true
  template:
    metadata:
      annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}
      labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: training-priority}
    spec:
      containers:
      - name: training
        image: none
        resources: {requests: {nvidia.com/gpu: "1", cpu: "4", memory: 1Gi}, limits: {nvidia.com/gpu: "1"}}
      restartPolicy: Never
`

// TestTemplateLabels checks that a task whose queue, priority class and time limit are labels
// of its pods runs with them, or that the rejection names what to move.
func TestTemplateLabels(t *testing.T) {
	ns := newNamespace(t)
	defer ns.clear(t)
	ns.enforceWith(t, v1alpha1.RequireQueue, limitedClasses)
	const labels = `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: both-priority%s}`
	ofPods := func(more string) string { return template(fmt.Sprintf(labels, more), ``) }
	object := func(kind, metadata, spec string) string {
		return `{` + kind + `, metadata: {name: a, namespace: NAMESPACE, labels: {app: a` + metadata + `}}, spec: {` + spec + `}}`
	}
	job := func(metadata, more string) string {
		return object(`apiVersion: batch/v1, kind: Job`, metadata, `template: `+ofPods(more))
	}
	const move = "Move the label kueue.x-k8s.io/queue-name from spec.template.metadata.labels to metadata.labels"
	if _, err := ns.TryKubectl("", "get", "mutatingadmissionpolicy", "kuota-template-labels"); err != nil {
		ns.rejects(t, launchJob, move)
		return
	}
	if out, err := ns.TryKubectl(ns.fill(launchJob), "create", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	ns.running(t, "batch.kubernetes.io/job-name=gpu-training-job", 1)
	if out := ns.Kubectl(t, "", "get", "workloads", "-n", ns.name, "-o", "jsonpath={.items[*].spec.queueName} {.items[*].spec.priorityClassRef.name}"); out != ns.queue+" training-priority" {
		t.Errorf("the Workloads have queue and priority class %q", out)
	}

	const read = `jsonpath={.metadata.labels.kueue\.x-k8s\.io/queue-name} {.metadata.labels.kueue\.x-k8s\.io/priority-class} {.metadata.labels.kueue\.x-k8s\.io/max-exec-time-seconds}`
	for name, tc := range map[string]struct{ manifest, want string }{
		"the default time limit of the class": {job(``, ``), "QUEUE both-priority 60"},
		"a time limit":                        {job(``, `, kueue.x-k8s.io/max-exec-time-seconds: "90"`), "QUEUE both-priority 90"},
		"a class of the Job":                  {job(`, kueue.x-k8s.io/priority-class: training-priority`, ``), "QUEUE training-priority "},
		"a queue of the Job":                  {job(`, kueue.x-k8s.io/queue-name: other`, ``), "other both-priority 60"},
		"an ElasticJob":                       {strings.Replace(elasticFor("a", `labels: {app: a}`, ""), `template: {metadata: {`, `template: {metadata: {`+ns.fill(fmt.Sprintf(labels, ``))+`, `, 1), "QUEUE both-priority "},
		"a Job without labels":                {`{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NAMESPACE}, spec: {template: ` + ofPods(``) + `}}`, "QUEUE both-priority 60"},
	} {
		for range 3 { // the API server invokes policies in any order
			out, err := ns.TryKubectl(ns.fill(tc.manifest), "create", "--dry-run=server", "-f", "-", "-o", read)
			if out = out[strings.LastIndex(out, "\n")+1:]; err != nil || out != ns.fill(tc.want) { // after warnings
				t.Errorf("%s: got %q, %v, want %q", name, out, err, ns.fill(tc.want))
			}
		}
	}

	// Kinds with other templates, and CronJobs, are rejected with what to move; so are all where
	// the API server does not copy labels.
	ns.rejects(t, object(`apiVersion: batch/v1, kind: CronJob`, ``, `schedule: "0 0 1 1 *", jobTemplate: {spec: {template: `+ofPods(``)+`}}`),
		"Move the label kueue.x-k8s.io/queue-name from spec.jobTemplate.spec.template.metadata.labels to spec.jobTemplate.metadata.labels")
	ns.Kubectl(t, "", "delete", "mutatingadmissionpolicybinding", "kuota-template-labels")
	defer ns.Apply(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: kuota-template-labels}, spec: {policyName: kuota-template-labels}}`)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		if out, err := ns.TryKubectl(ns.fill(job(``, ``)), "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(out, move) {
			return fmt.Errorf("got %s and error %v, want a rejection with what to move", out, err)
		}
		return nil
	})
}
