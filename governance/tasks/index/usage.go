package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Portions returns what each member of a cohort, a ClusterQueue, uses of one FlavorResource, and
// what each Workload in one queue uses of it, in the order in which they take the
// queue's own quota. mine marks those of t.
func (x *Index) Portions(fr quota.FlavorResource, queue string, t *tasks.Task, members []string) (used, amounts []resources.Amount, mine []bool) {
	type portion struct {
		amount   resources.Amount
		priority int32
		admitted time.Time
		uid      string
		mine     bool
	}
	var all []portion
	x.mu.Lock()
	for _, name := range members {
		used = append(used, x.used[name][fr])
	}
	running := x.admitted.list()
	x.mu.Unlock()
	for _, task := range running {
		if !slices.ContainsFunc(task.AdmittedWorkloads, func(h explain.AdmittedWorkload) bool { return h.Queue == queue }) {
			continue
		}
		for _, w := range task.Parts {
			if w.Status.Admission == nil || string(w.Status.Admission.ClusterQueue) != queue {
				continue
			}
			p := portion{uid: string(w.UID), priority: ptr.Deref(w.Spec.Priority, 0), mine: task.UID == t.UID && task.Namespace == t.Namespace}
			for set := range admitted.PodSets(w) {
				if set.Flavors[fr.Resource] == fr.Flavor {
					p.amount = p.amount.Plus(set.Usage[fr.Resource])
				}
			}
			if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
				p.admitted = c.LastTransitionTime.Time
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b portion) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.admitted.Compare(b.admitted), strings.Compare(a.uid, b.uid))
	})
	for _, p := range all {
		amounts, mine = append(amounts, p.amount), append(mine, p.mine)
	}
	return used, amounts, mine
}

// ClusterUsage is what tasks and pods use of the cluster at one moment.
type ClusterUsage struct {
	Nodes  map[string]NodeUsage                      // by name, of those that have pods
	Queues map[string]quota.FlavorResourceQuantities // usage by ClusterQueue
	Growth map[string]quota.FlavorResourceQuantities // the part of it that is growth of elastic tasks
	Places map[tasks.Place]TaskCount                 // of those with tasks that run or wait
}

// NodeUsage sums the requests of a node's pods that have not ended.
type NodeUsage struct {
	Pods     int64
	Requests quota.Resources                 // of all pods
	Admitted map[tasks.Place]quota.Resources // by those that Kueue admitted
}

// TaskCount counts tasks.
type TaskCount struct{ Running, Waiting int }

// ClusterUsage returns what is used now, all of it as of one moment.
func (x *Index) ClusterUsage() ClusterUsage {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := ClusterUsage{
		Nodes: make(map[string]NodeUsage, len(x.nodeUsage)), Queues: make(map[string]quota.FlavorResourceQuantities, len(x.used)), Growth: make(map[string]quota.FlavorResourceQuantities, len(x.growth)), Places: make(map[tasks.Place]TaskCount),
	}
	for name, l := range x.nodeUsage {
		on := NodeUsage{Pods: l.pods, Requests: maps.Clone(l.requests), Admitted: make(map[tasks.Place]quota.Resources, len(l.admitted))}
		for place, asked := range l.admitted {
			on.Admitted[place] = maps.Clone(asked)
		}
		for p := range l.unplaced {
			place := tasks.Place{Namespace: p.Namespace}
			if t := x.taskOfPod(p); t != nil {
				place = t.Place()
			}
			if on.Admitted[place] == nil {
				on.Admitted[place] = quota.Resources{}
			}
			on.Admitted[place].Add(p.Requests)
		}
		o.Nodes[name] = on
	}
	for queue, amounts := range x.used {
		o.Queues[queue] = maps.Clone(amounts)
	}
	for queue, amounts := range x.growth {
		o.Growth[queue] = maps.Clone(amounts)
	}
	for key, y := range x.classes {
		in := o.Places[key.Place]
		for state, n := range y.states {
			switch {
			case state.Waiting():
				in.Waiting += n
			case state.UsesQuota():
				in.Running += n
			}
		}
		if in != (TaskCount{}) {
			o.Places[key.Place] = in
		}
	}
	return o
}

// Nodes returns nodes with what their pods leave free.
func (x *Index) Nodes(list []corev1.Node) []explain.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	nodes := make([]explain.Node, len(list))
	for i := range list {
		o := &list[i]
		n := explain.Node{Name: o.Name, Labels: o.Labels, Taints: o.Spec.Taints, Ready: catalog.Schedulable(o), Allocatable: quota.Resources{}}
		for name, amount := range o.Status.Allocatable {
			n.Allocatable[string(name)] = resources.AmountFromQuantity(string(name), amount)
		}
		n.Free = maps.Clone(n.Allocatable)
		if on := x.nodeUsage[o.Name]; on != nil {
			for name, amount := range on.requests {
				n.Free[name] = n.Free[name].Minus(amount)
			}
			n.Free[string(corev1.ResourcePods)] = n.Free[string(corev1.ResourcePods)].Minus(resources.Amount(on.pods))
		}
		nodes[i] = n
	}
	return nodes
}

// unready reports whether Kueue waits for the pods of a task.
func unready(t *tasks.Task) bool {
	return !t.NoWorkload && t.State == tasks.Starting && !t.AdmittedAt.IsZero() && !t.Unplaced
}

// CountNotReady counts the tasks whose pods Kueue waits for.
func (x *Index) CountNotReady() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unready
}

// SetUsage sets the usage of each of these queues, and returns all tasks that use
// quota at the same moment, in preemption order: read only.
func (x *Index) SetUsage(queues map[string]*explain.Queue) []*tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, q := range queues {
		if q.Usage = maps.Clone(x.used[name]); q.Usage == nil {
			q.Usage = quota.FlavorResourceQuantities{}
		}
	}
	return x.admitted.list()
}

// AdmittedTo returns what tasks use of these queues.
func AdmittedTo(holding []*tasks.Task, queues map[string]bool) (found []*explain.AdmittedWorkload) {
	for _, t := range holding {
		for i := range t.AdmittedWorkloads {
			if h := &t.AdmittedWorkloads[i]; queues[h.Queue] {
				found = append(found, h)
			}
		}
	}
	if inOrder := (*explain.AdmittedWorkload).Compare; !slices.IsSortedFunc(found, inOrder) { // growth comes before the rest of its task
		slices.SortFunc(found, inOrder)
	}
	return found
}

// elasticPods counts the pods of ElasticJobs that use quota.
type elasticPods struct{ guaranteed, growth int64 }

// addGrowth adds what growth of a task uses; sign is -1 to remove it.
func (x *Index) addGrowth(t *tasks.Task, sign int64) {
	for _, w := range t.Parts {
		growth := desired.IsGrowth(w)
		if !growth && t.Kind != v1alpha1.ElasticJobKind {
			continue
		}
		pods := &x.elasticPods.guaranteed
		if growth {
			pods = &x.elasticPods.growth
		}
		for set := range admitted.PodSets(w) {
			*pods += sign * int64(set.Count)
		}
		if growth && w.Status.Admission != nil {
			addUsed(x.growth, string(w.Status.Admission.ClusterQueue), admitted.Usage(w), sign)
		}
	}
}
