package elastic

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// jobs are the Jobs of one ElasticJob, by increment; 0 is the base.
type jobs map[int]*batchv1.Job

// read reads the Jobs of an ElasticJob. Jobs that only carry its labels are not among
// them: each has the name of its number.
func (r *Reconciler) read(ctx context.Context, e *v1alpha1.ElasticJob) (jobs, error) {
	var list batchv1.JobList
	if err := r.Parts.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJobUID: string(e.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Jobs of ElasticJob %s/%s: %w", e.Namespace, e.Name, err)
	}
	all := jobs{}
	for i := range list.Items {
		job := &list.Items[i]
		n, err := strconv.Atoi(job.Labels[v1alpha1.LabelElasticIncrement])
		if err != nil || n < 0 || job.Name != v1alpha1.ElasticPartName(e.Name, n) {
			continue
		}
		all[n] = job
	}
	return all, nil
}

// observe returns the state of an ElasticJob, without where it fits.
func (r *Reconciler) observe(ctx context.Context, e *v1alpha1.ElasticJob, all jobs) (Observed, error) {
	o := Observed{Job: e}
	if r.RecordsUsers == nil || r.RecordsUsers() { // everyone could set it otherwise
		o.ChangedBy = e.Annotations[v1alpha1.AnnotationChangedBy]
	}
	workloads, err := r.workloads(ctx, e.Namespace)
	if err != nil {
		return o, err
	}
	pods, err := r.pods(ctx, e)
	if err != nil {
		return o, err
	}
	faults, err := r.faults(ctx, pods, all)
	if err != nil {
		return o, err
	}
	for n, job := range all {
		p := Part{Increment: n, Guaranteed: job.Labels[desired.PriorityClassLabel] != desired.GrowthClass, Pods: ptr.Deref(job.Spec.Parallelism, 0), Created: job.CreationTimestamp.Time, Deleting: r.memory.isDeleted(job), Phase: Waiting}
		p.Provision, p.Unscheduled = job.Labels[v1alpha1.LabelElasticProvision] != "", max(0, p.Pods-scheduled(job, pods))
		for _, w := range workloads[job.UID] {
			p.read(w)
		}
		if end := endOf(job); end != "" {
			p.Phase = end
		}
		p.Outdated = n == 0 && outdated(e, job)
		if fault := faults[n]; p.Phase == Admitted && fault.Cause != "" {
			p.Fault = r.memory.faultSince(job.UID, fault, r.Now())
		} else {
			r.memory.forgetFault(job.UID)
		}
		if n == 0 {
			o.Base = &p
			continue
		}
		o.Increments = append(o.Increments, p)
	}
	return o, nil
}

// outdated reports whether the base has another size or other values of the variables of
// environment than it would be created with now. The API server sets no defaults of these.
func outdated(e *v1alpha1.ElasticJob, base *batchv1.Job) bool {
	now := Base(e)
	if *now.Spec.Parallelism != ptr.Deref(base.Spec.Parallelism, 0) {
		return true
	}
	value := func(job *batchv1.Job, container int, name string) string {
		env := job.Spec.Template.Spec.Containers[container].Env
		if i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name }); i >= 0 {
			return env[i].Value
		}
		return ""
	}
	for container := range base.Spec.Template.Spec.Containers {
		for _, v := range environment(e) {
			if value(now, container, v.Name) != value(base, container, v.Name) {
				return true
			}
		}
	}
	return false
}

// workloads returns the Workloads of a namespace by the UIDs of their owners.
func (r *Reconciler) workloads(ctx context.Context, namespace string) (map[types.UID][]*kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Workloads of namespace %s: %w", namespace, err)
	}
	byOwner := map[types.UID][]*kueue.Workload{}
	for i := range list.Items {
		if owner := jobOf(&list.Items[i]); owner != nil {
			byOwner[owner.UID] = append(byOwner[owner.UID], &list.Items[i])
		}
	}
	return byOwner, nil
}

// jobOf returns the reference of a Workload to its Job; nil for none. The console's cache
// names the ElasticJob as the controller.
func jobOf(w client.Object) *metav1.OwnerReference {
	references := w.GetOwnerReferences()
	if i := slices.IndexFunc(references, func(o metav1.OwnerReference) bool { return o.Kind == "Job" }); i >= 0 {
		return &references[i]
	}
	return nil
}

