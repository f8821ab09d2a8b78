package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// AllowedPriorityClasses returns the priority classes that a task may name, the
// lowest first. policy applies to its namespace, nil for none: if it requires
// queues, only its own classes are allowed, and those of numbers if it allows numbers. The
// class of growth is of no task.
func AllowedPriorityClasses(ctx context.Context, reader client.Reader, policy *v1alpha1.ClusterPolicy) ([]explain.PriorityClass, error) {
	var list kueue.WorkloadPriorityClassList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return nil, err
	}
	enforced := policy != nil && policy.Spec.Enforcement == v1alpha1.RequireQueue
	var found []explain.PriorityClass
	for i := range list.Items {
		c := &list.Items[i]
		if c.DeletionTimestamp != nil || c.Name == desired.GrowthClass {
			continue
		}
		class := explain.PriorityClass{Name: c.Name, Priority: c.Value}
		if enforced {
			j := slices.IndexFunc(policy.Spec.PriorityClasses, func(p v1alpha1.PriorityClass) bool { return desired.PriorityClassName(p.Name) == c.Name })
			switch {
			case j >= 0:
				class.DefaultTimeLimit, class.MaximumTimeLimit = policy.Spec.PriorityClasses[j].TimeLimits()
			case !policy.Spec.NumericPriorities || !desired.IsNumber(c.Name):
				continue
			}
		}
		found = append(found, class)
	}
	slices.SortFunc(found, func(a, b explain.PriorityClass) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found, nil
}

// WithoutNumbers returns the classes that are no priorities by number, and those that are.
func WithoutNumbers(all []explain.PriorityClass) (classes, numbers []explain.PriorityClass) {
	for _, c := range all {
		if desired.IsNumber(c.Name) {
			numbers = append(numbers, c)
		} else {
			classes = append(classes, c)
		}
	}
	return classes, numbers
}

// timeLimit returns the time limit of t; 0 for none. An ElasticJob has its own.
func (v viewer) timeLimit(ctx context.Context, t *tasks.Task) (time.Duration, error) {
	job, err := v.elasticJob(ctx, t)
	if job == nil {
		return t.TimeLimit(), err
	}
	return time.Duration(ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)) * time.Second, nil
}

// keepsPriorityClass reports whether a task's priority class can never change its
// priority: Kueue reads the class of pods without a job once, a Workload of its own
// has no job that names one, and Kueue follows none where the pods'
// priorityClassName decides.
func keepsPriorityClass(t *tasks.Task) bool {
	if t.Kind == tasks.PodGroup || t.Kind == "Workload" {
		return true
	}
	if t.Main == nil {
		return false
	}
	ref := t.Main.Spec.PriorityClassRef
	return ref != nil && ref.Kind != kueue.WorkloadPriorityClassKind
}
