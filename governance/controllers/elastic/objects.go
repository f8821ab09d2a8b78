package elastic

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// rendezvousPort is the port of torchrun's rendezvous.
const rendezvousPort = 29400

// maxRestarts is how often torchrun restarts its workers: each change of size can end
// them.
const maxRestarts = 1000

// torchrun gives its workers torchrunGrace to end by itself, and needs graceMargin of the
// pod's grace period to end after them, both in seconds.
const (
	torchrunGrace = 30
	graceMargin   = 5
)

// scaleConfigVariable is the environment variable that contains spec.scaleConfig, as a
// JSON object from a size to its variables. Pods keep running when the size changes, so
// a script reads it when its workers start.
const scaleConfigVariable = "KUOTA_SCALE_CONFIG"

// ServiceName returns the name of the headless Service of an ElasticJob.
func ServiceName(job string) string { return job + "-pods" }

// Base returns the Job of the minimum.
func Base(e *v1alpha1.ElasticJob) *batchv1.Job {
	job := part(e, 0, e.Spec.ElasticPolicy.MinReplicas)
	selectNodes(job, e.Spec.BaseNodeSelector)
	setClass(job, e.Labels[desired.PriorityClassLabel])
	job.Spec.BackoffLimit = e.Spec.BackoffLimit
	job.Spec.ActiveDeadlineSeconds = e.Spec.ActiveDeadlineSeconds
	if gates := e.Annotations[tasks.AdmissionGatedByAnnotation]; gates != "" {
		job.Annotations = map[string]string{tasks.AdmissionGatedByAnnotation: gates}
	}
	return job
}

// Increment returns the Job of an increment. Its pods may fail any number of times: the
// ElasticJob gives a faulty increment up.
func Increment(e *v1alpha1.ElasticJob, n NewPart) *batchv1.Job {
	job := part(e, n.Increment, n.Pods)
	class := desired.GrowthClass
	if n.Guaranteed {
		class = e.Labels[desired.PriorityClassLabel]
		selectNodes(job, e.Spec.BaseNodeSelector)
	}
	selectNodes(job, n.NodeSelector)
	setClass(job, class)
	job.Spec.BackoffLimit = ptr.To[int32](1000)
	if n.Provision { // instead of a class of the template: pods of admitted tasks get new nodes first
		job.Labels[v1alpha1.LabelElasticProvision] = "true"
		spec := &job.Spec.Template.Spec
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = v1alpha1.ProvisionClass, nil, nil
	}
	return job
}

// selectNodes adds to the labels that the nodes of a Job must have: those of its template stay.
func selectNodes(job *batchv1.Job, all map[string]string) {
	if spec := &job.Spec.Template.Spec; len(all) > 0 {
		spec.NodeSelector = labels.Merge(all, spec.NodeSelector)
	}
}

// setClass sets the priority class of a Job, if there is one.
func setClass(job *batchv1.Job, class string) {
	if class != "" {
		job.Labels[desired.PriorityClassLabel] = class
	}
}

// part returns a suspended Job of the template; Kueue starts it. It has no owner
// reference: see v1alpha1.ElasticFinalizer.
func part(e *v1alpha1.ElasticJob, n int, pods int32) *batchv1.Job {
	own := labels.Set{v1alpha1.LabelElasticJob: e.Name, v1alpha1.LabelElasticJobUID: string(e.UID), v1alpha1.LabelElasticIncrement: strconv.Itoa(n)}
	template := *e.Spec.Template.DeepCopy()
	template.Labels = labels.Merge(template.Labels, own)
	own[tasks.QueueLabel], own[desired.LabelManagedBy] = e.Labels[tasks.QueueLabel], desired.ManagedBy
	spec := &template.Spec
	spec.Subdomain = ServiceName(e.Name)
	spec.TerminationGracePeriodSeconds = ptr.To(int64(e.Spec.ElasticPolicy.GracefulShutdownTimeoutInSeconds))
	if spec.RestartPolicy == "" || spec.RestartPolicy == corev1.RestartPolicyAlways {
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	for i := range spec.Containers {
		spec.Containers[i].Env = withDefaults(spec.Containers[i].Env, environment(e))
	}
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: v1alpha1.ElasticPartName(e.Name, n), Labels: own},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: ptr.To(pods), Completions: ptr.To(pods), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			// Replaces each pod after 10 s. Without a limit for each index, the Job controller
			// doubles that for each pod: a node with 8 pods is lost, and their Job waits 10 min.
			BackoffLimitPerIndex: ptr.To[int32](math.MaxInt32),
			Template:             template,
		},
	}
	if spec.RestartPolicy == corev1.RestartPolicyNever { // a pod of a lost node has not failed
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
	}
	return job
}

