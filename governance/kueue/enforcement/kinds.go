package enforcement

import "slices"

// kind is a kind of job that Kueue can manage.
type kind struct {
	name      string   // of its admission policy
	framework string   // the name of Kueue's integration
	group     string   // of its API
	versions  []string // "*" for all of a kind whose fields can be absent
	resource  string
	kind      string
	templates string // CEL over %s, the object: a list of its pod templates
	nested    bool   // templates is a list of such lists
	labelsAt  string // CEL: the metadata that Kueue reads labels from; empty is the object's own
	timeLimit string // CEL over %s, the object: its time limit, an optional; empty is the label
}

// kinds are all kinds that Kueue 0.19 has an integration for, and CronJobs,
// whose Jobs it manages. No CEL expression can reach the pods of AppWrappers;
// Kueue manages the whole object. Those of TrainJobs are what they change in the
// templates of their runtime.
var kinds = []kind{
	{name: "jobs", framework: "batch/job", group: "batch", versions: []string{"v1"}, resource: "jobs", kind: "Job", templates: "[%s.spec.template]"},
	{name: "cronjobs", framework: "batch/job", group: "batch", versions: []string{"v1"}, resource: "cronjobs", kind: "CronJob", templates: "[%s.spec.jobTemplate.spec.template]", labelsAt: "object.spec.jobTemplate.?metadata"},
	{name: "jobsets", framework: "jobset.x-k8s.io/jobset", group: "jobset.x-k8s.io", versions: []string{"*"}, resource: "jobsets", kind: "JobSet", templates: "%s.spec.?replicatedJobs.orValue([]).map(j, j.template.spec.template)"},
	{name: "leaderworkersets", framework: "leaderworkerset.x-k8s.io/leaderworkerset", group: "leaderworkerset.x-k8s.io", versions: []string{"*"}, resource: "leaderworkersets", kind: "LeaderWorkerSet", templates: "(has(%[1]s.spec.leaderWorkerTemplate.leaderTemplate) ? [%[1]s.spec.leaderWorkerTemplate.leaderTemplate] : []) + [%[1]s.spec.leaderWorkerTemplate.workerTemplate]"},
	replicas("mpijobs", "kubeflow.org/mpijob", "MPIJob", "mpiReplicaSpecs"),
	replicas("pytorchjobs", "kubeflow.org/pytorchjob", "PyTorchJob", "pytorchReplicaSpecs"),
	replicas("tfjobs", "kubeflow.org/tfjob", "TFJob", "tfReplicaSpecs"),
	replicas("xgboostjobs", "kubeflow.org/xgboostjob", "XGBoostJob", "xgbReplicaSpecs"),
	replicas("paddlejobs", "kubeflow.org/paddlejob", "PaddleJob", "paddleReplicaSpecs"),
	replicas("jaxjobs", "kubeflow.org/jaxjob", "JAXJob", "jaxReplicaSpecs"),
	{name: "trainjobs", framework: "trainer.kubeflow.org/trainjob", group: "trainer.kubeflow.org", versions: []string{"*"}, resource: "trainjobs", kind: "TrainJob", nested: true,
		templates: "%s.spec.?runtimePatches.orValue([]).map(p, p.?trainingRuntimeSpec.?template.?spec.?replicatedJobs.orValue([]).map(j, j.?template.?spec.?template.orValue({})))"},
	rayJobs(),
	ray("rayclusters", "ray.io/raycluster", "RayCluster", ""),
	ray("rayservices", "ray.io/rayservice", "RayService", "rayClusterConfig"),
	{name: "appwrappers", framework: "workload.codeflare.dev/appwrapper", group: "workload.codeflare.dev", versions: []string{"*"}, resource: "appwrappers", kind: "AppWrapper"},
	{name: "sparkapplications", framework: "sparkoperator.k8s.io/sparkapplication", group: "sparkoperator.k8s.io", versions: []string{"*"}, resource: "sparkapplications", kind: "SparkApplication"},
	{name: "deployments", framework: "deployment", group: "apps", versions: []string{"v1"}, resource: "deployments", kind: "Deployment", templates: "[%s.spec.template]"},
	{name: "statefulsets", framework: "statefulset", group: "apps", versions: []string{"v1"}, resource: "statefulsets", kind: "StatefulSet", templates: "[%s.spec.template]"},
}

// elasticJobs are ElasticJobs, whose Jobs the console creates: what members may not submit
// as a Job they may not submit as an ElasticJob.
var elasticJobs = kind{name: "elasticjobs", framework: "batch/job", group: "kuota.dev", versions: []string{"v1alpha1"}, resource: "elasticjobs", kind: "ElasticJob", templates: "[%s.spec.template]", timeLimit: "%s.spec.?activeDeadlineSeconds"}

// JobKind is a kind of job that Kueue can manage.
type JobKind struct {
	Framework       string // the name of Kueue's integration
	Group, Resource string
	Kind            string
}

func (k kind) job() JobKind { return JobKind{k.framework, k.group, k.resource, k.kind} }

// JobKinds returns all kinds that Kueue 0.19 has an integration for, except
// pods.
func JobKinds() (all []JobKind) {
	for _, k := range kinds {
		if k.labelsAt == "" { // Kueue manages its Jobs
			all = append(all, k.job())
		}
	}
	return all
}

// TaskKinds returns the kinds that members can be allowed to create: JobKinds, and
// ElasticJobs, which consist of Jobs.
func TaskKinds() []JobKind { return slices.Insert(JobKinds(), 1, elasticJobs.job()) }

// TaskKind returns the one of TaskKinds with this name.
func TaskKind(name string) (JobKind, bool) {
	all := TaskKinds()
	i := slices.IndexFunc(all, func(k JobKind) bool { return k.Kind == name })
	if i < 0 {
		return JobKind{}, false
	}
	return all[i], true
}

// replicas returns a kind of the Kubeflow training operator, which has a map of
// replica specs.
func replicas(resource, framework, name, field string) kind {
	return kind{
		name: resource, framework: framework, group: "kubeflow.org", versions: []string{"*"}, resource: resource, kind: name,
		templates: "%[1]s.spec.?" + field + ".orValue({}).map(r, %[1]s.spec." + field + "[r].template)",
	}
}

// ray returns a kind of KubeRay, which has a head and worker groups in the spec
// or in a field of it.
func ray(resource, framework, name, field string) kind {
	at := "%[1]s.spec"
	has := "true"
	if field != "" {
		at += "." + field
		has = "has(" + at + ")"
	}
	return kind{
		name: resource, framework: framework, group: "ray.io", versions: []string{"*"}, resource: resource, kind: name,
		templates: has + " ? [" + at + ".headGroupSpec.template] + " + at + ".?workerGroupSpecs.orValue([]).map(g, g.template) : []",
	}
}

// rayJobs returns the kind RayJob, which also has the pod that submits to its cluster.
func rayJobs() kind {
	k := ray("rayjobs", "ray.io/rayjob", "RayJob", "rayClusterSpec")
	const submitter = "%[1]s.spec.submitterPodTemplate"
	k.templates = "(" + k.templates + ") + (has(" + submitter + ") ? [" + submitter + "] : [])"
	return k
}
