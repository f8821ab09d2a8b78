package manifest

import (
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
)

// BoundPolicy takes out of the spec of a policy what its schema refuses, and
// tells of it.
func SanitizePolicy(spec *v1alpha1.ClusterPolicySpec, path string) (wrong document.Problems) {
	b := bounder{&wrong}
	at := func(name string) string { return document.Child(path, name) }
	oneOf(b, &spec.TaskPrioritization, at("taskPrioritization"), v1alpha1.FirstComeFirstServe, v1alpha1.TaskRanking)
	spec.PriorityClasses = b.classes(spec.PriorityClasses, at("priorityClasses"))
	oneOf(b, &spec.IdleCompute.Strategy, at("idleCompute.strategy"), v1alpha1.IdleFairShare, v1alpha1.IdleFirstComeFirstServe)
	oneOf(b, &spec.PreemptionLoops, at("preemptionLoops"), v1alpha1.BreakLoops, v1alpha1.WarnOfLoops)
	oneOf(b, &spec.Enforcement, at("enforcement"), v1alpha1.RequireQueue, v1alpha1.EnforcementNone)
	b.gang(&spec.GangScheduling, at("gangScheduling"))
	spec.Pools = b.pools(spec.Pools, at("pools"))
	return wrong
}

func (b bounder) classes(classes []v1alpha1.PriorityClass, path string) (kept []v1alpha1.PriorityClass) {
	seen := map[string]bool{}
	for i, class := range classes {
		at := document.Index(path, i)
		object := strings.TrimSuffix(class.Name, "-priority") // both come to the same object
		switch {
		case len(kept) == v1alpha1.MaxPriorityClasses:
			b.tell(path, "has %d classes; a policy has at most %d, and the first %d were imported", len(classes), v1alpha1.MaxPriorityClasses, v1alpha1.MaxPriorityClasses)
			return kept
		case len(class.Name) > v1alpha1.MaxClassName || !v1alpha1.ValidName(class.Name):
			b.tell(at, "%s is not a valid class name: use up to 40 lower-case letters, digits and hyphens; ignored", document.Quote(class.Name))
		case seen[object]:
			b.tell(at, "%s is the same class as an earlier one; ignored", document.Quote(class.Name))
		case class.Weight == nil:
			b.tell(at, "class %s has no weight; ignored", class.Name)
		case *class.Weight < 0 || *class.Weight > v1alpha1.MaxWeight:
			b.tell(at, "the weight of class %s is not from 0 to 100; ignored", class.Name)
		default:
			b.text(&class.Description, document.Child(at, "description"), v1alpha1.MaxDescription)
			seen[object] = true
			kept = append(kept, class)
		}
	}
	return kept
}

// gang leaves out times and counts that gang scheduling cannot have.
func (b bounder) gang(gang *v1alpha1.GangScheduling, path string) {
	at := func(name string) string { return document.Child(path, name) }
	if t := gang.Timeout; t != nil && (t.Duration <= 0 || t.Duration%time.Second != 0) {
		b.tell(at("timeout"), "must be whole seconds above 0; 5m is used")
		gang.Timeout = nil
	}
	if t := gang.RecoveryTimeout; t != nil && (t.Duration < 0 || t.Duration%time.Second != 0) {
		b.tell(at("recoveryTimeout"), "must be whole seconds, 0 or more; 5m is used")
		gang.RecoveryTimeout = nil
	}
	again := &gang.Requeuing
	oneOf(b, &again.Timestamp, at("requeuing.timestamp"), "Eviction", "Creation")
	for _, count := range []struct {
		name  string
		value **int32
	}{{"backoffLimitCount", &again.BackoffLimitCount}, {"backoffBaseSeconds", &again.BackoffBaseSeconds}, {"backoffMaxSeconds", &again.BackoffMaxSeconds}} {
		if *count.value != nil && **count.value < 0 {
			b.tell(at("requeuing."+count.name), "cannot be negative; ignored")
			*count.value = nil
		}
	}
}

func (b bounder) pools(pools []v1alpha1.Pool, path string) (kept []v1alpha1.Pool) {
	seen := map[string]bool{}
	for i, pool := range pools {
		at := document.Index(path, i)
		switch {
		case len(kept) == v1alpha1.MaxPools:
			b.tell(path, "has %d pools; a policy has at most %d, and the first %d were imported", len(pools), v1alpha1.MaxPools, v1alpha1.MaxPools)
			return kept
		case len(pool.Name) > v1alpha1.MaxPoolName || !v1alpha1.ValidName(pool.Name):
			b.tell(at, "%s is not a valid pool name: use up to 40 lower-case letters, digits and hyphens; ignored", document.Quote(pool.Name))
		case seen[pool.Name]:
			b.tell(at, "pool %s is listed twice; ignored", pool.Name)
		case !matches(pool.Match):
			b.tell(at, "pool %s must match by exactly one valid accelerator, instanceFamily, instanceTypes or nodeLabels; ignored", pool.Name)
		default:
			seen[pool.Name] = true
			kept = append(kept, pool)
		}
	}
	return kept
}

// matches tells whether exactly one thing is matched by, within bounds.
func matches(m v1alpha1.PoolMatch) bool {
	given := 0
	for _, is := range []bool{m.Accelerator != "", m.InstanceFamily != "", len(m.InstanceTypes) > 0, len(m.NodeLabels) > 0} {
		if is {
			given++
		}
	}
	unique := map[string]bool{}
	for _, t := range m.InstanceTypes {
		if t == "" || len(t) > v1alpha1.MaxLabelValue || unique[t] {
			return false
		}
		unique[t] = true
	}
	return given == 1 && len(m.Accelerator) <= v1alpha1.MaxLabelValue && len(m.InstanceFamily) <= v1alpha1.MaxLabelValue && len(m.InstanceTypes) <= v1alpha1.MaxPoolTypes && len(m.NodeLabels) <= v1alpha1.MaxPoolLabels
}
