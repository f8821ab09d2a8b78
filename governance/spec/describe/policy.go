package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PolicyChanges returns all differences between two specs. before is nil for a
// new policy.
func PolicyChanges(before, after *v1alpha1.ClusterPolicySpec) []change.Field {
	old := ptr.Deref(before, v1alpha1.ClusterPolicySpec{}).PriorityClasses
	pair := func(class v1alpha1.PriorityClass) (name, words string) { return class.Name, priorityClass(class) }
	return append(PolicySettings(before, after), ordered("Priority class ", old, after.PriorityClasses, pair)...)
}

// PolicySettings returns the differences between two specs outside the priority
// classes. before is nil for a new policy.
func PolicySettings(before, after *v1alpha1.ClusterPolicySpec) []change.Field {
	changes := differences(before, after, []setting[v1alpha1.ClusterPolicySpec]{
		{"Task prioritization", func(s *v1alpha1.ClusterPolicySpec) string { return Prioritization(s.TaskPrioritization) }},
		{"Priority by number", func(s *v1alpha1.ClusterPolicySpec) string { return yesNo(s.NumericPriorities) }},
		{"Cohort", func(s *v1alpha1.ClusterPolicySpec) string { return s.CohortName }},
		{"Idle compute", func(s *v1alpha1.ClusterPolicySpec) string { return IdleCompute(s.IdleCompute.Strategy) }},
		{"Lend unallocated compute", func(s *v1alpha1.ClusterPolicySpec) string { return yesNo(s.IdleCompute.ShareUnallocated) }},
		{"Gang scheduling", func(s *v1alpha1.ClusterPolicySpec) string { return gangScheduling(&s.GangScheduling) }},
		{"Usage of shares", func(s *v1alpha1.ClusterPolicySpec) string { return Usage(s.AdmissionFairSharing) }},
		{"Preemption loops", func(s *v1alpha1.ClusterPolicySpec) string { return PreemptionLoops(s.PreemptionLoops) }},
		{"Enforcement", func(s *v1alpha1.ClusterPolicySpec) string { return Enforcement(s.Enforcement) }},
		{"Currency", func(s *v1alpha1.ClusterPolicySpec) string { return ptr.Deref(s.Prices, v1alpha1.Prices{}).Currency }},
	})
	if before == nil {
		before = &v1alpha1.ClusterPolicySpec{}
	}
	return slices.Concat(changes,
		named("Pool ", pools(before.Pools), pools(after.Pools)),
		named("Resource ", listedResources(before.Resources), listedResources(after.Resources)),
		named("Quota over capacity in ", overAllocation(before.OverAllocationLimits), overAllocation(after.OverAllocationLimits)),
		named("Price of ", prices(before.Prices), prices(after.Prices)),
		named("Alert rule ", lines(alertRules(before.Alerts)), lines(alertRules(after.Alerts))),
		named("Alert receiver ", lines(alertReceivers(before.Alerts)), lines(alertReceivers(after.Alerts))))
}

// lines returns the second words by the first.
func lines(pairs [][2]string) map[string]string {
	words := map[string]string{}
	for _, pair := range pairs {
		words[pair[0]] = pair[1]
	}
	return words
}

// pools returns what each pool matches, by name.
func pools(pools []v1alpha1.Pool) map[string]string {
	words := map[string]string{}
	for _, pool := range pools {
		words[pool.Name] = PoolMatch(pool.Match)
	}
	return words
}

// listedResources returns how pages name each resource.
func listedResources(listed []v1alpha1.ListedResource) map[string]string {
	words := map[string]string{}
	for _, r := range listed {
		words[r.Name] = r.Label
		switch {
		case r.Accelerator:
			words[r.Name] += ", accelerators"
		case r.Unit == v1alpha1.UnitBytes:
			words[r.Name] += ", in bytes"
		}
	}
	return words
}

// overAllocation returns the limit of each pool.
func overAllocation(limits []v1alpha1.OverAllocationLimit) map[string]string {
	words := map[string]string{}
	for _, limit := range limits {
		words[cmp.Or(strings.Trim(limit.Pool, v1alpha1.AllPools), "all other pools")] = fmt.Sprintf("at most %d %%", ptr.Deref(limit.Percent, 0))
	}
	return words
}

