package policy

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/kueueconfig"

	"k8s.io/utils/ptr"
)

// Validate returns all errors of a policy, by itself and in the cluster as it is
// now, with paths from spec. It is pure.
func Validate(policy *v1alpha1.ClusterPolicy, state State) []governance.FieldError {
	spec := &policy.Spec
	var errs fieldErrors
	errs.oneOf("spec.taskPrioritization", string(spec.TaskPrioritization), string(v1alpha1.TaskRanking), string(v1alpha1.FirstComeFirstServe))
	errs.classes(spec.PriorityClasses)
	errs.oneOf("spec.idleCompute.strategy", string(spec.IdleCompute.Strategy), string(v1alpha1.IdleFairShare), string(v1alpha1.IdleFirstComeFirstServe))
	errs.gang(&spec.GangScheduling)
	errs.usage(spec.AdmissionFairSharing)
	errs.prices(spec.Prices)
	errs.alerts(spec.Alerts)
	errs.oneOf("spec.preemptionLoops", string(spec.PreemptionLoops), string(v1alpha1.BreakLoops), string(v1alpha1.WarnOfLoops))
	errs.oneOf("spec.enforcement", string(spec.Enforcement), string(v1alpha1.RequireQueue), string(v1alpha1.EnforcementNone))
	return append(errs.FieldErrors, ValidatePools(spec.Pools, state)...)
}

// ValidatePools returns the errors of pools, by themselves and with the quota of
// teams: no change may take a pool from the quota of a team. The controller
// keeps the applied pools for the same reasons. It is pure.
func ValidatePools(pools []v1alpha1.Pool, state State) []governance.FieldError {
	var errs fieldErrors
	if errs.pools(pools, state) && len(errs.FieldErrors) == 0 {
		return orphanedQuota(pools, state) // only if the pools are valid: errors of invalid ones would mislead
	}
	return errs.FieldErrors
}

// fieldErrors collects the errors of a policy.
type fieldErrors struct{ governance.FieldErrors }

// oneOf requires one of two values; an empty value takes the default.
func (errs *fieldErrors) oneOf(path, value, a, b string) {
	if value != "" && value != a && value != b {
		errs.Addf(path, "choose %s or %s", a, b)
	}
}

func (errs *fieldErrors) classes(classes []v1alpha1.PriorityClass) {
	if len(classes) > v1alpha1.MaxPriorityClasses {
		errs.Addf("spec.priorityClasses", "has %d classes; a policy has at most %d", len(classes), v1alpha1.MaxPriorityClasses)
	}
	seen := map[string]string{} // class by the name of its object
	for i, class := range classes {
		at := fmt.Sprintf("spec.priorityClasses[%d]", i)
		object := desired.PriorityClassName(class.Name)
		other, twice := seen[object]
		switch problem := checkName(class.Name); {
		case problem != "":
			errs.Addf(at+".name", "%s", problem)
		case twice && other == class.Name:
			errs.Addf(at+".name", "class %s is listed twice; remove one", class.Name)
		case twice:
			errs.Addf(at+".name", "%s and %s would both be the object %s; rename one", other, class.Name, object)
		}
		seen[object] = class.Name
		switch {
		case class.Weight == nil:
			errs.Addf(at+".weight", "enter a weight from 0 (lowest) to %d (highest)", v1alpha1.MaxWeight)
		case *class.Weight < 0 || *class.Weight > v1alpha1.MaxWeight:
			errs.Addf(at+".weight", "must be a whole number from 0 (lowest) to %d (highest)", v1alpha1.MaxWeight)
		}
		if n := utf8.RuneCountInString(class.Description); n > v1alpha1.MaxDescription {
			errs.Addf(at+".description", "has %d characters; a description has at most %d", n, v1alpha1.MaxDescription)
		}
		errs.timeLimits(class, at)
	}
}

func (errs *fieldErrors) timeLimits(class v1alpha1.PriorityClass, at string) {
	inBounds := func(path string, seconds *int32) bool {
		if seconds != nil && (*seconds < 1 || *seconds > v1alpha1.MaxTimeLimitSeconds) {
			errs.Addf(path, "must be from 1s to %dh", v1alpha1.MaxTimeLimitSeconds/3600)
			return false
		}
		return seconds != nil
	}
	byDefault := inBounds(at+".defaultTimeLimitSeconds", class.DefaultTimeLimitSeconds)
	atMost := inBounds(at+".maximumTimeLimitSeconds", class.MaximumTimeLimitSeconds)
	if byDefault && atMost && *class.DefaultTimeLimitSeconds > *class.MaximumTimeLimitSeconds {
		errs.Addf(at+".defaultTimeLimitSeconds", "must be at most the longest time limit, %s", describe.Seconds(class.MaximumTimeLimitSeconds))
	}
}

