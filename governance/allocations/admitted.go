package allocations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// admittedTask is a task with reserved quota.
type admittedTask struct {
	task    Task
	usage   quota.Resources
	podSets int // Kueue assigns each to one flavor
}

// teamTasks are the unfinished tasks of one team.
type teamTasks struct {
	admitted []admittedTask // by namespace and name
	waiting  int
}

// tasksOf reads the unfinished tasks of a team from the cache, without their
// names if named is false.
func tasksOf(ctx context.Context, reader client.Reader, clusterQueue, namespace, localQueue string, named bool) (teamTasks, error) {
	var list kueue.WorkloadList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return teamTasks{}, err
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
	slices.SortFunc(found.admitted, func(a, b admittedTask) int {
		return cmp.Or(strings.Compare(a.task.Namespace, b.task.Namespace), strings.Compare(a.task.Name, b.task.Name))
	})
	return found, nil
}

// admittedTaskOf converts an admitted Workload.
func admittedTaskOf(w *kueue.Workload, named bool) admittedTask {
	h := admittedTask{task: Task{Namespace: w.Namespace}, usage: admitted.Usage(w).ByResource(), podSets: len(w.Status.Admission.PodSetAssignments)}
	if named {
		h.task = taskOf(w)
	}
	return h
}

func taskOf(w *kueue.Workload) Task {
	if owner := metav1.GetControllerOf(w); owner != nil {
		return Task{Namespace: w.Namespace, Kind: owner.Kind, Name: owner.Name}
	}
	return Task{Namespace: w.Namespace, Kind: "Workload", Name: w.Name}
}
