package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// jobOf is a batch Job of one pod with a GPU; the arguments are flow YAML.
func jobOf(name, metadata, podMetadata, podSpec string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: NAMESPACE, %s}, spec: {template: %s}}`, name, metadata, template(podMetadata, podSpec))
}

func template(metadata, spec string) string {
	return fmt.Sprintf(`{metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}, %s}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, %s containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, metadata, spec)
}

const (
	queued       = `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: training-priority}`
	onlyQueue    = `labels: {kueue.x-k8s.io/queue-name: QUEUE}`
	forgedJob    = `ownerReferences: [{apiVersion: batch/v1, kind: Job, name: real, uid: 6f9619ff-8b86-d011-b42d-00cf4fc964ff, controller: true}]`
	forgedPodset = `labels: {kueue.x-k8s.io/podset: main}`
)

// What would run beside Kueue, by accident or by cunning, is refused with what
// to do. kubectl is the cluster's admin here: nobody is let through.
func TestJobsBesideKueue(t *testing.T) {
	p := governed(t)
	p.taken(t, jobOf("real", queued, ``, ``))
	uid := p.Kubectl(t, "", "get", "job", "real", "-n", p.namespace, "-o", "jsonpath={.metadata.uid}")
	partOfReal := `ownerReferences: [{apiVersion: batch/v1, kind: Job, name: real, controller: true, uid: ` + uid + `}]`
	for name, tc := range map[string]struct {
		manifest string
		says     []string
	}{
		"no queue":          {jobOf("a", ``, ``, ``), []string{"a queue is missing", "kueue.x-k8s.io/queue-name", "QUEUE"}},
		"an empty queue":    {jobOf("a", `labels: {kueue.x-k8s.io/queue-name: ""}`, ``, ``), []string{"a queue is missing"}},
		"an unknown class":  {jobOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: bogus}`, ``, ``), []string{"unknown priority class bogus", "training-priority, dev-priority"}},
		"a pod's priority":  {jobOf("a", queued, ``, `priorityClassName: system-cluster-critical,`), []string{"priorityClassName", "kueue.x-k8s.io/priority-class"}},
		"a forged owner":    {jobOf("a", queued+`, `+partOfReal, ``, ``), []string{"remove metadata.ownerReferences"}},
		"a forged podset":   {jobOf("a", queued, forgedPodset, ``), []string{"kueue.x-k8s.io/podset on pods is reserved for Kueue"}},
		"a type in a pool":  {jobOf("a", queued, ``, `nodeSelector: {node.kubernetes.io/instance-type: ml.g6.12xlarge},`), []string{"ml.g6.12xlarge are in pool small", "kuota.dev/pool: small"}},
		"a CronJob without": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NAMESPACE, ` + onlyQueue + `}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: ` + template(``, ``) + `}}}}`, []string{"CronJob: a queue is missing", "spec.jobTemplate.metadata"}},
		"a Deployment":      {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NAMESPACE, ` + queued + `}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, kueue.x-k8s.io/queue-name: QUEUE}}, spec: {containers: [{name: main, image: none}]}}}}`, []string{"Kueue's integration deployment is off", "(batch/job)", "integrations.frameworks"}},
		"a StatefulSet":     {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: NAMESPACE}, spec: {serviceName: a, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: none}]}}}}`, []string{"Kueue's integration statefulset is off"}},
		"a bare pod":        {podOf("a", ``, ``), []string{"submit a Job with the label kueue.x-k8s.io/queue-name"}},
		"a pod with a queue, the integration off":   {podOf("a", queued, ``), []string{"Kueue's integration pod is off"}},
		"a pod with a forged owner":                 {podOf("a", forgedJob, ``), []string{"integration pod is off"}},
		"a pod with a forged owner and Kueue label": {podOf("a", forgedPodset+`, `+forgedJob, ``), []string{"integration pod is off"}},
		"a pod with a forged gate":                  {podOf("a", queued, `schedulingGates: [{name: kueue.x-k8s.io/admission}],`), []string{"integration pod is off"}},
	} {
		t.Run(name, func(t *testing.T) { p.refused(t, tc.manifest, tc.says...) })
	}

	// A ReplicaSet copies what its template forges; its controller is not one that
	// makes the pods of admitted jobs.
	p.taken(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: forged, namespace: NAMESPACE}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, kueue.x-k8s.io/podset: main}}, spec: {containers: [{name: main, image: none}]}}}}`)
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := p.TryKubectl("", "get", "replicaset", "forged", "-n", p.namespace, "-o", "jsonpath={.status.conditions[*].message}")
		if err == nil && !strings.Contains(out, "kuota-enforcement-pods") {
			err = fmt.Errorf("the ReplicaSet says %q", out)
		}
		return err
	})
	if out := p.Kubectl(t, "", "get", "pods", "-n", p.namespace, "-l", "batch.kubernetes.io/job-name!=real", "-o", "name"); out != "" {
		t.Errorf("there are pods: %s", out)
	}
}

// What is right passes, and goes on passing: the Job controller's pods, a task
// that is requeued and starts again, an elastic job that grows, a CronJob's
// Jobs, and what is outside governed namespaces.
func TestJobsOfKueue(t *testing.T) {
	p := governed(t)
	p.taken(t, jobOf("plain", queued, ``, ``))
	p.taken(t, jobOf("classless", onlyQueue, ``, ``))
	p.running(t, "batch.kubernetes.io/job-name=plain", 1)
	p.running(t, "batch.kubernetes.io/job-name=classless", 1)

	p.Kubectl(t, "", "annotate", "job", "plain", "-n", p.namespace, "note=theirs")
	p.Kubectl(t, "", "patch", "job", "plain", "-n", p.namespace, "--type=merge", "-p", `{"metadata": {"finalizers": ["kuota.dev/test"]}}`)
	p.Kubectl(t, "", "patch", "job", "plain", "-n", p.namespace, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)

	allocation := func(activation string) {
		p.Kubectl(t, "", "patch", "computeallocation", p.team, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"activation": %q}}`, activation))
	}
	allocation("Drain")
	p.running(t, "batch.kubernetes.io/job-name=plain", 0)
	allocation("Active")
	p.running(t, "batch.kubernetes.io/job-name=plain", 1)
	p.Kubectl(t, "", "delete", "job", "classless", "-n", p.namespace)

	p.taken(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: elastic, namespace: NAMESPACE, annotations: {kueue.x-k8s.io/elastic-job: "true"}, `+queued+`}, spec: {parallelism: 1, template: `+template(``, ``)+`}}`)
	p.running(t, "batch.kubernetes.io/job-name=elastic", 1)
	p.Kubectl(t, "", "patch", "job", "elastic", "-n", p.namespace, "--type=merge", "-p", `{"spec": {"parallelism": 2}}`)
	p.running(t, "batch.kubernetes.io/job-name=elastic", 2)
	p.Kubectl(t, "", "delete", "job", "elastic", "-n", p.namespace)

	p.taken(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: NAMESPACE}, spec: {schedule: "0 0 1 1 *", jobTemplate: {metadata: {`+queued+`}, spec: {template: `+template(``, ``)+`}}}}`)
	p.Kubectl(t, "", "create", "job", "by-hand", "-n", p.namespace, "--from=cronjob/nightly")
	p.running(t, "batch.kubernetes.io/job-name=by-hand", 1)

	elsewhere := clustertest.Name("elsewhere")
	p.Kubectl(t, "", "create", "namespace", elsewhere)
	t.Cleanup(func() { _, _ = p.TryKubectl("", "delete", "namespace", elsewhere, "--wait=false") })
	outside := place{p.Cluster, p.team, elsewhere, p.queue}
	outside.taken(t, podOf("bare", ``, ``))
	outside.taken(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: NAMESPACE}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: none}]}}}}`)
	outside.taken(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NAMESPACE}, spec: {selector: {matchLabels: {c: d}}, template: {metadata: {labels: {c: d}}, spec: {containers: [{name: main, image: none}]}}}}`)
	outside.running(t, "c=d", 1)
}

