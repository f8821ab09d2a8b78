package allocations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// admittedTask is a task with reserved quota.
type admittedTask struct {
	task    Task
	queue   string // the ClusterQueue whose quota it uses
	usage   quota.Resources
	podSets int // Kueue assigns each to one flavor
}

// teamTasks are the unfinished tasks of one team.
type teamTasks struct {
	admitted []admittedTask // by namespace and name
	waiting  int
}

// tasksOf reads the unfinished tasks of a team, of all its queues, from the cache, without their
// names if named is false.
func tasksOf(ctx context.Context, reader client.Reader, team string, named bool) (teamTasks, error) {
	teams, err := clusterstate.ReadTeams(ctx, reader)
	if err != nil {
		return teamTasks{}, err
	}
	var found teamTasks
	err = unfinished(ctx, reader, func(w *kueue.Workload) {
		switch {
		case teams.Of(tasks.PlaceOf(w)) != team:
		case w.Status.Admission != nil:
			found.admitted = append(found.admitted, admittedTaskOf(w, named))
		default:
			found.waiting++
		}
	})
	if err != nil {
		return teamTasks{}, err
	}
	slices.SortFunc(found.admitted, func(a, b admittedTask) int {
		return cmp.Or(strings.Compare(a.task.Namespace, b.task.Namespace), strings.Compare(a.task.Name, b.task.Name))
	})
	return found, nil
}

// unfinished calls do with each Workload in the cache that is not finished.
func unfinished(ctx context.Context, reader client.Reader, do func(*kueue.Workload)) error {
	var list kueue.WorkloadList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return err
	}
	for i := range list.Items {
		if w := &list.Items[i]; !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			do(w) // a finished one keeps its admission and uses no quota
		}
	}
	return nil
}

// TaskCounts is how many unfinished tasks a team has: those that use quota, and those that wait
// in its queue.
type TaskCounts struct{ Running, Waiting int }

// TaskCounts counts the tasks of several teams, by the name of the team, for users who may
// update or delete allocations. A team without tasks is not in it, nor one that the user may not
// change.
func (s *Service) TaskCounts(ctx context.Context, user governance.User, teams []v1alpha1.ComputeAllocation) (map[string]TaskCounts, error) {
	may, err := s.May(ctx, user)
	mayCount := func(a v1alpha1.ComputeAllocation) bool {
		return may.UpdatesIn(a.Spec.Department) || may.DeletesIn(a.Spec.Department)
	}
	if err == nil && !may.Updates() && !may.Deletes() {
		err = access.Forbidden("count tasks")
	}
	if err != nil {
		return nil, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	counted := map[string]bool{}
	for i := range teams {
		counted[teams[i].Name] = mayCount(teams[i])
	}
	of, err := clusterstate.ReadTeams(ctx, reader)
	if err != nil {
		return nil, err
	}
	counts := map[string]TaskCounts{}
	err = unfinished(ctx, reader, func(w *kueue.Workload) {
		team := of.Of(tasks.PlaceOf(w))
		if !counted[team] {
			return
		}
		count := counts[team]
		if w.Status.Admission != nil {
			count.Running++
		} else {
			count.Waiting++
		}
		counts[team] = count
	})
	return counts, err
}

// admittedTaskOf converts an admitted Workload.
func admittedTaskOf(w *kueue.Workload, named bool) admittedTask {
	h := admittedTask{task: Task{Namespace: w.Namespace}, queue: string(w.Status.Admission.ClusterQueue), usage: admitted.Usage(w).ByResource(), podSets: len(w.Status.Admission.PodSetAssignments)}
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

// drains reports whether a change starts to drain the queue.
func drains(before, after *v1alpha1.ComputeAllocation) bool {
	return after.Spec.Activation == v1alpha1.Drain && before.Spec.Activation != v1alpha1.Drain
}

// unadmittable returns the admitted tasks that could never be admitted again as
// they are, each with the first resource that exceeds the maximum: where the
// change lowers the maximum or evicts the tasks.
func unadmittable(tasks []admittedTask, before, after quota.Resolved, evicted bool) []Unadmittable {
	var all []Unadmittable
	for _, t := range tasks {
		for _, name := range t.usage.Names() {
			most, bounded := maxQuota(after, name, t.podSets)
			had, wasBounded := maxQuota(before, name, t.podSets)
			if bounded && t.usage[name] > most && (evicted || !wasBounded || most < had) {
				all = append(all, Unadmittable{Task: t.task, Resource: name, Requests: t.usage[name], Max: most})
				break
			}
		}
	}
	return all
}

// maxQuota returns the maximum of a resource that a task of the team can get,
// nominal quota and borrowing limit together: of one pool or, if its pod sets
// can be in different pools, of all pools. bounded is false if any pool has no
// borrowing limit.
func maxQuota(in quota.Resolved, resource string, podSets int) (most resources.Amount, bounded bool) {
	var all, largest resources.Amount
	for _, pool := range in.Pools {
		if pool.BorrowingLimit == nil {
			return 0, false
		}
		n := pool.Nominal[resource].Plus(pool.BorrowingLimit[resource])
		all, largest = all.Plus(n), max(largest, n)
	}
	if podSets > 1 {
		return all, true
	}
	return largest, true
}
