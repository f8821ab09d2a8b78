package desired

import (
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// Ranking determines which tasks can preempt others by priority.
type Ranking int

// The rankings.
const (
	ByPriority Ranking = iota // within a team if its allocation allows it, and while borrowing
	FirstCome                 // never within a team
	Paused                    // never, while tasks get new priorities
)

// RankingOf returns the ranking that the queues need under a policy, which may
// be nil. It follows the status, which has the applied ranking, and not the
// spec.
func RankingOf(policy *v1alpha1.ClusterPolicy) Ranking {
	switch {
	case policy == nil || policy.Status.Ranking == nil:
		return ByPriority
	case policy.Status.Ranking.Step != v1alpha1.RankingSettled:
		return Paused
	case policy.Status.Ranking.Active == v1alpha1.FirstComeFirstServe:
		return FirstCome
	}
	return ByPriority
}

// classSuffix is the suffix of the names of WorkloadPriorityClasses, as in
// HyperPod.
const classSuffix = "-priority"

// PriorityClassLabel is the label of a task that names its priority class.
const PriorityClassLabel = "kueue.x-k8s.io/priority-class"

// PriorityClassName returns the name of the WorkloadPriorityClass of a priority
// class, which is the value of PriorityClassLabel.
func PriorityClassName(class string) string {
	if strings.HasSuffix(class, classSuffix) {
		return class
	}
	return class + classSuffix
}

// PriorityClassValue returns the priority of the tasks of a class: its weight
// under task ranking, else 0, as for tasks without a class.
func PriorityClassValue(class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) int32 {
	if prioritization != v1alpha1.TaskRanking || class.Weight == nil {
		return 0
	}
	return *class.Weight
}

// GrowthClass is the WorkloadPriorityClass of the increments of ElasticJobs, and
// GrowthPriority its value: below tasks without a class and the classes of policies,
// so that Kueue preempts growth first.
const (
	GrowthClass          = "kuota-growth"
	GrowthPriority int32 = -1_000_000
)

// IsGrowth reports whether w is growth of an ElasticJob.
func IsGrowth(w *kueue.Workload) bool {
	ref := w.Spec.PriorityClassRef
	return ref != nil && ref.Name == GrowthClass
}

// Growth returns the WorkloadPriorityClass of growth.
func Growth() *applykueue.WorkloadPriorityClassApplyConfiguration {
	object := applykueue.WorkloadPriorityClass(GrowthClass).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithValue(GrowthPriority).
		WithDescription("Pods of elastic tasks beyond their minimum: preempted before any other task.")
	return object.WithAnnotations(map[string]string{AnnotationDesired: digest([]any{object.Value, object.Description})})
}

// PriorityClass returns the WorkloadPriorityClass of a priority class.
func PriorityClass(class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) *applykueue.WorkloadPriorityClassApplyConfiguration {
	weight := strconv.Itoa(int(PriorityClassValue(class, v1alpha1.TaskRanking)))
	object := applykueue.WorkloadPriorityClass(PriorityClassName(class.Name)).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithValue(PriorityClassValue(class, prioritization)).
		WithDescription(class.Description)
	return object.WithAnnotations(map[string]string{AnnotationWeight: weight, AnnotationDesired: digest([]any{object.Value, object.Description, weight})})
}