// What was right when it was made does not become wrong by a later change, and
// old jobs can be tended.
func TestChangesOfJobs(t *testing.T) {
	p := governed(t)
	p.enforce(t, v1alpha1.EnforcementNone)
	p.taken(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: old, namespace: NAMESPACE}, spec: {suspend: true, template: `+template(``, ``)+`}}`)
	p.enforce(t, v1alpha1.RequireQueue)
	p.Kubectl(t, "", "annotate", "job", "old", "-n", p.namespace, "note=theirs")

	p.taken(t, jobOf("big", queued, ``, ``))
	p.Kubectl(t, "", "delete", "job", "big", "-n", p.namespace)
	p.taken(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: waits, namespace: NAMESPACE, `+queued+`}, spec: {parallelism: 99, completions: 99, template: `+template(``, ``)+`}}`)
	for name, tc := range map[string]struct{ patch, says string }{
		"its queue taken away":  {`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`, "a queue is missing"},
		"another class":         {`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "bogus"}}}`, "unknown priority class bogus"},
		"an owner":              {`{"metadata": {"ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "x", "uid": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "controller": true}]}}`, "remove metadata.ownerReferences"},
		"Kueue's label on pods": {`{"spec": {"template": {"metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}}}}}`, "kueue.x-k8s.io/podset on pods is reserved for Kueue"},
	} {
		out, err := p.TryKubectl("", "patch", "job", "waits", "-n", p.namespace, "--type=merge", "-p", tc.patch)
		if err == nil || !strings.Contains(out, tc.says) {
			t.Errorf("%s: %s, want %q", name, out, tc.says)
		}
	}
	// Let go by hand it makes no pod: Kueue stops it again, and meanwhile its pods
	// lack Kueue's label.
	p.Kubectl(t, "", "patch", "job", "waits", "-n", p.namespace, "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	for range 20 {
		if out := p.Kubectl(t, "", "get", "pods", "-n", p.namespace, "-l", "batch.kubernetes.io/job-name=waits", "-o", "name"); out != "" {
			t.Fatalf("a task that waits has pods: %s", out)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if out, err := p.TryKubectl("", "create", "job", "from", "-n", p.namespace, "--image=none"); err == nil {
		t.Errorf("taken: %s", out)
	}
}

// A kind that Kueue could manage and does not is named, wherever its API comes
// from.
func TestKindsOfOthers(t *testing.T) {
	p := governed(t)
	p.Apply(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pytorchjobs.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {kind: PyTorchJob, plural: pytorchjobs, singular: pytorchjob}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	t.Cleanup(func() { _, _ = p.TryKubectl("", "delete", "crd", "pytorchjobs.kubeflow.org", "--wait=false") })
	p.Kubectl(t, "", "wait", "--for=condition=Established", "crd/pytorchjobs.kubeflow.org")
	job := `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a, namespace: NAMESPACE, ` + queued + `}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: ` + template(``, ``) + `}}}}`
	clustertest.Eventually(t, soon, func(context.Context) error { // kubectl learns of the kind a moment later
		out, err := p.TryKubectl(p.fill(job), "create", "-f", "-", "--dry-run=server")
		if err == nil || !strings.Contains(out, "Kueue's integration kubeflow.org/pytorchjob is off") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}
