package submit

import (
	"strconv"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations that Kueue reads off a job.
const (
	queueLabel        = "kueue.x-k8s.io/queue-name"
	leastAnnotation   = "kueue.x-k8s.io/job-min-parallelism"
	elasticAnnotation = "kueue.x-k8s.io/elastic-job"
)

// What stands in a manifest where nothing was given yet. The image is written so
// that nobody takes it for one.
const (
	someName  = "my-task"
	someImage = "YOUR_IMAGE"
)

// Plan is a request with everything filled in, for one team's queue.
type Plan struct {
	Request
	Team         Team
	QueuePool    QueuePool
	PodResources quota.Resources // by each pod; what is 0 is left out
}

// meta is what every kind of task has: its queue and its class are labels.
func (p Plan) meta() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: p.name(), Namespace: p.Team.Namespace, Labels: map[string]string{queueLabel: p.Team.Queue}}
	if p.Class != "" {
		meta.Labels[desired.PriorityClassLabel] = p.Class
	}
	return meta
}

func (p Plan) name() string {
	if p.Name == "" {
		return someName
	}
	return p.Name
}

func (p Plan) image() string {
	if p.Image == "" {
		return someImage
	}
	return p.Image
}

// Job is the request as a Job of batch/v1. It is made suspended: Kueue starts it.
func (p Plan) Job() *batchv1.Job {
	suspend, pods := true, p.Pods
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: string(Job)},
		ObjectMeta: p.meta(),
		Spec:       batchv1.JobSpec{Suspend: &suspend, Parallelism: &pods, Template: p.template("main", corev1.RestartPolicyNever)},
	}
	switch {
	case p.Elastic:
		// Without a number of completions it can have any number of pods.
		job.Annotations = map[string]string{elasticAnnotation: "true"}
		return job
	case p.MinPods > 0 && p.MinPods < pods:
		job.Annotations = map[string]string{leastAnnotation: strconv.Itoa(int(p.MinPods))}
	}
	job.Spec.Completions = &pods
	if pods > 1 { // so that each pod knows which it is
		indexed := batchv1.IndexedCompletion
		job.Spec.CompletionMode = &indexed
	}
	return job
}

// template is one of its pods.
func (p Plan) template(container string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	c := corev1.Container{Name: container, Image: p.image(), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	if p.Command != "" {
		c.Command = []string{"sh", "-c", p.Command}
	}
	for name, amount := range p.PodResources {
		c.Resources.Requests[corev1.ResourceName(name)] = quota.ResourceQuantity(name, amount)
		if name != catalog.CPU { // which a pod may exceed while nobody else wants it
			c.Resources.Limits[corev1.ResourceName(name)] = quota.ResourceQuantity(name, amount)
		}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: restart, NodeSelector: p.QueuePool.NodeSelector, Tolerations: p.QueuePool.Tolerations, Containers: []corev1.Container{c},
	}}
}
