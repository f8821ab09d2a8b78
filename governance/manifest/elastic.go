package manifest

import (
	"fmt"
	"regexp"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
)

var elasticJobName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// CheckElasticJobName returns why the CRD rejects the name of an ElasticJob; empty if it
// accepts it.
func CheckElasticJobName(name string) string {
	switch {
	case len(name) > v1alpha1.MaxElasticJobName:
		return fmt.Sprintf("has %d characters; the name of an elastic task has at most %d", len([]rune(name)), v1alpha1.MaxElasticJobName)
	case !elasticJobName.MatchString(name):
		return "use lower-case letters, digits and hyphens; start with a letter, and end with a letter or digit"
	}
	return ""
}

// CheckElasticPolicy returns what the CRD rejects in a policy. The paths are those of its
// fields, below path.
func CheckElasticPolicy(p *v1alpha1.ElasticPolicy, path string) (problems governance.FieldErrors) {
	report := func(field, format string, args ...any) {
		problems.Addf(document.Child(path, field), format, args...)
	}
	bound := func(field string, value, most int32) {
		if value < 0 || value > most {
			report(field, "must be a whole number of seconds from 0 to %d", most)
		}
	}
	bound("gracefulShutdownTimeoutInSeconds", p.GracefulShutdownTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("scalingTimeoutInSeconds", p.ScalingTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("faultyScaleDownTimeoutInSeconds", p.FaultyScaleDownTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("minStablePeriodSeconds", p.MinStablePeriodSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("backoffMaxSeconds", p.BackoffMaxSeconds, v1alpha1.MaxBackoffSeconds)
	if p.BackoffMaxSeconds < p.MinStablePeriodSeconds {
		report("backoffMaxSeconds", "must be at least minStablePeriodSeconds, %d", p.MinStablePeriodSeconds)
	}
	const pods = "must be a whole number from 1 to 10,000"
	valid := true
	if p.MinReplicas < 1 || p.MinReplicas > v1alpha1.MaxReplicas {
		report("minReplicas", pods)
		valid = false
	}
	switch {
	case p.MaxReplicas < 1 || p.MaxReplicas > v1alpha1.MaxReplicas:
		report("maxReplicas", pods)
		valid = false
	case valid && p.MaxReplicas < p.MinReplicas:
		report("maxReplicas", "is smaller than the minimum of %d pods", p.MinReplicas)
		valid = false
	}
	step, sizes := p.ReplicaIncrementStep, p.ReplicaDiscreteValues
	switch {
	case step != nil && len(sizes) > 0:
		report("replicaDiscreteValues", "give either a step or a list of sizes")
	case step == nil && len(sizes) == 0:
		report("replicaIncrementStep", "give a step, or a list of sizes")
	case step != nil:
		if problem := checkStep(*step, p.MinReplicas, p.MaxReplicas, valid); problem != "" {
			report("replicaIncrementStep", "%s", problem)
		}
	default:
		if problem := checkSizes(sizes, p.MinReplicas, p.MaxReplicas, valid); problem != "" {
			report("replicaDiscreteValues", "%s", problem)
		}
	}
	return problems
}

// checkStep returns why a step is rejected. comparable reports whether the bounds are
// valid.
func checkStep(step, least, most int32, comparable bool) string {
	switch growth := most - least; {
	case step < 1:
		return "must be a whole number from 1"
	case !comparable:
	case growth%step != 0:
		return fmt.Sprintf("steps of %d from %d pods do not reach %d; use %s", step, least, most, divisors(growth, step))
	case growth/step >= v1alpha1.MaxSizes:
		return fmt.Sprintf("gives %d sizes, and at most %d are allowed; use %s", growth/step+1, v1alpha1.MaxSizes, divisors(growth, step))
	}
	return ""
}

// divisors returns the allowed steps next to step, in words.
func divisors(growth, step int32) string {
	allowed := func(n int32) bool { return growth%n == 0 && growth/n < v1alpha1.MaxSizes }
	smaller, larger := min(step-1, growth), step+1
	for smaller > 0 && !allowed(smaller) {
		smaller--
	}
	for larger < growth && !allowed(larger) {
		larger++
	}
	switch {
	case smaller < 1:
		return fmt.Sprint(larger)
	case larger > growth:
		return fmt.Sprint(smaller)
	}
	return fmt.Sprintf("%d or %d", smaller, larger)
}

// checkSizes is checkStep for a list of sizes.
func checkSizes(sizes []int32, least, most int32, comparable bool) string {
	if len(sizes) > v1alpha1.MaxSizes {
		return fmt.Sprintf("has %d sizes; at most %d are allowed", len(sizes), v1alpha1.MaxSizes)
	}
	seen := map[int32]bool{}
	for _, size := range sizes {
		switch {
		case size < 1 || size > v1alpha1.MaxReplicas:
			return "each size must be a whole number from 1 to 10,000"
		case seen[size]:
			return fmt.Sprintf("contains %d twice", size)
		case comparable && (size < least || size > most):
			return fmt.Sprintf("%d is not from the minimum of %d to the maximum of %d pods", size, least, most)
		}
		seen[size] = true
	}
	switch {
	case !comparable:
	case !seen[least]:
		return fmt.Sprintf("must contain the minimum, %d", least)
	case !seen[most]:
		return fmt.Sprintf("must contain the maximum, %d", most)
	}
	return ""
}
