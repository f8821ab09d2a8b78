package tasks

import (
	"context"
	"maps"
	"strings"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// placement is how the pods of a task do that has its quota; nil where all that
// there should be have nodes.
func placement(t *Task, pods []*Pod, count PodCount) *explain.Pods {
	there := count.Total
	if t.Kind != "Job" { // of a Job, pods that ended are replaced, or Kueue no longer counts them
		there += count.Ended
	}
	p := &explain.Pods{Flavors: map[string][]string{}, Unscheduled: int32(min(count.Unscheduled, 1<<30)), Missing: max(0, t.Size.Admitted-int32(min(there, 1<<30)))}
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

// ceilings are the limits of a task's namespace that would refuse one more of
// its pods.
func (v viewer) ceilings(ctx context.Context, q explain.Task) (found []explain.ResourceQuota, err error) {
	var list corev1.ResourceQuotaList
	if err := v.reader.List(ctx, &list, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list limits of the namespace", err)
	}
	for i := range list.Items {
		limits := &list.Items[i]
		if len(limits.Spec.Scopes) > 0 || limits.Spec.ScopeSelector != nil {
			continue // it may not be about these pods
		}
		for _, set := range q.PodSets {
			for name, hard := range limits.Status.Hard {
				resource := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
				each := set.Requests[resource]
				if resource == string(corev1.ResourcePods) {
					each = 1
				}
				c := explain.ResourceQuota{Name: limits.Name, Resource: resource, Requests: each, Hard: quota.ResourceValue(resource, hard), Used: quota.ResourceValue(resource, limits.Status.Used[name])}
				if c.Requests > 0 && c.Used+c.Requests > c.Hard {
					found = append(found, c)
				}
			}
		}
	}
	return found, nil
}

// nodes are nodes with what their pods leave of them.
func (x *Index) nodes(list []corev1.Node) []explain.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	nodes := make([]explain.Node, len(list))
	for i := range list {
		o := &list[i]
		n := explain.Node{Name: o.Name, Labels: o.Labels, Taints: o.Spec.Taints, Ready: catalog.Schedulable(o), Allocatable: quota.Resources{}}
		for name, amount := range o.Status.Allocatable {
			n.Allocatable[string(name)] = quota.ResourceValue(string(name), amount)
		}
		n.Free = maps.Clone(n.Allocatable)
		if on := x.loads[o.Name]; on != nil {
			for name, amount := range on.asked {
				n.Free[name] -= amount
			}
			n.Free[string(corev1.ResourcePods)] -= on.pods
		}
		nodes[i] = n
	}
	return nodes
}

// unready tells whether Kueue waits for pods of a task.
func (t *Task) unready() bool { return !t.NoWorkload && t.State == Starting && !t.AdmittedAt.IsZero() }

// notReady counts the tasks whose pods Kueue waits for.
func (x *Index) notReady() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unready
}
