package manifest

import (
	"cmp"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
)

// SanitizePolicy removes the values from the spec of a policy that its CRD does
// not allow, and reports them.
func SanitizePolicy(spec *v1alpha1.ClusterPolicySpec, path string) (problems governance.FieldErrors) {
	s := sanitizer{&problems}
	at := func(name string) string { return document.Child(path, name) }
	oneOf(s, &spec.TaskPrioritization, at("taskPrioritization"), v1alpha1.FirstComeFirstServe, v1alpha1.TaskRanking)
	spec.PriorityClasses = s.classes(spec.PriorityClasses, at("priorityClasses"))
	oneOf(s, &spec.IdleCompute.Strategy, at("idleCompute.strategy"), v1alpha1.IdleFairShare, v1alpha1.IdleFirstComeFirstServe)
	oneOf(s, &spec.PreemptionLoops, at("preemptionLoops"), v1alpha1.BreakLoops, v1alpha1.WarnOfLoops)
	oneOf(s, &spec.Enforcement, at("enforcement"), v1alpha1.RequireQueue, v1alpha1.EnforcementNone)
	s.gang(&spec.GangScheduling, at("gangScheduling"))
	s.usage(spec.AdmissionFairSharing, at("admissionFairSharing"))
	spec.Pools = s.pools(spec.Pools, at("pools"))
	spec.Prices = s.prices(spec.Prices, at("prices"))
	spec.Alerts = s.alerts(spec.Alerts, at("alerts"))
	return problems
}

func (s sanitizer) classes(classes []v1alpha1.PriorityClass, path string) (kept []v1alpha1.PriorityClass) {
	seen := map[string]bool{}
	for i, class := range classes {
		at := document.Index(path, i)
		object := strings.TrimSuffix(class.Name, "-priority") // both names get the same WorkloadPriorityClass
		switch {
		case len(kept) == v1alpha1.MaxPriorityClasses:
			s.report(path, "has %d classes; a policy has at most %d, and the first %d were imported", len(classes), v1alpha1.MaxPriorityClasses, v1alpha1.MaxPriorityClasses)
			return kept
		case len(class.Name) > v1alpha1.MaxClassName || !v1alpha1.ValidName(class.Name):
			s.report(at, "%s is not a valid class name: use up to 40 lower-case letters, digits and hyphens; ignored", document.Quote(class.Name))
		case seen[object]:
			s.report(at, "%s is the same class as an earlier one; ignored", document.Quote(class.Name))
		case class.Weight == nil:
			s.report(at, "class %s has no weight; ignored", class.Name)
		case *class.Weight < 0 || *class.Weight > v1alpha1.MaxWeight:
			s.report(at, "the weight of class %s is not from 0 to 100; ignored", class.Name)
		default:
			s.text(&class.Description, document.Child(at, "description"), v1alpha1.MaxDescription)
			s.timeLimits(&class, at)
			seen[object] = true
			kept = append(kept, class)
		}
	}
	return kept
}

// timeLimits removes invalid time limits. A default above the maximum is removed rather
// than the maximum, which users rely on.
func (s sanitizer) timeLimits(class *v1alpha1.PriorityClass, path string) {
	for name, limit := range map[string]**int32{"defaultTimeLimitSeconds": &class.DefaultTimeLimitSeconds, "maximumTimeLimitSeconds": &class.MaximumTimeLimitSeconds} {
		if n := *limit; n != nil && (*n < 1 || *n > v1alpha1.MaxTimeLimitSeconds) {
			s.report(document.Child(path, name), "must be from 1 to %d seconds; ignored", v1alpha1.MaxTimeLimitSeconds)
			*limit = nil
		}
	}
	if d, m := class.DefaultTimeLimitSeconds, class.MaximumTimeLimitSeconds; d != nil && m != nil && *d > *m {
		s.report(document.Child(path, "defaultTimeLimitSeconds"), "is larger than maximumTimeLimitSeconds; ignored")
		class.DefaultTimeLimitSeconds = nil
	}
}

// gang removes invalid timeouts and counts of gang scheduling.
func (s sanitizer) gang(gang *v1alpha1.GangScheduling, path string) {
	at := func(name string) string { return document.Child(path, name) }
	if t := gang.Timeout; t != nil && (t.Duration <= 0 || t.Duration%time.Second != 0) {
		s.report(at("timeout"), "must be whole seconds above 0; 5m is used")
		gang.Timeout = nil
	}
	if t := gang.RecoveryTimeout; t != nil && (t.Duration < 0 || t.Duration%time.Second != 0) {
		s.report(at("recoveryTimeout"), "must be whole seconds, 0 or more; 5m is used")
		gang.RecoveryTimeout = nil
	}
	requeuing := &gang.Requeuing
	oneOf(s, &requeuing.Timestamp, at("requeuing.timestamp"), "Eviction", "Creation")
	for _, count := range []struct {
		name  string
		value **int32
	}{{"backoffLimitCount", &requeuing.BackoffLimitCount}, {"backoffBaseSeconds", &requeuing.BackoffBaseSeconds}, {"backoffMaxSeconds", &requeuing.BackoffMaxSeconds}} {
		if *count.value != nil && **count.value < 0 {
			s.report(at("requeuing."+count.name), "cannot be negative; ignored")
			*count.value = nil
		}
	}
}

