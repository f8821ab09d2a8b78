package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// jobOf returns a batch Job of one pod with a GPU. The arguments are flow YAML.
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

// TestRejectsWorkloadsOutsideKueue checks that workloads that would run without
// Kueue are rejected with a message that says what to do. kubectl is cluster-admin
// here, so that the policies apply to admins too.
func TestRejectsWorkloadsOutsideKueue(t *testing.T) {
	ns := newNamespace(t)
	ns.accepts(t, jobOf("real", queued, ``, ``))
	uid := ns.Kubectl(t, "", "get", "job", "real", "-n", ns.name, "-o", "jsonpath={.metadata.uid}")
	partOfReal := `ownerReferences: [{apiVersion: batch/v1, kind: Job, name: real, controller: true, uid: ` + uid + `}]`
	for name, tc := range map[string]struct {
		manifest string
		want     []string
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
		t.Run(name, func(t *testing.T) { ns.rejects(t, tc.manifest, tc.want...) })
	}

	// The pods of a ReplicaSet copy the forged label of its template, but its
	// controller is not one that creates the pods of admitted jobs.
	ns.accepts(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: forged, namespace: NAMESPACE}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, kueue.x-k8s.io/podset: main}}, spec: {containers: [{name: main, image: none}]}}}}`)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "get", "replicaset", "forged", "-n", ns.name, "-o", "jsonpath={.status.conditions[*].message}")
		if err == nil && !strings.Contains(out, "kuota-enforcement-pods") {
			err = fmt.Errorf("condition of the ReplicaSet: got %q, want kuota-enforcement-pods", out)
		}
		return err
	})
	if out := ns.Kubectl(t, "", "get", "pods", "-n", ns.name, "-l", "batch.kubernetes.io/job-name!=real", "-o", "name"); out != "" {
		t.Errorf("got pods %s, want none", out)
	}
}

// TestAcceptsWorkloadsOfKueue checks that valid workloads are accepted, also when
// they change: the Job controller's pods, a task that is requeued and admitted
// again, an elastic job that scales up, the Jobs of a CronJob, and every workload
// outside governed namespaces.
func TestAcceptsWorkloadsOfKueue(t *testing.T) {
	ns := newNamespace(t)
	ns.accepts(t, jobOf("plain", queued, ``, ``))
	ns.accepts(t, jobOf("classless", onlyQueue, ``, ``))
	ns.running(t, "batch.kubernetes.io/job-name=plain", 1)
	ns.running(t, "batch.kubernetes.io/job-name=classless", 1)

	ns.Kubectl(t, "", "annotate", "job", "plain", "-n", ns.name, "note=changed")
	ns.Kubectl(t, "", "patch", "job", "plain", "-n", ns.name, "--type=merge", "-p", `{"metadata": {"finalizers": ["kuota.dev/test"]}}`)
	ns.Kubectl(t, "", "patch", "job", "plain", "-n", ns.name, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)

	setActivation := func(activation string) {
		ns.Kubectl(t, "", "patch", "computeallocation", ns.team, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"activation": %q}}`, activation))
	}
	setActivation("Drain")
	ns.running(t, "batch.kubernetes.io/job-name=plain", 0)
	setActivation("Active")
	ns.running(t, "batch.kubernetes.io/job-name=plain", 1)
	ns.Kubectl(t, "", "delete", "job", "classless", "-n", ns.name)

	ns.accepts(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: elastic, namespace: NAMESPACE, annotations: {kueue.x-k8s.io/elastic-job: "true"}, `+queued+`}, spec: {parallelism: 1, template: `+template(``, ``)+`}}`)
	ns.running(t, "batch.kubernetes.io/job-name=elastic", 1)
	ns.Kubectl(t, "", "patch", "job", "elastic", "-n", ns.name, "--type=merge", "-p", `{"spec": {"parallelism": 2}}`)
	ns.running(t, "batch.kubernetes.io/job-name=elastic", 2)
	ns.Kubectl(t, "", "delete", "job", "elastic", "-n", ns.name)

	ns.accepts(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: NAMESPACE}, spec: {schedule: "0 0 1 1 *", jobTemplate: {metadata: {`+queued+`}, spec: {template: `+template(``, ``)+`}}}}`)
	ns.Kubectl(t, "", "create", "job", "by-hand", "-n", ns.name, "--from=cronjob/nightly")
	ns.running(t, "batch.kubernetes.io/job-name=by-hand", 1)

	ns.warnsOfQueues(t)

	elsewhere := clustertest.Name("elsewhere")
	ns.Kubectl(t, "", "create", "namespace", elsewhere)
	t.Cleanup(func() { _, _ = ns.TryKubectl("", "delete", "namespace", elsewhere, "--wait=false") })
	outside := namespace{ns.Cluster, ns.team, elsewhere, ns.queue}
	outside.accepts(t, podOf("bare", ``, ``))
	outside.accepts(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: NAMESPACE}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: none}]}}}}`)
	outside.accepts(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NAMESPACE}, spec: {selector: {matchLabels: {c: d}}, template: {metadata: {labels: {c: d}}, spec: {containers: [{name: main, image: none}]}}}}`)
	outside.running(t, "c=d", 1)
}

