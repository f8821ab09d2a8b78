package allocations

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance/admitted"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// admittedTask is a task with reserved quota.
type admittedTask struct {
	task     Task
	priority int32
	since    time.Time
	usage    quota.PoolResources // by pool
	podSets  int                 // Kueue assigns each to one flavor
}

// teamTasks are the unfinished tasks of one team.
type teamTasks struct {
	admitted []admittedTask // in the order in which Kueue preempts them
	waiting  int
}

// tasksOf reads the unfinished tasks of a team from the cache, without their
// names if named is false.
func tasksOf(ctx context.Context, reader client.Reader, clusterQueue, namespace, localQueue string, named bool) (teamTasks, error) {
	var list kueue.WorkloadList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return teamTasks{}, cluster.Translate("list tasks", err)
	}
	var found teamTasks
	for i := range list.Items {
		w := &list.Items[i]
		if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			continue // it keeps its admission and uses no quota
		}
		admission := w.Status.Admission
		switch {
		case admission != nil && string(admission.ClusterQueue) == clusterQueue:
			found.admitted = append(found.admitted, admittedTaskOf(w, named))
		case admission == nil && w.Namespace == namespace && string(w.Spec.QueueName) == localQueue:
			found.waiting++
		}
	}
	slices.SortFunc(found.admitted, byPreemptionOrder)
	return found, nil
}

// admittedTaskOf converts an admitted Workload.
func admittedTaskOf(w *kueue.Workload, named bool) admittedTask {
	h := admittedTask{task: Task{Namespace: w.Namespace}, since: w.CreationTimestamp.Time, usage: usageOf(w), podSets: len(w.Status.Admission.PodSetAssignments)}
	if named {
		h.task = taskOf(w)
	}
	if w.Spec.Priority != nil {
		h.priority = *w.Spec.Priority
	}
	if reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); reserved != nil {
		h.since = reserved.LastTransitionTime.Time
	}
	return h
}

// byPreemptionOrder orders admitted tasks of a queue the way Kueue 0.19 picks
// preemption candidates: lowest priority first, then the most recently admitted.
func byPreemptionOrder(a, b admittedTask) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), b.since.Compare(a.since), cmp.Compare(a.task.Namespace, b.task.Namespace), cmp.Compare(a.task.Name, b.task.Name))
}

func taskOf(w *kueue.Workload) Task {
	if owner := metav1.GetControllerOf(w); owner != nil {
		return Task{Namespace: w.Namespace, Kind: owner.Kind, Name: owner.Name}
	}
	return Task{Namespace: w.Namespace, Kind: "Workload", Name: w.Name}
}

// usageOf returns the usage of a Workload by pool.
func usageOf(w *kueue.Workload) quota.PoolResources {
	usage := quota.PoolResources{}
	for set := range admitted.PodSets(w) {
		for name, amount := range set.Usage {
			pool := set.Flavors[name]
			usage.Add(pool, quota.Resources{name: amount})
		}
	}
	return usage
}
