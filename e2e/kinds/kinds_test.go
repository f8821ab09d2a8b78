package kinds_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/submit"
)

// kind is a kind of job, and how to write one.
type kind struct {
	name     string // of the kind
	operator string // that runs it, of localcluster up --kinds
	resource string // for kubectl
	// manifest returns an object with these labels and pods, each with a GPU; it is given
	// further fields of its metadata, of its pods' metadata and of their spec, as flow YAML.
	manifest  func(object) string
	pods      string // a selector of its pods, with %s for its name
	page      bool   // whether the page of a team has a manifest
	completes bool   // whether KWOK's pods of it end by themselves
	resume    string // a merge patch by which it runs without Kueue
	managedBy string // fields of its spec that name another controller; empty if it has none
}

// object is an object of a kind. Its fields are flow YAML that ends with a comma, except
// its name and its number of pods.
type object struct {
	name                        string
	pods                        int
	metadata, podMetadata, spec string
	fields                      string // of the spec of the kind
}

// template returns a pod template with a container of this name. Pods of Jobs run for an
// hour, or as long as the object's podMetadata says, and others until they are deleted.
func (o object) template(container string) string {
	annotations := "annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}, "
	if o.podMetadata != "" {
		annotations = o.podMetadata
	}
	return fmt.Sprintf("{metadata: {%s}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, %s containers: [{name: %s, image: none, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}]}}", annotations, o.spec, container)
}

// head returns the start of an object, up to its spec.
func (o object) head(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s, kind: %s, metadata: {name: %s, namespace: NAMESPACE, %s}", apiVersion, kind, o.name, o.metadata)
}

var kinds = []kind{{
	name: "JobSet", operator: "jobset", resource: "jobsets", pods: "jobset.sigs.k8s.io/jobset-name=%s", page: true, completes: true,
	resume: `{"spec": {"suspend": false}}`, managedBy: "managedBy: example.com/none,",
	manifest: func(o object) string {
		return fmt.Sprintf("{%s, spec: {%s replicatedJobs: [{name: workers, replicas: 1, template: {spec: {parallelism: %[3]d, completions: %[3]d, backoffLimit: 0, template: %[4]s}}}]}}",
			o.head("jobset.x-k8s.io/v1alpha2", "JobSet"), o.fields, o.pods, o.template("main"))
	},
}, {
	name: "PyTorchJob", operator: "pytorch", resource: "pytorchjobs", pods: "training.kubeflow.org/job-name=%s", page: true,
	resume: `{"spec": {"runPolicy": {"suspend": false}}}`,
	manifest: func(o object) string {
		return fmt.Sprintf("{%s, spec: {pytorchReplicaSpecs: {Worker: {replicas: %d, restartPolicy: Never, template: %s}}}}", o.head("kubeflow.org/v1", "PyTorchJob"), o.pods, o.template("pytorch"))
	},
}, {
	name: "RayCluster", operator: "ray", resource: "rayclusters", pods: "ray.io/cluster=%s",
	resume: `{"spec": {"suspend": false}}`,
	manifest: func(o object) string {
		workers := ""
		if n := o.pods - 1; n > 0 {
			workers = fmt.Sprintf(", workerGroupSpecs: [{groupName: workers, replicas: %[1]d, minReplicas: %[1]d, maxReplicas: %[1]d, rayStartParams: {}, template: %[2]s}]", n, o.template("ray"))
		}
		return fmt.Sprintf("{%s, spec: {rayVersion: 2.46.0, headGroupSpec: {rayStartParams: {}, template: %s}%s}}", o.head("ray.io/v1", "RayCluster"), o.template("ray"), workers)
	},
}}

// plan returns the plan of a task of two pods.
func plan(t *testing.T, of submit.Team, gpus int64, elastic bool) submit.Plan {
	t.Helper()
	r := submit.Request{Name: "shown", Pool: "ml.p5.48xlarge", Pods: 2, PerPod: v1alpha1.Quantities{Accelerators: &gpus}, Image: "example.com/train:1", Class: "dev-priority"}
	if elastic {
		r.Name, r.Elastic = "shown-elastic", &v1alpha1.ElasticPolicy{MaxReplicas: 4}
	}
	p, wrong := of.Plan(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return p
}