// alertRules returns what each rule is about, and its limit.
func alertRules(a *v1alpha1.Alerts) (pairs [][2]string) {
	if a == nil {
		return nil
	}
	for _, r := range a.Rules {
		limit := "off"
		switch {
		case r.After != nil:
			limit = Duration(r.After)
		case r.Count != nil:
			limit = strconv.Itoa(int(*r.Count))
		}
		pairs = append(pairs, [2]string{strings.TrimSpace(r.Rule + " " + r.PriorityClass), limit})
	}
	return pairs
}

// alertReceivers returns the name of each receiver, and what else it has.
func alertReceivers(a *v1alpha1.Alerts) (pairs [][2]string) {
	if a == nil {
		return nil
	}
	for _, r := range a.Receivers {
		words := []string{string(cmp.Or(r.Type, v1alpha1.WebhookReceiver)), r.SecretName}
		if len(r.To) > 0 {
			words = append(words, "to="+strings.Join(r.To, ","))
		}
		if r.Team != "" {
			words = append(words, "team="+r.Team)
		}
		if r.Department != "" {
			words = append(words, "department="+r.Department)
		}
		if r.Severity != "" {
			words = append(words, "severity="+r.Severity)
		}
		if r.Notices != "" {
			words = append(words, "notices="+string(r.Notices))
		}
		pairs = append(pairs, [2]string{r.Name, strings.Join(words, " ")})
	}
	return pairs
}

// ordered returns the items that are added, changed or removed, by the name and the words of
// each: those of the new list in its order, then those that are removed.
func ordered[Item any](prefix string, before, after []Item, pair func(Item) (name, words string)) (changes []change.Field) {
	old, updated := map[string]string{}, map[string]string{}
	for _, item := range before {
		name, words := pair(item)
		old[name] = words
	}
	for _, item := range after {
		name, words := pair(item)
		updated[name] = words
		if old[name] != words {
			changes = append(changes, change.Field{Path: prefix + name, Before: old[name], After: words})
		}
	}
	for _, item := range before {
		name, words := pair(item)
		if _, kept := updated[name]; !kept {
			changes = append(changes, change.Field{Path: prefix + name, Before: words})
		}
	}
	return changes
}

// named returns the differences of values by name.
func named(prefix string, old, updated map[string]string) []change.Field {
	changes := change.Between(old, updated)
	for i := range changes {
		changes[i].Path = prefix + changes[i].Path
	}
	return changes
}

// prices returns the words for each price, by what it is the price of.
func prices(p *v1alpha1.Prices) map[string]string {
	words := map[string]string{}
	if p == nil {
		return words
	}
	for _, price := range p.Hourly {
		text := price.Own + " an hour"
		if price.Borrowed != "" && price.Borrowed != price.Own {
			text += ", borrowed " + price.Borrowed
		}
		words[price.Resource+" in "+price.Pool+" from "+price.From] = text
	}
	return words
}

// Prioritization returns the words for a task prioritization.
func Prioritization(p v1alpha1.TaskPrioritization) string {
	return wordsOr(p, map[v1alpha1.TaskPrioritization]string{
		v1alpha1.TaskRanking: "By priority class", v1alpha1.FirstComeFirstServe: "First come, first served",
	})
}

// IdleCompute returns the words for a strategy for idle compute.
func IdleCompute(s v1alpha1.IdleComputeStrategy) string {
	return wordsOr(s, map[v1alpha1.IdleComputeStrategy]string{
		v1alpha1.IdleFairShare: "Fair share", v1alpha1.IdleFirstComeFirstServe: "First come, first served",
	})
}

// Enforcement returns the words for an enforcement.
func Enforcement(e v1alpha1.Enforcement) string {
	return wordsOr(e, map[v1alpha1.Enforcement]string{v1alpha1.RequireQueue: "Require a queue", v1alpha1.EnforcementNone: "Off"})
}

// PreemptionLoops returns the words for the handling of preemption loops.
func PreemptionLoops(l v1alpha1.PreemptionLoops) string {
	return wordsOr(l, map[v1alpha1.PreemptionLoops]string{"": "Break them", v1alpha1.BreakLoops: "Break them", v1alpha1.WarnOfLoops: "Warn only"})
}

// RequeuingOrder returns the words for the queue position of a requeued task, by
// requeuing.timestamp.
func RequeuingOrder(timestamp string) string {
	return wordsOr(timestamp, map[string]string{"Eviction": "Behind others", "Creation": "Where it was"})
}

func wordsOr[T ~string](value T, words map[T]string) string {
	if text, ok := words[value]; ok {
		return text
	}
	return string(value)
}

