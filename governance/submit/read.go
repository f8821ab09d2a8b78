package submit

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/manifest"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// PlanElasticJob plans an ElasticJob that was read from a manifest, in the team's
// namespace and queue. changed are the values that the team's replace. If the job is
// invalid it returns no Plan but all errors; their paths are those of the ElasticJob.
func (t Team) PlanElasticJob(e *v1alpha1.ElasticJob) (p Plan, changed, wrong governance.FieldErrors) {
	e = e.DeepCopy()
	replace := func(path string, value *string, by string) {
		if *value != "" && *value != by {
			changed.Addf(path, "is %s; the team's %s is used", *value, by)
		}
		*value = by
	}
	queue := e.Labels[constants.QueueLabel]
	replace("metadata.namespace", &e.Namespace, t.Namespace)
	share, of := t.shareOf(queue)
	replace("metadata.labels["+constants.QueueLabel+"]", &queue, of)
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	e.Labels[constants.QueueLabel] = queue

	wrong = manifest.CheckElasticJob(e, "")
	class := e.Labels[constants.WorkloadPriorityClassLabel]
	limits, ok := t.Class(class)
	if !ok {
		wrong.Add("metadata.labels["+constants.WorkloadPriorityClassLabel+"]", noClass(class, t))
	}
	if e.Spec.ActiveDeadlineSeconds == nil && limits.DefaultTimeLimit > 0 {
		e.Spec.ActiveDeadlineSeconds = new(int64(limits.DefaultTimeLimit))
	}
	wrong.Add("spec.activeDeadlineSeconds", t.checkTimeLimit(class, ptr.Deref(e.Spec.ActiveDeadlineSeconds, 0)))
	if len(wrong) > 0 {
		return Plan{}, changed, wrong
	}
	spec := &e.Spec.Template.Spec
	policy := e.Spec.ElasticPolicy
	p = Plan{
		Request:   Request{Kind: ElasticJob, Name: e.Name, Class: class, Pods: policy.MinReplicas, Image: spec.Containers[0].Image, Elastic: &policy},
		Team:      t,
		QueuePool: t.selected(spec.NodeSelector), PodResources: quotaRequests(spec), read: e,
	}
	p.Pool, p.Share, p.Team.Queue = p.QueuePool.Name, share, of
	return p, changed, nil
}

// selected returns the only pool of the team that pods with this node selector can run in;
// the zero value if several or none are.
func (t Team) selected(nodes map[string]string) (only QueuePool) {
	found := 0
	for _, pool := range t.Pools {
		matches := true
		for label, value := range pool.NodeSelector {
			if selected, ok := nodes[label]; ok && selected != value {
				matches = false
			}
		}
		if matches {
			only = pool
			found++
		}
	}
	if found != 1 {
		return QueuePool{}
	}
	return only
}
