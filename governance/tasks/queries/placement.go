package queries

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// placement returns the state of an admitted task's pods; nil if all of them have
// nodes.
func placement(t *tasks.Task, pods []*index.Pod, count index.PodCount) *explain.Pods {
	there := count.Total
	if t.Kind != "Job" && t.Kind != v1alpha1.ElasticJobKind { // ended pods of a Job are replaced, or Kueue does not count them any more
		there += count.Ended
	}
	p := &explain.Pods{Flavors: map[string][]string{}, Unscheduled: int64(count.Unscheduled), Missing: max(0, t.Size.Admitted-int64(there))}
	if p.Unscheduled == 0 && p.Missing == 0 {
		return nil
	}
	for _, pod := range pods {
		if !pod.Unscheduled() {
			continue
		}
		p.Requests = append(p.Requests, pod.Requests)
		if p.SchedulerMessage == "" {
			p.SchedulerMessage = pod.Problem
		}
	}
	for _, w := range t.Parts {
		if w.Status.Admission == nil {
			continue
		}
		for i := range w.Status.Admission.PodSetAssignments {
			set := &w.Status.Admission.PodSetAssignments[i]
			for _, flavor := range set.Flavors {
				p.Flavors[string(set.Name)] = append(p.Flavors[string(set.Name)], string(flavor))
			}
		}
	}
	return p
}

// podsOf implements advice.Pods.
type podsOf struct{ viewer }

// Sets implements advice.Pods.
func (podsOf) Sets(w *kueue.Workload) []explain.PodSet { return podSets(w) }

// OnNodes implements advice.Pods.
func (v podsOf) OnNodes(w *kueue.Workload) (list []explain.NodePod) {
	t := v.index.ByWorkload(w.UID)
	if t == nil {
		return nil
	}
	pods, _ := v.index.Pods(t)
	pods = slices.DeleteFunc(pods, func(p *index.Pod) bool {
		return p.Node == "" || p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
	})
	if len(t.Parts) > 1 { // of several Workloads
		owned := func(p *index.Pod) bool {
			return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == p.UID || o.UID == p.Owner })
		}
		if slices.ContainsFunc(pods, owned) {
			pods = slices.DeleteFunc(pods, func(p *index.Pod) bool { return !owned(p) })
		}
		pods = pods[:min(len(pods), int(tasks.ReadPart(w).Admitted))]
	}
	for _, p := range pods {
		list = append(list, explain.NodePod{Node: p.Node, Requests: p.Requests})
	}
	return list
}

// resourceQuotas returns the ResourceQuotas of a namespace that would refuse one
// more pod of a task.
func (v viewer) resourceQuotas(ctx context.Context, q explain.Task) ([]explain.ResourceQuota, error) {
	all, err := v.ceilings(ctx, q.Namespace, q.PodSets)
	return slices.DeleteFunc(all, func(c explain.ResourceQuota) bool { return c.Used.Plus(c.Requests) <= c.Hard }), err
}

// ceilings returns the ResourceQuotas of a namespace that limit pods of these sets.
func (v viewer) ceilings(ctx context.Context, namespace string, sets []explain.PodSet) (found []explain.ResourceQuota, err error) {
	var list corev1.ResourceQuotaList
	if err := v.reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list limits of the namespace", err)
	}
	for i := range list.Items {
		limits := &list.Items[i]
		if len(limits.Spec.Scopes) > 0 || limits.Spec.ScopeSelector != nil {
			continue // it may not be about these pods
		}
		for _, set := range sets {
			for name, hard := range limits.Status.Hard {
				resource := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
				each := set.Requests[resource]
				if resource == string(corev1.ResourcePods) {
					each = 1
				}
				c := explain.ResourceQuota{Name: limits.Name, Resource: resource, Requests: each, Hard: resources.AmountFromQuantity(resource, hard), Used: resources.AmountFromQuantity(resource, limits.Status.Used[name])}
				if c.Requests > 0 {
					found = append(found, c)
				}
			}
		}
	}
	return found, nil
}

// ownersFreshness is how long the owners of pods are cached. All readers share the
// cache, since it is computed for all tasks.
const ownersFreshness = 5 * time.Second

// Owner is the task that a pod belongs to, for one viewer.
type Owner struct {
	// Hidden reports that the viewer may not see the task: all other fields are empty.
	Hidden       bool
	Team         string // that the viewer sees; empty for none
	Task         tasks.Address
	Accelerators resources.Amount // used by the task, of all kinds; each partition counts as one
	AdmittedAt   time.Time        // zero for a task that Kueue counts no quota for
}

// podOwnersCache maps pods that have not ended to tasks that use quota, or run
// without Kueue.
type podOwnersCache struct {
	mu   sync.Mutex
	at   time.Time
	pods map[index.PodName]*tasks.Task
}

func (o *podOwnersCache) get(x *index.Index, now time.Time) map[index.PodName]*tasks.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pods == nil || now.Sub(o.at) >= ownersFreshness {
		o.pods, o.at = x.PodOwners(), now
	}
	return o.pods
}

// PodOwners returns a function from a pod to its owner; false for a pod of no task.
// Its answers are up to a few seconds old.
func (s *Service) PodOwners(ctx context.Context, scope access.Scope) (func(index.PodName) (Owner, bool), error) {
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	pods := s.owners.get(v.index, v.index.Now())
	return func(name index.PodName) (Owner, bool) { return v.owner(pods[name]) }, nil
}

// owner returns a task as the viewer may see it; false for none.
func (v viewer) owner(t *tasks.Task) (Owner, bool) {
	switch {
	case t == nil:
		return Owner{}, false
	case !v.scope.Includes(t.Namespace):
		return Owner{Hidden: true}, true
	}
	return Owner{Team: v.team(t.Place()), Task: t.Address(), Accelerators: t.Usage.Accelerators(), AdmittedAt: t.AdmittedAt}, true
}
