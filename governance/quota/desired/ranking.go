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

// Priorities by number. The names of a policy's classes end in classSuffix, so that none of
// them has the name of a number.
const (
	// PriorityLabel is the label or annotation of a task that names its priority by number,
	// which an admission policy turns into PriorityClassLabel.
	PriorityLabel = "kuota.dev/priority"
	// NumberPrefix begins the names of the WorkloadPriorityClasses of numbers.
	NumberPrefix = "kuota-priority-"
	// MaxNumber is the highest number; the lowest is 0.
	MaxNumber = 99
)

// NumberClass returns the name of the WorkloadPriorityClass of a priority by number.
func NumberClass(number int) string { return NumberPrefix + strconv.Itoa(number) }

// NumberOf returns the number of a WorkloadPriorityClass of NumberClass; ok is false for any
// other.
func NumberOf(class string) (number int, ok bool) {
	text, ok := strings.CutPrefix(class, NumberPrefix)
	number, err := strconv.Atoi(text)
	return number, ok && err == nil && number >= 0 && number <= MaxNumber && NumberClass(number) == class
}

// IsNumber reports whether a WorkloadPriorityClass is that of a number.
func IsNumber(class string) bool {
	_, ok := NumberOf(class)
	return ok
}

// PriorityClasses returns the WorkloadPriorityClasses of a policy: of its classes in their
// order, then of numbers.
func PriorityClasses(policy *v1alpha1.ClusterPolicySpec) (objects []*applykueue.WorkloadPriorityClassApplyConfiguration) {
	for _, class := range policy.PriorityClasses {
		objects = append(objects, PriorityClass(class, policy.TaskPrioritization))
	}
	for number := 0; policy.NumericPriorities && number <= MaxNumber; number++ {
		objects = append(objects, priorityClass(NumberClass(number), v1alpha1.PriorityClass{Weight: new(int32(number))}, policy.TaskPrioritization))
	}
	return objects
}

// PriorityClass returns the WorkloadPriorityClass of a priority class.
func PriorityClass(class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) *applykueue.WorkloadPriorityClassApplyConfiguration {
	return priorityClass(PriorityClassName(class.Name), class, prioritization)
}

func priorityClass(name string, class v1alpha1.PriorityClass, prioritization v1alpha1.TaskPrioritization) *applykueue.WorkloadPriorityClassApplyConfiguration {
	weight := strconv.Itoa(int(PriorityClassValue(class, v1alpha1.TaskRanking)))
	object := applykueue.WorkloadPriorityClass(name).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithValue(PriorityClassValue(class, prioritization)).
		WithDescription(class.Description)
	return object.WithAnnotations(map[string]string{AnnotationWeight: weight, AnnotationDesired: digest([]any{object.Value, object.Description, weight})})
}