// warnsOfQueues checks that the API server accepts and warns of a LocalQueue that does not
// exist, whatever the kind, and of none that an admin has created.
func (ns namespace) warnsOfQueues(t *testing.T) {
	t.Helper()
	const wrong, later = `labels: {kueue.x-k8s.io/queue-name: mian}`, `labels: {kueue.x-k8s.io/queue-name: later}`
	cronJob := func(jobMetadata string) string {
		return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NAMESPACE}, spec: {schedule: "0 0 1 1 *", jobTemplate: {metadata: {` + jobMetadata + `}, spec: {template: ` + template(``, ``) + `}}}}`
	}
	warns := func(manifest, want string) error {
		out, err := ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-f", "-")
		if want = ns.fill(want); err != nil || want == "" && strings.Contains(out, "Warning:") || !strings.Contains(out, want) {
			return fmt.Errorf("got %q, %v; want a warning %q", out, err, want)
		}
		return nil
	}
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // the controller lists new queues two seconds later
		return warns(jobOf("a", wrong, ``, ``), "Job: this namespace has no LocalQueue mian, and Kueue starts nothing of it until there is one. The label kueue.x-k8s.io/queue-name can name QUEUE\n")
	})
	for manifest, want := range map[string]string{
		cronJob(wrong):                    "CronJob: this namespace has no LocalQueue mian",
		elasticOf("a", wrong, ``, ``):     "ElasticJob: this namespace has no LocalQueue mian",
		jobOf("a", later, ``, ``):         "can name QUEUE\n",
		jobOf("a", onlyQueue, ``, ``):     "",
		cronJob(onlyQueue):                "",
		elasticOf("a", onlyQueue, ``, ``): "",
	} {
		if err := warns(manifest, want); err != nil {
			t.Error(err)
		}
	}
	ns.Apply(t, ns.fill(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: later, namespace: NAMESPACE}, spec: {clusterQueue: hyperpod-ns-`+ns.team+`-clusterqueue}}`))
	clustertest.Eventually(t, waitLimit, func(context.Context) error { return warns(jobOf("a", later, ``, ``), "") })
}

