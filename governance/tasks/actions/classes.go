package actions

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// classFixed returns why the priority class of a task can never change; empty if it
// can.
func classFixed(t *tasks.Task) string {
	ref := t.Main.Spec.PriorityClassRef
	switch {
	case t.Kind == tasks.PodGroup:
		return "Kueue reads the class of pods without a job from their labels when they are created, and not again. Submit them again with another class."
	case len(objects(t)) == 0 || objects(t)[0].kind == workloadKind:
		return "This Workload has no job to copy a class from."
	case ref != nil && ref.Kind != kueue.WorkloadPriorityClassKind:
		return fmt.Sprintf("Its priority comes from priorityClassName %s of its pods, so Kueue ignores its class. Submit it again without priorityClassName.", ref.Name)
	}
	return ""
}

// admittedWithoutClass reports whether a task was admitted without a priority class.
// Kueue refuses to add one to a job that is not suspended, and the API server to a
// Workload with quota (0.19).
func admittedWithoutClass(t *tasks.Task) bool {
	return slices.ContainsFunc(t.Parts, func(w *kueue.Workload) bool {
		return w.Spec.PriorityClassRef == nil && w.Status.Admission != nil && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	})
}

// classes returns the priority classes for tasks of a team, the lowest first.
func classes(ctx context.Context, reader client.Reader, team string) ([]explain.PriorityClass, error) {
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return nil, err
	}
	if team == "" {
		policy = nil
	}
	return queries.AllowedPriorityClasses(ctx, reader, policy)
}