// usage removes invalid times and weights of admission fair sharing; nil is none.
func (s sanitizer) usage(usage *v1alpha1.AdmissionFairSharing, path string) {
	if usage == nil {
		return
	}
	at := func(name string) string { return document.Child(path, name) }
	if t := usage.UsageHalfLifeTime; t != nil && (t.Duration <= 0 || t.Duration%time.Second != 0) {
		s.report(at("usageHalfLifeTime"), "must be whole seconds above 0; 24h is used")
		usage.UsageHalfLifeTime = nil
	}
	if t := usage.UsageSamplingInterval; t != nil && (t.Duration <= 0 || t.Duration%time.Second != 0) {
		s.report(at("usageSamplingInterval"), "must be whole seconds above 0; 5m is used")
		usage.UsageSamplingInterval = nil
	}
	if n := len(usage.ResourceWeights); n > v1alpha1.MaxResourceWeights {
		s.report(at("resourceWeights"), "has %d resources; a policy has at most %d; ignored", n, v1alpha1.MaxResourceWeights)
		usage.ResourceWeights = nil
	}
	for name, weight := range usage.ResourceWeights {
		if weight < 0 || weight > v1alpha1.MaxResourceWeight {
			s.report(at("resourceWeights"), "the weight of %s is not from 0 to %d; ignored", document.Quote(name), v1alpha1.MaxResourceWeight)
			delete(usage.ResourceWeights, name)
		}
	}
	if len(usage.ResourceWeights) == 0 {
		usage.ResourceWeights = nil
	}
}

func (s sanitizer) pools(pools []v1alpha1.Pool, path string) (kept []v1alpha1.Pool) {
	seen := map[string]bool{}
	for i, pool := range pools {
		at := document.Index(path, i)
		switch {
		case len(kept) == v1alpha1.MaxPools:
			s.report(path, "has %d pools; a policy has at most %d, and the first %d were imported", len(pools), v1alpha1.MaxPools, v1alpha1.MaxPools)
			return kept
		case len(pool.Name) > v1alpha1.MaxPoolName || !v1alpha1.ValidName(pool.Name):
			s.report(at, "%s is not a valid pool name: use up to 40 lower-case letters, digits and hyphens; ignored", document.Quote(pool.Name))
		case seen[pool.Name]:
			s.report(at, "pool %s is listed twice; ignored", pool.Name)
		case !validMatch(pool.Match):
			s.report(at, "pool %s must match by exactly one valid accelerator, instanceFamily, instanceTypes or nodeLabels; ignored", pool.Name)
		default:
			seen[pool.Name] = true
			kept = append(kept, pool)
		}
	}
	return kept
}

// prices removes invalid prices, and all if the currency is invalid.
func (s sanitizer) prices(prices *v1alpha1.Prices, path string) *v1alpha1.Prices {
	problems := prices.Problems()
	if problem := problems[-1]; problem != "" {
		s.report(path, "%s; ignored", problem)
		return nil
	}
	if prices == nil {
		return nil
	}
	var kept []v1alpha1.HourlyPrice
	for i, price := range prices.Hourly {
		if problem := problems[i]; problem != "" {
			s.report(document.Index(document.Child(path, "hourly"), i), "%s; ignored", problem)
		} else {
			kept = append(kept, price)
		}
	}
	return &v1alpha1.Prices{Currency: prices.Currency, Hourly: kept}
}

// alerts removes invalid rules and receivers.
func (s sanitizer) alerts(a *v1alpha1.Alerts, path string) *v1alpha1.Alerts {
	if a == nil {
		return nil
	}
	rules, receivers := a.Problems()
	var kept v1alpha1.Alerts
	for i, rule := range a.Rules {
		if problem := rules[i]; problem != "" || i >= v1alpha1.MaxAlertRules {
			s.report(document.Index(document.Child(path, "rules"), i), "%s; ignored", cmp.Or(problem, rules[-1]))
		} else {
			kept.Rules = append(kept.Rules, rule)
		}
	}
	for i, receiver := range a.Receivers {
		if problem := receivers[i]; problem != "" || i >= v1alpha1.MaxAlertReceivers {
			s.report(document.Index(document.Child(path, "receivers"), i), "%s; ignored", cmp.Or(problem, receivers[-1]))
		} else {
			kept.Receivers = append(kept.Receivers, receiver)
		}
	}
	return &kept
}

// validMatch reports whether m has exactly one criterion, within bounds.
func validMatch(m v1alpha1.PoolMatch) bool {
	criteria := 0
	for _, set := range []bool{m.Accelerator != "", m.InstanceFamily != "", len(m.InstanceTypes) > 0, len(m.NodeLabels) > 0} {
		if set {
			criteria++
		}
	}
	unique := map[string]bool{}
	for _, t := range m.InstanceTypes {
		if t == "" || len(t) > v1alpha1.MaxLabelValue || unique[t] {
			return false
		}
		unique[t] = true
	}
	return criteria == 1 && len(m.Accelerator) <= v1alpha1.MaxLabelValue && len(m.InstanceFamily) <= v1alpha1.MaxLabelValue && len(m.InstanceTypes) <= v1alpha1.MaxPoolTypes && len(m.NodeLabels) <= v1alpha1.MaxPoolLabels
}