func (errs *fieldErrors) prices(prices *v1alpha1.Prices) {
	problems := prices.Problems()
	for _, i := range slices.Sorted(maps.Keys(problems)) {
		if i < 0 {
			errs.Addf("spec.prices.currency", "%s", problems[i])
		} else {
			errs.Addf("spec.prices.hourly", "price %d: %s", i+1, problems[i])
		}
	}
}

func (errs *fieldErrors) alerts(a *v1alpha1.Alerts) {
	rules, receivers := a.Problems()
	for path, problems := range map[string]map[int]string{"spec.alerts.rules": rules, "spec.alerts.receivers": receivers} {
		for _, i := range slices.Sorted(maps.Keys(problems)) {
			if i < 0 {
				errs.Addf(path, "%s", problems[i])
			} else {
				errs.Addf(path, "number %d: %s", i+1, problems[i])
			}
		}
	}
}

func checkName(name string) string {
	switch {
	case name == "":
		return "enter a name"
	case len(name) > v1alpha1.MaxClassName:
		return fmt.Sprintf("has %d characters; a name has at most %d", utf8.RuneCountInString(name), v1alpha1.MaxClassName)
	case !v1alpha1.ValidName(name):
		return "use lower-case letters, digits and hyphens; start and end with a letter or digit"
	}
	return ""
}

func (errs *fieldErrors) usage(usage *v1alpha1.AdmissionFairSharing) {
	if usage == nil {
		return
	}
	const at = "spec.admissionFairSharing"
	if t := usage.UsageHalfLifeTime; t != nil && t.Duration <= 0 {
		errs.Addf(at+".usageHalfLifeTime", "must be longer than 0s, such as 24h: with 0s Kueue ignores usage")
	}
	if t := usage.UsageSamplingInterval; t != nil && t.Duration <= 0 {
		errs.Addf(at+".usageSamplingInterval", "must be longer than 0s, such as 5m")
	}
	if n := len(usage.ResourceWeights); n > v1alpha1.MaxResourceWeights {
		errs.Addf(at+".resourceWeights", "has %d resources; a policy has at most %d", n, v1alpha1.MaxResourceWeights)
	}
	weights := kueueconfig.ResourceWeights(usage)
	for name, weight := range usage.ResourceWeights {
		if weight < 0 || weight > v1alpha1.MaxResourceWeight {
			errs.Addf(at+".resourceWeights", "the weight of %s must be a whole number from 0 to %d", name, v1alpha1.MaxResourceWeight)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(weights)), func(w int) bool { return w > 0 }) {
		errs.Addf(at+".resourceWeights", "give at least one resource a weight above 0")
	}
}

// gang validates times even while gang scheduling is off: they are kept, and
// enabling it must not fail for them.
func (errs *fieldErrors) gang(gang *v1alpha1.GangScheduling) {
	if t := gang.Timeout; t != nil && t.Duration <= 0 {
		errs.Addf("spec.gangScheduling.timeout", "must be longer than 0s, such as 5m")
	}
	if t := gang.RecoveryTimeout; t != nil && t.Duration < 0 {
		errs.Addf("spec.gangScheduling.recoveryTimeout", "must be 0s or longer; 0s means no limit")
	}
	again := &gang.Requeuing
	const at = "spec.gangScheduling.requeuing"
	if !slices.Contains([]string{"", "Eviction", "Creation"}, again.Timestamp) {
		errs.Addf(at+".timestamp", "choose Eviction or Creation")
	}
	notNegative := func(path string, value *int32) bool {
		if value != nil && *value < 0 {
			errs.Addf(path, "must be a whole number from 0")
			return false
		}
		return true
	}
	notNegative(at+".backoffLimitCount", again.BackoffLimitCount)
	base := notNegative(at+".backoffBaseSeconds", again.BackoffBaseSeconds)
	most := notNegative(at+".backoffMaxSeconds", again.BackoffMaxSeconds)
	first, last := ptr.Deref(again.BackoffBaseSeconds, v1alpha1.DefaultBackoffBaseSeconds), ptr.Deref(again.BackoffMaxSeconds, v1alpha1.DefaultBackoffMaxSeconds)
	if base && most && first > last {
		errs.Addf(at+".backoffMaxSeconds", "must be at least the base backoff, %d seconds", first)
	}
}