// Service returns the headless Service by which pods find the first pod of the base,
// where torchrun's rendezvous is.
func Service(e *v1alpha1.ElasticJob) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: ServiceName(e.Name),
			Labels: map[string]string{v1alpha1.LabelElasticJob: e.Name, v1alpha1.LabelElasticJobUID: string(e.UID), desired.LabelManagedBy: desired.ManagedBy},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{v1alpha1.LabelElasticJobUID: string(e.UID)},
			Ports:    []corev1.ServicePort{{Name: "rendezvous", Port: rendezvousPort, TargetPort: intstr.FromInt32(rendezvousPort)}},
		},
	}
}

// environment returns the variables by which torchrun is elastic without arguments.
func environment(e *v1alpha1.ElasticJob) []corev1.EnvVar {
	p := e.Spec.ElasticPolicy
	vars := []corev1.EnvVar{
		{Name: "PET_NNODES", Value: fmt.Sprintf("%d:%d", p.MinReplicas, p.MaxReplicas)},
		{Name: "PET_RDZV_BACKEND", Value: "c10d"},
		{Name: "PET_RDZV_ENDPOINT", Value: fmt.Sprintf("%s-0.%s:%d", v1alpha1.ElasticPartName(e.Name, 0), ServiceName(e.Name), rendezvousPort)},
		{Name: "PET_RDZV_ID", Value: string(e.UID)},
		{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(maxRestarts)},
		// Otherwise torchrun keeps the address of the workers' store from its first
		// rendezvous, and a pod that joins later waits for it in vain (PyTorch 2.6).
		{Name: "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", Value: "1"},
		// torchrun reads it from PyTorch 2.12 on, for the end of a pod only; python -m
		// kuota.elastic.run in every version, for starts at a new size too.
		{Name: "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", Value: strconv.Itoa(max(torchrunGrace, int(p.GracefulShutdownTimeoutInSeconds)-graceMargin))},
	}
	if len(e.Spec.ScaleConfig) > 0 {
		vars = append(vars, corev1.EnvVar{Name: scaleConfigVariable, Value: scaleConfig(e.Spec.ScaleConfig)})
	}
	return vars
}

// keepScaleConfig gives an increment the variables by size that the base runs with, so that all
// pods of a run read the same ones.
func keepScaleConfig(increment, base *batchv1.Job) {
	isScaleConfig := func(v corev1.EnvVar) bool { return v.Name == scaleConfigVariable }
	for i := range increment.Spec.Template.Spec.Containers {
		c, of := &increment.Spec.Template.Spec.Containers[i], base.Spec.Template.Spec.Containers[i].Env
		c.Env = slices.DeleteFunc(c.Env, isScaleConfig)
		if at := slices.IndexFunc(of, isScaleConfig); at >= 0 {
			c.Env = append(c.Env, of[at])
		}
	}
}

// scaleConfig returns the value of scaleConfigVariable.
func scaleConfig(config []v1alpha1.ScaleConfig) string {
	bySize := map[string]map[string]string{}
	for _, c := range config {
		values := map[string]string{}
		for _, v := range c.Env {
			values[v.Name] = v.Value
		}
		bySize[strconv.Itoa(int(c.Replicas))] = values
	}
	text, err := json.Marshal(bySize) // maps are written in order
	if err != nil {
		return "{}" // maps of strings have no such error
	}
	return string(text)
}

// withDefaults appends the variables that env does not have.
func withDefaults(env, defaults []corev1.EnvVar) []corev1.EnvVar {
	for _, d := range defaults {
		if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == d.Name }) {
			env = append(env, d)
		}
	}
	return env
}
