package desired

import (
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// Ranking says which tasks may preempt others because of their priority.
type Ranking int

// The rankings.
const (
	ByPriority Ranking = iota // within a team as its allocation says, and while borrowing
	FirstCome                 // within a team never
	Paused                    // never, while tasks get new priorities
)

// RankingOf is the ranking that queues are set for under a policy; nil is none.
// It follows the status, which says what is in force, and not the spec, which
// may be ahead of it.
func RankingOf(policy *v1alpha1.ClusterPolicy) Ranking {
	switch {
	case policy == nil || policy.Status.Ranking == nil:
		return ByPriority
	case policy.Status.Ranking.Step != v1alpha1.RankingSettled:
		return Paused
	case policy.Status.Ranking.InForce == v1alpha1.FirstComeFirstServe:
		return FirstCome
	}
	return ByPriority
}

// classSuffix ends the name of every class object, as HyperPod's do.
const classSuffix = "-priority"

// ClassLabel is the label by which a task names its priority class.
const PriorityClassLabel = "kueue.x-k8s.io/priority-class"

// ClassObject is the name of the WorkloadPriorityClass of a priority class: what
// a task's label names.
func PriorityClassName(class string) string {
	if strings.HasSuffix(class, classSuffix) {
		return class
	}
	return class + classSuffix
}

// ClassValue is the priority of a class's tasks: its weight where tasks are
// ranked, and 0, like that of tasks without a class, where they are not.
func PriorityClassValue(class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) int32 {
	if prioritization != v1alpha1.TaskRanking || class.Weight == nil {
		return 0
	}
	return *class.Weight
}

// Class is the object of a priority class.
func PriorityClass(class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) *applykueue.WorkloadPriorityClassApplyConfiguration {
	weight := strconv.Itoa(int(PriorityClassValue(class, v1alpha1.TaskRanking)))
	object := applykueue.WorkloadPriorityClass(PriorityClassName(class.Name)).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithValue(PriorityClassValue(class, prioritization)).
		WithDescription(class.Description)
	return object.WithAnnotations(map[string]string{AnnotationWeight: weight, AnnotationDesired: digest([]any{object.Value, object.Description, weight})})
}
