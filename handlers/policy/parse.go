package policy

import (
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/forms"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parse converts the form to a spec with the fields of its parts. It omits invalid values and
// returns their errors, with paths by the rows of the form.
func (f *policyForm) parse() (v1alpha1.ClusterPolicySpec, []governance.FieldError) {
	var wrong governance.FieldErrors
	var spec v1alpha1.ClusterPolicySpec
	for _, p := range f.parts {
		p.parse(f, &spec, &wrong)
	}
	return spec, wrong
}

func (f *policyForm) parseCluster(spec *v1alpha1.ClusterPolicySpec, wrong *governance.FieldErrors) {
	spec.NumericPriorities, spec.IdleCompute.ShareUnallocated = f.numbers, f.share
	parseChoice(wrong, &spec.TaskPrioritization, f.prioritization, "spec.taskPrioritization", "choose first come, first served, or priority classes",
		v1alpha1.FirstComeFirstServe, v1alpha1.TaskRanking)
	parseChoice(wrong, &spec.IdleCompute.Strategy, f.idle, "spec.idleCompute.strategy", "choose fair share, or first come, first served",
		v1alpha1.IdleFairShare, v1alpha1.IdleFirstComeFirstServe)
	parseChoice(wrong, &spec.PreemptionLoops, f.loops, "spec.preemptionLoops", "choose whether preemption loops are broken",
		v1alpha1.BreakLoops, v1alpha1.WarnOfLoops)
	parseChoice(wrong, &spec.Enforcement, f.enforcement, "spec.enforcement", "choose whether jobs without a queue are refused",
		v1alpha1.RequireQueue, v1alpha1.EnforcementNone)
	for i, row := range f.classes {
		path := fmt.Sprintf("spec.priorityClasses[%d].", i)
		if row.empty() {
			continue
		}
		class := v1alpha1.PriorityClass{Name: row.name, Description: row.description}
		if row.weight != "" {
			weight, problem := forms.ParseWhole(row.weight, 0, v1alpha1.MaxWeight)
			wrong.Add(path+"weight", problem)
			if n := int32(weight); problem == "" {
				class.Weight = &n
			}
		}
		class.DefaultTimeLimitSeconds = parseTimeLimit(wrong, path+"defaultTimeLimitSeconds", row.limit)
		class.MaximumTimeLimitSeconds = parseTimeLimit(wrong, path+"maximumTimeLimitSeconds", row.longest)
		spec.PriorityClasses = append(spec.PriorityClasses, class)
	}
	spec.GangScheduling = f.parseGang(wrong)
	spec.AdmissionFairSharing = f.parseUsage(wrong)
}

func (f *policyForm) parsePools(spec *v1alpha1.ClusterPolicySpec, wrong *governance.FieldErrors) {
	for i, row := range f.pools {
		if row.empty() {
			continue
		}
		pool := v1alpha1.Pool{Name: row.name}
		if row.value != "" {
			var problem string
			pool.Match, problem = parseMatch(row.match, row.value)
			wrong.Add(fmt.Sprintf("spec.pools[%d].match", i), problem)
		}
		spec.Pools = append(spec.Pools, pool)
	}
	for _, row := range f.resources {
		if !row.empty() {
			listed := v1alpha1.ListedResource{Name: row.name, Label: row.label, Unit: v1alpha1.ResourceUnit(row.unit)}
			if row.unit == unitAccelerators {
				listed.Unit, listed.Accelerator = v1alpha1.UnitCount, true
			}
			spec.Resources = append(spec.Resources, listed)
		}
	}
	for i, row := range f.over {
		if !row.empty() {
			limit := v1alpha1.OverAllocationLimit{Pool: row.pool}
			if row.percent != "" {
				percent, problem := forms.ParseWhole(row.percent, 0, v1alpha1.MaxOverPercent)
				wrong.Add(fmt.Sprintf("%s[%d].percent", overPath, i), problem)
				limit.Percent = new(int32(percent))
			}
			spec.OverAllocationLimits = append(spec.OverAllocationLimits, limit)
		}
	}
}

// parseChoice sets a field to one of these values; to the first for an invalid input.
func parseChoice[T ~string](wrong *governance.FieldErrors, field *T, text, path, problem string, values ...T) {
	if *field = T(text); !slices.Contains(values, *field) {
		wrong.Add(path, problem)
		*field = values[0]
	}
}

// parseTimeLimit parses a time limit in seconds; nil for an empty or invalid input.
func parseTimeLimit(wrong *governance.FieldErrors, path, text string) *int32 {
	if text == "" {
		return nil
	}
	seconds, problem := forms.ParseTimeLimit(text)
	wrong.Add(path, problem)
	if problem != "" {
		return nil
	}
	return &seconds
}

// parseGang parses gang scheduling. Its values are saved also while it is off. An
// empty input gets its default.
func (f *policyForm) parseGang(wrong *governance.FieldErrors) v1alpha1.GangScheduling {
	const path = "spec.gangScheduling."
	gang := v1alpha1.GangScheduling{
		Enabled: f.gang, BlockAdmission: f.block,
		Timeout: &metav1.Duration{Duration: 5 * time.Minute}, RecoveryTimeout: &metav1.Duration{Duration: 5 * time.Minute},
	}
	if f.timeout != "" {
		timeout, problem := forms.ParseDuration(f.timeout)
		if problem == "" && timeout.Duration == 0 {
			problem = "no pod is ready at once; give a time such as 5m"
		}
		wrong.Add(path+"timeout", problem)
		gang.Timeout = timeout
	}
	if f.recovery != "" {
		recovery, problem := forms.ParseDuration(f.recovery)
		wrong.Add(path+"recoveryTimeout", problem)
		gang.RecoveryTimeout = recovery
	}
	parseChoice(wrong, &gang.Requeuing.Timestamp, f.order, path+"requeuing.timestamp", "choose the position of a requeued task in its queue",
		requeueEviction, requeueCreation)
	base, most := int32(60), int32(3600)
	var problem string
	gang.Requeuing.BackoffLimitCount, problem = forms.ParseCount(f.retries, nil)
	wrong.Add(path+"requeuing.backoffLimitCount", problem)
	gang.Requeuing.BackoffBaseSeconds, problem = forms.ParseCount(f.backoffBase, &base)
	wrong.Add(path+"requeuing.backoffBaseSeconds", problem)
	gang.Requeuing.BackoffMaxSeconds, problem = forms.ParseCount(f.backoffMost, &most)
	wrong.Add(path+"requeuing.backoffMaxSeconds", problem)
	return gang
}

// parseUsage parses how the usage of shares is counted; nil if the policy does not set
// it. An empty input gets its default.
func (f *policyForm) parseUsage(wrong *governance.FieldErrors) *v1alpha1.AdmissionFairSharing {
	if !f.usage {
		return nil
	}
	const path = "spec.admissionFairSharing."
	usage := &v1alpha1.AdmissionFairSharing{
		UsageHalfLifeTime:     &metav1.Duration{Duration: v1alpha1.DefaultUsageHalfLifeTime},
		UsageSamplingInterval: &metav1.Duration{Duration: v1alpha1.DefaultUsageSamplingInterval},
	}
	for name, input := range map[string]struct {
		text string
		into **metav1.Duration
	}{"usageHalfLifeTime": {f.halfLife, &usage.UsageHalfLifeTime}, "usageSamplingInterval": {f.interval, &usage.UsageSamplingInterval}} {
		if input.text != "" {
			d, problem := forms.ParseDuration(input.text)
			wrong.Add(path+name, problem)
			*input.into = d
		}
	}
	var problem string
	usage.ResourceWeights, problem = parseWeights(f.usageWeights)
	wrong.Add(path+"resourceWeights", problem)
	return usage
}

// missing returns errors for the values that a review needs and the form lacks, with
// paths by the rows of the form.
func (f *policyForm) missing() []governance.FieldError {
	var wrong governance.FieldErrors
	need := func(text, path, problem string) {
		if text == "" {
			wrong.Add(path, problem)
		}
	}
	rows := func(p *part, n int, list string, check func(i int, path string)) {
		for i := 0; f.has(p) && i < n; i++ {
			check(i, fmt.Sprintf("%s[%d].", list, i))
		}
	}
	rows(clusterPart, len(f.classes), classesPath, func(i int, path string) {
		if row := f.classes[i]; !row.empty() {
			need(row.name, path+"name", "give the class a name, as tasks will call it")
			need(row.weight, path+"weight", "give a weight from 0, the last, to 100, the first")
		}
	})
	rows(poolsPart, len(f.pools), poolsPath, func(i int, path string) {
		if row := f.pools[i]; !row.empty() {
			need(row.name, path+"name", "give the pool a name, as quota will call it")
			need(row.value, path+"match", "say which nodes the pool has")
		}
	})
	rows(poolsPart, len(f.resources), resourcesPath, func(i int, path string) {
		if row := f.resources[i]; !row.empty() {
			need(row.name, path+"name", "name a resource, such as example.com/license")
			need(row.label, path+"label", "give the word for several of them, such as licenses")
		}
	})
	rows(poolsPart, len(f.over), overPath, func(i int, path string) {
		if row := f.over[i]; !row.empty() {
			need(row.percent, path+"percent", "give a percentage: 0 for no more than the nodes have, or 20")
		}
	})
	rows(pricesPart, len(f.prices), pricesPath, func(i int, path string) {
		if row := f.prices[i]; !row.empty() {
			need(row.pool, path+"pool", "choose a pool")
			need(row.resource, path+"resource", "choose a resource")
			need(row.from, path+"from", "give the day from which the price holds")
			need(row.own, path+"own", "give the price of an hour, such as 2.50")
		}
	})
	rows(alertsPart, len(f.rules), rulesPath, func(i int, path string) {
		if row := f.rules[i]; i >= len(alerts.Rules) && !row.empty() {
			need(row.class, path+"priorityClass", "choose a priority class")
			if row.on != "" {
				need(row.limit, path+"after", "give a time, such as 10m")
			}
		}
	})
	rows(alertsPart, len(f.receivers), receiversPath, func(i int, path string) {
		if row := f.receivers[i]; !row.empty() {
			need(row.name, path+"name", "give the receiver a name")
			need(row.secret, path+"secretName", "name the Secret with its address")
		}
	})
	return wrong
}
