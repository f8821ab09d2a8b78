package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// AllowedPriorityClasses returns the priority classes that a task may name, the
// lowest first. policy applies to its namespace, nil for none: if it requires
// queues, only its own classes are allowed. The class of growth is of no task.
func AllowedPriorityClasses(ctx context.Context, reader client.Reader, policy *v1alpha1.ClusterPolicy) ([]explain.PriorityClass, error) {
	var list kueue.WorkloadPriorityClassList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list priority classes", err)
	}
	named := func(object string) bool {
		return policy == nil || policy.Spec.Enforcement != v1alpha1.RequireQueue || slices.ContainsFunc(policy.Spec.PriorityClasses, func(c v1alpha1.PriorityClass) bool {
			return desired.PriorityClassName(c.Name) == object
		})
	}
	var found []explain.PriorityClass
	for i := range list.Items {
		if c := &list.Items[i]; c.DeletionTimestamp == nil && c.Name != desired.GrowthClass && named(c.Name) {
			found = append(found, explain.PriorityClass{Name: c.Name, Priority: c.Value})
		}
	}
	slices.SortFunc(found, func(a, b explain.PriorityClass) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found, nil
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