// TestUpdatesOfJobs checks that updates cannot turn an accepted job into one that
// would have been rejected, and that jobs that are older than the enforcement can
// still be updated.
func TestUpdatesOfJobs(t *testing.T) {
	ns := newNamespace(t)
	ns.enforce(t, v1alpha1.EnforcementNone)
	ns.accepts(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: old, namespace: NAMESPACE}, spec: {suspend: true, template: `+template(``, ``)+`}}`)
	ns.enforce(t, v1alpha1.RequireQueue)
	ns.Kubectl(t, "", "annotate", "job", "old", "-n", ns.name, "note=changed")

	ns.accepts(t, jobOf("big", queued, ``, ``))
	ns.Kubectl(t, "", "delete", "job", "big", "-n", ns.name)
	ns.accepts(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: pending, namespace: NAMESPACE, `+queued+`}, spec: {parallelism: 99, completions: 99, template: `+template(``, ``)+`}}`)
	for name, tc := range map[string]struct{ patch, want string }{
		"queue label removed":   {`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`, "a queue is missing"},
		"unknown class":         {`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "bogus"}}}`, "unknown priority class bogus"},
		"added owner":           {`{"metadata": {"ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "x", "uid": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "controller": true}]}}`, "remove metadata.ownerReferences"},
		"Kueue's label on pods": {`{"spec": {"template": {"metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}}}}}`, "kueue.x-k8s.io/podset on pods is reserved for Kueue"},
	} {
		out, err := ns.TryKubectl("", "patch", "job", "pending", "-n", ns.name, "--type=merge", "-p", tc.patch)
		if err == nil || !strings.Contains(out, tc.want) {
			t.Errorf("%s: got %s, want a rejection with %q", name, out, tc.want)
		}
	}
	// Unsuspending the job by hand creates no pod: Kueue suspends it again, and until
	// then its pods are rejected because they lack Kueue's label.
	ns.Kubectl(t, "", "patch", "job", "pending", "-n", ns.name, "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	for range 20 {
		if out := ns.Kubectl(t, "", "get", "pods", "-n", ns.name, "-l", "batch.kubernetes.io/job-name=pending", "-o", "name"); out != "" {
			t.Fatalf("pods of a pending task: got %s, want none", out)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if out, err := ns.TryKubectl("", "create", "job", "from", "-n", ns.name, "--image=none"); err == nil {
		t.Errorf("create a job without a queue: got %s, want a rejection", out)
	}
}

// TestRejectsKindsWithoutIntegration checks that a kind whose integration is off in
// Kueue is rejected with the name of the integration, also if its API is a CRD.
func TestRejectsKindsWithoutIntegration(t *testing.T) {
	ns := newNamespace(t)
	ns.Apply(t, `
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
	t.Cleanup(func() { _, _ = ns.TryKubectl("", "delete", "crd", "pytorchjobs.kubeflow.org", "--wait=false") })
	ns.Kubectl(t, "", "wait", "--for=condition=Established", "crd/pytorchjobs.kubeflow.org")
	job := `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a, namespace: NAMESPACE, ` + queued + `}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: ` + template(``, ``) + `}}}}`
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // kubectl discovers the kind a moment later
		out, err := ns.TryKubectl(ns.fill(job), "create", "-f", "-", "--dry-run=server")
		if err == nil || !strings.Contains(out, "Kueue's integration kubeflow.org/pytorchjob is off") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// TestOrphans checks that a job cannot be deleted without its pods: Kueue releases its
// quota, and they would run on. Kubernetes leaves the pods of Jobs by default; kubectl
// asks it not to.
func TestOrphans(t *testing.T) {
	ns := newNamespace(t)
	ns.accepts(t, jobOf("runs", queued, ``, ``))
	ns.running(t, "batch.kubernetes.io/job-name=runs", 1)
	job, all := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns.name, Name: "runs"}}, client.InNamespace(ns.name)
	for name, err := range map[string]error{
		"without a policy":                 ns.Client.Delete(t.Context(), job),
		"orphaned":                         ns.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationOrphan)),
		"orphaned, as of old":              ns.Client.Delete(t.Context(), job, &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}}),
		"all, without a policy":            ns.Client.DeleteAllOf(t.Context(), &batchv1.Job{}, all),
		"all, orphaned":                    ns.Client.DeleteAllOf(t.Context(), &batchv1.Job{}, all, client.PropagationPolicy(metav1.DeletePropagationOrphan)),
		"as a dry run, without its policy": ns.Client.Delete(t.Context(), job, client.DryRunAll),
	} {
		if err == nil || !strings.Contains(err.Error(), "Job: its pods would run on without quota") {
			t.Errorf("%s: got %v, want a rejection", name, err)
		}
	}
	ns.running(t, "batch.kubernetes.io/job-name=runs", 1)
	ns.accepts(t, jobOf("also-runs", queued, ``, ``))
	if err := ns.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Error(err)
	}
	if err := ns.Client.DeleteAllOf(t.Context(), &batchv1.Job{}, all, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Error(err)
	}
	ns.running(t, "batch.kubernetes.io/job-name", 0)
}