// Duration returns a duration without zero units, such as 5m instead of 5m0s;
// empty for nil.
func Duration(d *metav1.Duration) string {
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

// Seconds returns a number of seconds as Duration does, such as 1h30m; empty for nil.
func Seconds(n *int32) string {
	if n == nil {
		return ""
	}
	return Duration(&metav1.Duration{Duration: time.Duration(*n) * time.Second})
}

// PoolMatch returns the nodes of a pool, such as "all H100 nodes".
func PoolMatch(m v1alpha1.PoolMatch) string {
	switch {
	case m.Accelerator != "":
		return "all " + m.Accelerator + " nodes"
	case m.InstanceFamily != "":
		return "family " + m.InstanceFamily
	case len(m.InstanceTypes) > 0:
		return "types " + strings.Join(m.InstanceTypes, ", ")
	}
	return "nodes labeled " + Labels(m.NodeLabels)
}

// Labels returns labels sorted by key, such as "rack=4, zone=a".
func Labels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ", ")
}

// gangScheduling includes the times only while gang scheduling is on.
func gangScheduling(g *v1alpha1.GangScheduling) string {
	if !g.Enabled {
		return "Off"
	}
	requeuing := &g.Requeuing
	parts := []string{"ready within " + cmp.Or(Duration(g.Timeout), "5m"), "recovery within " + recoveryTimeout(g.RecoveryTimeout)}
	if g.BlockAdmission {
		parts = append(parts, "one task at a time")
	}
	limit := "without limit"
	switch n := requeuing.BackoffLimitCount; {
	case n != nil && *n == 1:
		limit = "once"
	case n != nil:
		limit = fmt.Sprintf("at most %d times", *n)
	}
	parts = append(parts, fmt.Sprintf("requeued %s, %s, with pauses from %d to %d s", limit, strings.ToLower(RequeuingOrder(requeuing.Timestamp)),
		ptr.Deref(requeuing.BackoffBaseSeconds, v1alpha1.DefaultBackoffBaseSeconds), ptr.Deref(requeuing.BackoffMaxSeconds, v1alpha1.DefaultBackoffMaxSeconds)))
	return "On: " + strings.Join(parts, "; ")
}

// Usage returns how the usage of shares is counted; "Not set" for nil.
func Usage(a *v1alpha1.AdmissionFairSharing) string {
	if a == nil {
		return "Not set"
	}
	text := fmt.Sprintf("half-life %s, sampled every %s", cmp.Or(Duration(a.UsageHalfLifeTime), "24h"), cmp.Or(Duration(a.UsageSamplingInterval), "5m"))
	if weights := ResourceWeights(a.ResourceWeights); weights != "" {
		text += ", weights " + weights
	}
	return text
}

// ResourceWeights returns weights sorted by resource, such as "cpu=0, nvidia.com/gpu=1".
func ResourceWeights(weights map[string]v1alpha1.ResourceWeight) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", name, weights[name]))
	}
	return strings.Join(pairs, ", ")
}

func recoveryTimeout(d *metav1.Duration) string {
	if d != nil && d.Duration == 0 {
		return "ever"
	}
	return cmp.Or(Duration(d), "5m")
}

func priorityClass(class v1alpha1.PriorityClass) string {
	text := fmt.Sprintf("weight %d", ptr.Deref(class.Weight, 0))
	if limits := TimeLimits(class); limits != "" {
		text += ", time limit " + limits
	}
	if class.Description != "" {
		text += ", " + class.Description
	}
	return text
}

// TimeLimits returns the time limits of a class, such as "1h by default, at most 2h";
// empty for none.
func TimeLimits(class v1alpha1.PriorityClass) string {
	var parts []string
	if n := class.DefaultTimeLimitSeconds; n != nil {
		parts = append(parts, Seconds(n)+" by default")
	}
	if n := class.MaximumTimeLimitSeconds; n != nil {
		parts = append(parts, "at most "+Seconds(n))
	}
	return strings.Join(parts, ", ")
}

// TimeLimitChanges returns the classes of after whose time limits differ from before.
func TimeLimitChanges(before, after []v1alpha1.PriorityClass) (changes []change.Field) {
	old := map[string]string{}
	for _, class := range before {
		old[class.Name] = TimeLimits(class)
	}
	for _, class := range after {
		if limits := TimeLimits(class); limits != old[class.Name] {
			changes = append(changes, change.Field{Path: "Time limit of class " + class.Name, Before: cmp.Or(old[class.Name], "none"), After: cmp.Or(limits, "none")})
		}
	}
	return changes
}
