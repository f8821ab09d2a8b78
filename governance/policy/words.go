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

// What the pages call the values of a policy. A value that has no words, since
// somebody typed it, is left as it is.

// PrioritizationWords says who comes first.
func PrioritizationWords(p v1alpha1.TaskPrioritization) string {
	return wordsOr(p, map[v1alpha1.TaskPrioritization]string{
		v1alpha1.TaskRanking: "By priority class", v1alpha1.FirstComeFirstServe: "First come, first served",
	})
}

// IdleWords says who gets what stands idle.
func IdleWords(s v1alpha1.IdleComputeStrategy) string {
	return wordsOr(s, map[v1alpha1.IdleComputeStrategy]string{
		v1alpha1.IdleFairShare: "Fair share", v1alpha1.IdleFirstComeFirstServe: "First come, first served",
	})
}

// EnforcementWords says what is refused.
func EnforcementWords(e v1alpha1.Enforcement) string {
	return wordsOr(e, map[v1alpha1.Enforcement]string{v1alpha1.RequireQueue: "Require a queue", v1alpha1.EnforcementNone: "Off"})
}

// LoopWords describes what Kuota does about preemption loops.
func LoopWords(l v1alpha1.PreemptionLoops) string {
	return wordsOr(l, map[v1alpha1.PreemptionLoops]string{"": "Break them", v1alpha1.BreakLoops: "Break them", v1alpha1.WarnOfLoops: "Warn only"})
}

// OrderWords says where a requeued task stands, by requeuing.timestamp.
func OrderWords(timestamp string) string {
	return wordsOr(timestamp, map[string]string{"Eviction": "Behind others", "Creation": "Where it was"})
}

func wordsOr[T ~string](value T, words map[T]string) string {
	if text, ok := words[value]; ok {
		return text
	}
	return string(value)
}

// DurationWords writes a time span as people type it: 5m rather than 5m0s;
// nothing for none.
func DurationWords(d *metav1.Duration) string {
	if d == nil {
		return ""
	}
	text := d.Duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MatchWords says what a pool holds: all H100 nodes.
func MatchWords(m v1alpha1.PoolMatch) string {
	switch {
	case m.Accelerator != "":
		return "all " + m.Accelerator + " nodes"
	case m.InstanceFamily != "":
		return "family " + m.InstanceFamily
	case len(m.InstanceTypes) > 0:
		return "types " + strings.Join(m.InstanceTypes, ", ")
	}
	return "nodes labeled " + LabelWords(m.NodeLabels)
}

// LabelWords lists labels by key: rack=4, zone=a.
func LabelWords(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ", ")
}

// SpecChanges lists all that differs between two specs, as people call it.
// before is nil for a new policy.
func SpecChanges(before, after *v1alpha1.ClusterPolicySpec) []allocations.FieldChange {
	was, is := map[string]string{}, map[string]string{}
	var names []string
	note := func(in map[string]string, classes []v1alpha1.PriorityClass) {
		for _, class := range classes {
			if !slices.Contains(names, class.Name) {
				names = append(names, class.Name)
			}
			in[class.Name] = classWords(class)
		}
	}
	note(is, after.PriorityClasses)
	if before != nil {
		note(was, before.PriorityClasses)
	}
	changes := settings(before, after)
	for _, name := range names {
		if was[name] != is[name] {
			changes = append(changes, allocations.FieldChange{Path: "Priority class " + name, Before: was[name], After: is[name]})
		}
	}
	return changes
}

func classWords(class v1alpha1.PriorityClass) string {
	weight := int32(0)
	if class.Weight != nil {
		weight = *class.Weight
	}
	text := fmt.Sprintf("weight %d", weight)
	if class.Description != "" {
		text += ", " + class.Description
	}
	return text
}
