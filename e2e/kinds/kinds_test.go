package kinds_test

import (
	"fmt"
	"strings"
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
	gated     bool   // whether its pods exist before Kueue admits them
	page      bool   // whether the page of a team has a manifest
	ends      ending
	resume    string // a merge patch by which it runs without Kueue; empty if there is none
	managedBy string // fields of its spec that name another controller; empty if its operator ignores them
}

// ending is how a task ends, of which KWOK runs the pods.
type ending string

const (
	never          ending = ""
	byItself       ending = "by itself" // its pods are those of Jobs, which KWOK lets succeed
	whenPodsEnd    ending = "when its pods succeed"
	failsWithNoRay ending = "by failing: no Ray answers KubeRay in a simulated pod"
)

// object is an object of a kind. Its fields are flow YAML that ends with a comma, except
// its name and its number of pods.
type object struct {
	name                      string
	pods                      int
	metadata                  string
	labels, annotations, spec string // of its pods
	fields                    string // of the spec of the kind
}

// template returns a pod template with a container of this name. Pods of Jobs run for an
// hour, or as long as the object's annotations say, and others until they are deleted.
func (o object) template(container string) string {
	return fmt.Sprintf("{%s, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, %s containers: [{name: %s, image: none, resources: %s}]}}", o.podMetadata(), o.spec, container, requests)
}

// requests are those of a container.
const requests = "{requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 1}}"

func (o object) podMetadata() string {
	annotations := "pod-complete.stage.kwok.x-k8s.io/delay: 1h,"
	if o.annotations != "" {
		annotations = o.annotations
	}
	return fmt.Sprintf("metadata: {labels: {task: %s, %s}, annotations: {%s}}", o.name, o.labels, annotations)
}

// head returns the start of an object, up to its spec.
func (o object) head(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s, kind: %s, metadata: {name: %s, namespace: NAMESPACE, %s}", apiVersion, kind, o.name, o.metadata)
}

// cluster returns the spec of a Ray cluster, one of whose pods is the head.
func (o object) cluster() string {
	workers := ""
	if n := o.pods - 1; n > 0 {
		workers = fmt.Sprintf(", workerGroupSpecs: [{groupName: workers, replicas: %[1]d, minReplicas: %[1]d, maxReplicas: %[1]d, rayStartParams: {}, template: %[2]s}]", n, o.template("ray"))
	}
	return fmt.Sprintf("rayVersion: 2.46.0, headGroupSpec: {rayStartParams: {}, template: %s}%s", o.template("ray"), workers)
}

// submitter returns the template of the pod that submits a RayJob to its cluster. It
// needs no GPU.
func (o object) submitter() string {
	o.name += "-submitter"
	return strings.Replace(o.template("ray-job-submitter"), requests, "{requests: {cpu: 1, memory: 1Gi}}", 1)
}

const multiKueue = "managedBy: kueue.x-k8s.io/multikueue,"

