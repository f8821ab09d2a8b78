package tasks

import (
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// State is where a task stands.
type State string

// The states of a task, as Kueue's conditions tell them (0.19).
const (
	Pending   State = "Pending"    // waits for quota
	Preempted State = "Pre-empted" // was stopped for another task, and waits again
	Starting  State = "Starting"   // has its quota; pods or checks are not ready yet
	Running   State = "Running"
	Stopping  State = "Stopping" // loses its quota; its pods are ending
	Paused    State = "Paused"   // switched off by spec.active
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// Task is one Workload, read for people.
type Task struct {
	UID        string
	Namespace  string
	Name       string // of the owner, such as the Job; of the Workload where it has none
	Kind       string // of the owner
	Workload   string // name of the Workload
	Queue      string // LocalQueue
	Class      string // priority class; empty for none
	State      State
	Reason     string // first line of what Kueue says while it does not run
	Pools      []string
	Resources  quota.Resources // held while it has quota, else asked for
	Submitted  time.Time
	LastChange time.Time // when it came into its state, as far as conditions tell
}

// Finished tells whether a task has ended.
func (t Task) Finished() bool { return t.State == Succeeded || t.State == Failed }

// FromWorkload reads a Workload.
func FromWorkload(w *kueue.Workload) Task {
	task := Task{
		UID: string(w.UID), Namespace: w.Namespace, Workload: w.Name,
		Name: w.Name, Kind: "Workload",
		Queue: string(w.Spec.QueueName), Submitted: w.CreationTimestamp.Time,
		Resources: requested(w),
	}
	if owner := metav1.GetControllerOf(w); owner != nil {
		task.Name, task.Kind = owner.Name, owner.Kind
	}
	if w.Spec.PriorityClassRef != nil {
		task.Class = w.Spec.PriorityClassRef.Name
	}
	if w.Status.Admission != nil {
		task.Pools, task.Resources = held(w.Status.Admission)
	}
	var told *metav1.Condition
	task.State, told = state(w)
	if told != nil {
		task.LastChange = told.LastTransitionTime.Time
		if task.State != Running && task.State != Succeeded {
			task.Reason, _, _ = strings.Cut(strings.TrimSpace(told.Message), "\n")
		}
	}
	return task
}

// state reads the conditions in the order in which one outdoes the other, and
// returns the one that tells of it.
func state(w *kueue.Workload) (State, *metav1.Condition) {
	get := func(name string) (*metav1.Condition, bool) {
		c := meta.FindStatusCondition(w.Status.Conditions, name)
		return c, c != nil && c.Status == metav1.ConditionTrue
	}
	finished, isFinished := get(kueue.WorkloadFinished)
	evicted, isEvicted := get(kueue.WorkloadEvicted)
	reserved, hasQuota := get(kueue.WorkloadQuotaReserved)
	admitted, isAdmitted := get(kueue.WorkloadAdmitted)
	ready, _ := get(kueue.WorkloadPodsReady)
	_, isPreempted := get(kueue.WorkloadPreempted)
	switch {
	case isFinished && finished.Reason == kueue.WorkloadFinishedReasonFailed:
		return Failed, finished
	case isFinished:
		return Succeeded, finished
	case w.Spec.Active != nil && !*w.Spec.Active:
		return Paused, evicted
	case isEvicted && hasQuota:
		return Stopping, evicted
	case isAdmitted && ready != nil && ready.Status == metav1.ConditionFalse:
		return Starting, ready
	case isAdmitted:
		return Running, admitted
	case hasQuota:
		return Starting, admitted
	case isPreempted:
		return Preempted, reserved
	}
	return Pending, reserved
}

// held is what an admission holds, and in which pools.
func held(admission *kueue.Admission) (pools []string, resources quota.Resources) {
	resources = quota.Resources{}
	seen := map[string]bool{}
	for _, set := range admission.PodSetAssignments {
		for name, amount := range set.ResourceUsage {
			resources[string(name)] += quota.InUnit(string(name), amount)
		}
		for _, pool := range set.Flavors {
			if !seen[string(pool)] {
				seen[string(pool)] = true
				pools = append(pools, string(pool))
			}
		}
	}
	return pools, resources
}

// requested is what a Workload asks for: requests of a pod × its count.
func requested(w *kueue.Workload) quota.Resources {
	total := quota.Resources{}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		for _, container := range set.Template.Spec.Containers {
			for name, amount := range container.Resources.Requests {
				total[string(name)] += quota.InUnit(string(name), amount) * int64(set.Count)
			}
		}
	}
	return total
}
