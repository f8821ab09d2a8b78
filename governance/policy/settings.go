package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settings lists the values that change beside the classes, as people call
// them. before is nil for a new policy.
func settings(before, after *v1alpha1.ClusterPolicySpec) []allocations.FieldChange {
	var changes []allocations.FieldChange
	for _, setting := range []struct {
		path  string
		value func(*v1alpha1.ClusterPolicySpec) string
	}{
		{"Task prioritization", func(s *v1alpha1.ClusterPolicySpec) string { return prioritization(s.TaskPrioritization) }},
		{"Idle compute", func(s *v1alpha1.ClusterPolicySpec) string { return idle(s.IdleCompute.Strategy) }},
		{"Unallocated compute is shared", func(s *v1alpha1.ClusterPolicySpec) string { return yes(s.IdleCompute.ShareUnallocated) }},
		{"Gang scheduling", func(s *v1alpha1.ClusterPolicySpec) string { return gang(&s.GangScheduling) }},
		{"Enforcement", func(s *v1alpha1.ClusterPolicySpec) string { return enforcement(s.Enforcement) }},
	} {
		change := allocations.FieldChange{Path: setting.path, After: setting.value(after)}
		if before != nil {
			change.Before = setting.value(before)
		}
		if change.Before != change.After {
			changes = append(changes, change)
		}
	}
	return append(changes, poolSettings(before, after)...)
}

func prioritization(p v1alpha1.TaskPrioritization) string {
	if p == v1alpha1.TaskRanking {
		return "By the weight of their class"
	}
	return "First come, first served"
}

func idle(s v1alpha1.IdleComputeStrategy) string {
	if s == v1alpha1.IdleFirstComeFirstServe {
		return "First come, first served"
	}
	return "Shared by the weights of the teams"
}

func enforcement(e v1alpha1.Enforcement) string {
	if e == v1alpha1.EnforcementNone {
		return "None"
	}
	return "Jobs need a queue"
}

func yes(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}

// gang tells the times too, where they count.
func gang(g *v1alpha1.GangScheduling) string {
	if !g.Enabled {
		return "Off"
	}
	again := &g.Requeuing
	parts := []string{"ready within " + duration(g.Timeout), "recovers within " + duration(g.RecoveryTimeout)}
	if g.BlockAdmission {
		parts = append(parts, "one task at a time")
	}
	limit := "without limit"
	if again.BackoffLimitCount != nil {
		limit = fmt.Sprintf("at most %d times", *again.BackoffLimitCount)
	}
	parts = append(parts, fmt.Sprintf("tried again %s, after %d to %d s, ordered by %s", limit,
		orDefault(again.BackoffBaseSeconds, backoffBase), orDefault(again.BackoffMaxSeconds, backoffMax), strings.ToLower(again.Timestamp)))
	return "On: " + strings.Join(parts, "; ")
}

func duration(d *metav1.Duration) string {
	if d == nil {
		return "5m0s"
	}
	return d.Duration.String()
}

// poolSettings lists the pools whose definition changes.
func poolSettings(before, after *v1alpha1.ClusterPolicySpec) []allocations.FieldChange {
	was, is := map[string]string{}, map[string]string{}
	if before != nil {
		for _, pool := range before.Pools {
			was[pool.Name] = matches(pool.Match)
		}
	}
	for _, pool := range after.Pools {
		is[pool.Name] = matches(pool.Match)
	}
	names := slices.Collect(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var changes []allocations.FieldChange
	for _, name := range names {
		if was[name] != is[name] {
			changes = append(changes, allocations.FieldChange{Path: "Pool " + name, Before: was[name], After: is[name]})
		}
	}
	return changes
}

func matches(m v1alpha1.PoolMatch) string {
	switch {
	case m.Accelerator != "":
		return "accelerator " + m.Accelerator
	case m.InstanceFamily != "":
		return "family " + m.InstanceFamily
	case len(m.InstanceTypes) > 0:
		return "types " + strings.Join(m.InstanceTypes, ", ")
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(m.NodeLabels)) {
		labels = append(labels, key+"="+m.NodeLabels[key])
	}
	return "nodes with " + strings.Join(labels, ", ")
}