var kinds = []kind{{
	name: "JobSet", operator: "jobset", resource: "jobsets", pods: "jobset.sigs.k8s.io/jobset-name=%s", page: true, ends: byItself,
	resume: `{"spec": {"suspend": false}}`, managedBy: "managedBy: example.com/none,",
	manifest: func(o object) string {
		return fmt.Sprintf("{%s, spec: {%s replicatedJobs: [{name: workers, replicas: 1, template: {spec: {parallelism: %[3]d, completions: %[3]d, backoffLimit: 0, template: %[4]s}}}]}}",
			o.head("jobset.x-k8s.io/v1alpha2", "JobSet"), o.fields, o.pods, o.template("main"))
	},
}, {
	// The runtime is one of those that the operator ships. It ignores managedBy.
	name: "TrainJob", operator: "trainer", resource: "trainjobs", pods: "jobset.sigs.k8s.io/jobset-name=%s", ends: byItself,
	resume: `{"spec": {"suspend": false}}`,
	manifest: func(o object) string {
		return fmt.Sprintf("{%s, spec: {%s runtimeRef: {name: torch-distributed}, trainer: {image: none, numNodes: %d, resourcesPerNode: %s}, runtimePatches: [{manager: example.com/test, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {%s, spec: {%s}}}}}]}}}}]}}",
			o.head("trainer.kubeflow.org/v1alpha1", "TrainJob"), o.fields, o.pods, requests, o.podMetadata(), o.spec)
	},
},
	kubeflow("PyTorchJob", "pytorchReplicaSpecs", "Master", "pytorch", true),
	kubeflow("TFJob", "tfReplicaSpecs", "", "tensorflow", false),
	kubeflow("XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost", false),
	kubeflow("PaddleJob", "paddleReplicaSpecs", "", "paddle", false),
	jaxJob(),
	{
		name: "RayCluster", operator: "ray", resource: "rayclusters", pods: "ray.io/cluster=%s",
		resume: `{"spec": {"suspend": false}}`, managedBy: multiKueue,
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {%s %s}}", o.head("ray.io/v1", "RayCluster"), o.fields, o.cluster())
		},
	}, {
		name: "RayJob", operator: "ray", resource: "rayjobs", pods: "task=%s", page: true, ends: failsWithNoRay,
		resume: `{"spec": {"suspend": false}}`, managedBy: multiKueue,
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {%s entrypoint: none, shutdownAfterJobFinishes: true, submitterPodTemplate: %s, rayClusterSpec: {%s}}}", o.head("ray.io/v1", "RayJob"), o.fields, o.submitter(), o.cluster())
		},
	}, {
		name: "RayService", operator: "ray", resource: "rayservices", pods: "task=%s",
		resume: `{"spec": {"rayClusterConfig": {"suspend": false}}}`, managedBy: multiKueue,
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {%s rayClusterConfig: {%s}}}", o.head("ray.io/v1", "RayService"), o.fields, o.cluster())
		},
	}, {
		// One group, which has one Workload. TestServices takes several through their life.
		name: "LeaderWorkerSet", operator: "lws", resource: "leaderworkersets", pods: "leaderworkerset.sigs.k8s.io/name=%s", gated: true,
		manifest: func(o object) string {
			template := strings.Replace(o.template("main"), "restartPolicy: Never, ", "", 1)
			return fmt.Sprintf("{%s, spec: {replicas: 1, leaderWorkerTemplate: {size: %d, workerTemplate: %s}}}", o.head("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), o.pods, template)
		},
	},
}

// kubeflow returns a kind of the training operator. Its replica specs are in a field of
// the spec, and have one replica of role first, if there is such a role, and workers.
func kubeflow(name, field, first, container string, page bool) kind {
	return kind{
		name: name, operator: "pytorch", resource: strings.ToLower(name) + "s", pods: "training.kubeflow.org/job-name=%s", page: page, ends: whenPodsEnd,
		resume: `{"spec": {"runPolicy": {"suspend": false}}}`, managedBy: "runPolicy: {" + multiKueue + "},",
		manifest: func(o object) string {
			replicas := func(role string, n int) string {
				return fmt.Sprintf("%s: {replicas: %d, restartPolicy: Never, template: %s},", role, n, o.template(container))
			}
			roles, workers := "", o.pods
			if first != "" {
				roles, workers = replicas(first, 1), workers-1
			}
			if workers > 0 {
				roles += replicas("Worker", workers)
			}
			return fmt.Sprintf("{%s, spec: {%s %s: {%s}}}", o.head("kubeflow.org/v1", name), o.fields, field, roles)
		},
	}
}

// jaxJob returns the kind JAXJob, of which the training operator ignores managedBy.
func jaxJob() kind {
	k := kubeflow("JAXJob", "jaxReplicaSpecs", "", "jax", false)
	k.managedBy = ""
	return k
}

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