// read sets the phase from the conditions of its Workload.
func (p *Part) read(w *kueue.Workload) {
	get := func(name string) *metav1.Condition {
		if c := meta.FindStatusCondition(w.Status.Conditions, name); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
		return nil
	}
	p.workload = w.UID
	reserved, evicted := get(kueue.WorkloadQuotaReserved), get(kueue.WorkloadEvicted)
	if reserved != nil {
		p.Phase, p.Reserved = Admitted, reserved.LastTransitionTime.Time
	}
	if evicted != nil {
		p.Phase, p.EvictedAt, p.Preempted = Evicted, evicted.LastTransitionTime.Time, evicted.Reason == kueue.WorkloadEvictedByPreemption
		p.For = loopguard.Preemptor(evicted.Message)
	}
}

// endOf returns whether a Job is Complete or Failed; empty while it has not ended.
func endOf(job *batchv1.Job) (end Phase) {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != "True":
		case c.Type == batchv1.JobComplete, c.Type == batchv1.JobSuccessCriteriaMet:
			end = Complete
		case c.Type == batchv1.JobFailed, c.Type == batchv1.JobFailureTarget:
			end = Failed
		}
	}
	return end
}

// startup is how long the Job controller may take to create the pods of a started Job.
const startup = 10 * time.Second

// pods returns the pods of an ElasticJob.
func (r *Reconciler) pods(ctx context.Context, e *v1alpha1.ElasticJob) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.Parts.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJobUID: string(e.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods of ElasticJob %s/%s: %w", e.Namespace, e.Name, err)
	}
	return list.Items, nil
}

// scheduled returns how many pods of a Job have a node.
func scheduled(job *batchv1.Job, pods []corev1.Pod) (n int32) {
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		if owner != nil && owner.UID == job.UID && pods[i].Spec.NodeName != "" && pods[i].Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

// faults returns why pods of Jobs do not run, by increment. Pods that start are no fault.
func (r *Reconciler) faults(ctx context.Context, pods []corev1.Pod, all jobs) (map[int]Fault, error) {
	found := map[int]Fault{}
	for n, job := range all {
		s, want := &job.Status, ptr.Deref(job.Spec.Parallelism, 0)
		failed := s.Failed > 0 && ptr.Deref(s.Ready, 0)+s.Succeeded < want
		missing := s.StartTime != nil && r.Now().Sub(s.StartTime.Time) > startup && s.Active+s.Succeeded < want
		if failed || missing {
			found[n] = Fault{Cause: v1alpha1.ScalePodsFailed}
		}
	}
	for i := range pods {
		pod := &pods[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		for n, job := range all {
			if owner == nil || owner.UID != job.UID || found[n].Node != "" {
				continue
			}
			lost, err := r.nodeLost(ctx, pod.Spec.NodeName)
			if err != nil {
				return nil, err
			}
			switch {
			case lost:
				found[n] = Fault{Cause: v1alpha1.ScaleNodeLost, Node: pod.Spec.NodeName, NoNode: found[n].NoNode}
			case unschedulable(pod):
				found[n] = Fault{Cause: v1alpha1.ScaleNodeLost, NoNode: true}
			}
		}
	}
	return found, nil
}

// nodeLost reports whether a node does not exist or is not ready.
func (r *Reconciler) nodeLost(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	var node corev1.Node
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}), nil
}

// unschedulable reports whether the scheduler found no node for a pod.
func unschedulable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// slim removes what this package does not read of Jobs and pods.
func slim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Annotations = nil
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
	}
	return object, nil
}

// Sizes returns the allowed sizes of a policy in pods, the smallest first. The first is
// the minimum.
func Sizes(p v1alpha1.ElasticPolicy) []int32 {
	sizes := []int32{p.MinReplicas}
	if p.ReplicaIncrementStep != nil && *p.ReplicaIncrementStep > 0 {
		for size := p.MinReplicas + *p.ReplicaIncrementStep; size <= p.MaxReplicas; size += *p.ReplicaIncrementStep {
			sizes = append(sizes, size)
		}
	}
	for _, size := range p.ReplicaDiscreteValues {
		if size > p.MinReplicas && size <= p.MaxReplicas {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// next returns the smallest of sizes that is larger than size; 0 for none.
func next(sizes []int32, size int32) int32 {
	for _, s := range sizes {
		if s > size {
			return s
		}
	}
	return 0
}
