package submit

import (
	"cmp"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// Labels and annotations of jobs that Kueue reads.
const (
	minPodsAnnotation = "kueue.x-k8s.io/job-min-parallelism"
	equalCompletions  = "kueue.x-k8s.io/job-completions-equal-parallelism"
)

// Placeholders in a manifest for a missing name and image. The image is recognizable
// as a placeholder.
const (
	placeholderName  = "my-task"
	placeholderImage = "YOUR_IMAGE"
)

// Plan is a completed request for one team's queue.
type Plan struct {
	Request
	Team         Team
	QueuePool    QueuePool
	AnyOf        []QueuePool          // the pools of a request with several, QueuePool included
	PodResources quota.Resources      // of each pod; without zero amounts
	read         *v1alpha1.ElasticJob // that the request is read from; nil if it was typed
	// source is the object of another kind that the request is read from, with its pod
	// templates.
	source    *unstructured.Unstructured
	templates []podTemplate
	request   string // value of LabelRequest; empty for none
}

// meta returns the metadata of all kinds: labels name the queue, the priority class and
// the time limit. An ElasticJob has its time limit in its spec.
func (p Plan) meta() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: p.name(), Namespace: p.Team.Namespace, Labels: map[string]string{constants.QueueLabel: p.Team.Queue}}
	if p.Class != "" {
		meta.Labels[desired.PriorityClassLabel] = p.Class
	}
	if p.TimeLimit > 0 && p.Elastic == nil {
		meta.Labels[enforcement.TimeLimitLabel] = strconv.Itoa(int(p.TimeLimit))
	}
	return meta
}

func (p Plan) name() string  { return cmp.Or(p.Name, placeholderName) }
func (p Plan) image() string { return cmp.Or(p.Image, placeholderImage) }

// object returns the object of a kind. The console creates that of p.Kind.
func (p Plan) object(kind Kind) (client.Object, error) {
	object, err := p.ungated(kind)
	if err == nil {
		gate(object, p.Team.After)
	}
	return object, err
}

// ungated is object without what it waits for.
func (p Plan) ungated(kind Kind) (client.Object, error) {
	if p.source != nil {
		return p.source.DeepCopy(), nil
	}
	switch kind {
	case Job:
		return p.Job(), nil
	case PyTorchJob:
		return p.pyTorchJob()
	case RayJob:
		return p.rayJob()
	case JobSet:
		return p.jobSet()
	case ElasticJob:
		return p.ElasticJob(), nil
	}
	return p.service()
}

// ElasticJob returns the ElasticJob of an elastic plan.
func (p Plan) ElasticJob() *v1alpha1.ElasticJob {
	if p.read != nil {
		e := p.read.DeepCopy()
		gate(e, p.Team.After)
		return e
	}
	e := &v1alpha1.ElasticJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticJobKind},
		ObjectMeta: p.meta(),
		Spec:       v1alpha1.ElasticJobSpec{ElasticPolicy: *p.Elastic.DeepCopy(), ScaleConfig: p.ScaleConfig, Template: p.template("main", "")},
	}
	if len(p.AnyOf) > 0 {
		e.Spec.BaseNodeSelector = p.QueuePool.NodeSelector
	}
	if p.TimeLimit > 0 {
		e.Spec.ActiveDeadlineSeconds = new(int64(p.TimeLimit))
	}
	gate(e, p.Team.After)
	return e
}

// Job returns a suspended Job of batch/v1; Kueue starts it.
func (p Plan) Job() *batchv1.Job {
	suspend, pods := true, p.Pods
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: string(Job)},
		ObjectMeta: p.meta(),
		Spec:       batchv1.JobSpec{Suspend: &suspend, Parallelism: &pods, Template: p.template("main", corev1.RestartPolicyNever)},
	}
	if p.MinPods > 0 && p.MinPods < pods {
		job.Annotations = map[string]string{minPodsAnnotation: strconv.Itoa(int(p.MinPods))}
	}
	job.Spec.Completions, job.Spec.BackoffLimit = &pods, p.retries()
	if pods > 1 { // gives each pod its index
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	if p.Array != nil {
		p.Array.addTo(job, p.Request)
	}
	return job
}

// template returns the pod template.
func (p Plan) template(container string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	c := corev1.Container{Name: container, Image: p.image(), Command: p.command(), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	for name, amount := range p.PodResources {
		c.Resources.Requests[corev1.ResourceName(name)] = amount.Quantity(name)
		if name != catalog.CPU { // a pod may use idle CPU beyond its request
			c.Resources.Limits[corev1.ResourceName(name)] = amount.Quantity(name)
		}
	}
	spec := corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{c}}
	p.place(&spec)
	p.Runtime.addTo(&spec)
	p.mountScript(&spec)
	return corev1.PodTemplateSpec{Spec: spec}
}
