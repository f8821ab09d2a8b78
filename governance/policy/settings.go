package policy

import (
	"cmp"
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
		{"Task prioritization", func(s *v1alpha1.ClusterPolicySpec) string { return PrioritizationWords(s.TaskPrioritization) }},
		{"Idle compute", func(s *v1alpha1.ClusterPolicySpec) string { return IdleWords(s.IdleCompute.Strategy) }},
		{"Lend unallocated compute", func(s *v1alpha1.ClusterPolicySpec) string { return yes(s.IdleCompute.ShareUnallocated) }},
		{"Gang scheduling", func(s *v1alpha1.ClusterPolicySpec) string { return gang(&s.GangScheduling) }},
		{"Preemption loops", func(s *v1alpha1.ClusterPolicySpec) string { return LoopWords(s.PreemptionLoops) }},
		{"Enforcement", func(s *v1alpha1.ClusterPolicySpec) string { return EnforcementWords(s.Enforcement) }},
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
	parts := []string{"ready within " + cmp.Or(DurationWords(g.Timeout), "5m"), "recovery within " + recovery(g.RecoveryTimeout)}
	if g.BlockAdmission {
		parts = append(parts, "one task at a time")
	}
	limit := "without limit"
	switch n := again.BackoffLimitCount; {
	case n != nil && *n == 1:
		limit = "once"
	case n != nil:
		limit = fmt.Sprintf("at most %d times", *n)
	}
	parts = append(parts, fmt.Sprintf("requeued %s, %s, with pauses from %d to %d s", limit, strings.ToLower(OrderWords(again.Timestamp)),
		orDefault(again.BackoffBaseSeconds, backoffBase), orDefault(again.BackoffMaxSeconds, backoffMax)))
	return "On: " + strings.Join(parts, "; ")
}

func recovery(d *metav1.Duration) string {
	if d != nil && d.Duration == 0 {
		return "ever"
	}
	return cmp.Or(DurationWords(d), "5m")
}

// poolSettings lists the pools whose definition changes.
func poolSettings(before, after *v1alpha1.ClusterPolicySpec) []allocations.FieldChange {
	was, is := map[string]string{}, map[string]string{}
	if before != nil {
		for _, pool := range before.Pools {
			was[pool.Name] = MatchWords(pool.Match)
		}
	}
	for _, pool := range after.Pools {
		is[pool.Name] = MatchWords(pool.Match)
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
