package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/desired"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// classSuffix is the suffix of the names of the policy's WorkloadPriorityClasses.
const classSuffix = "-priority"

// addClasses adds the priority classes that a policy can describe to the proposed
// policy, and returns the plan for each.
func (p *planner) addClasses() (plans []PriorityClass) {
	if p.policy == nil {
		p.policy = newPolicy() // beside allocations that are managed already
	}
	sorted := slices.SortedFunc(slices.Values(p.PriorityClasses), func(a, b kueue.WorkloadPriorityClass) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for i := range sorted {
		class := &sorted[i]
		if class.Labels[desired.LabelManagedBy] == desired.ManagedBy {
			continue
		}
		plan := PriorityClass{Name: class.Name, Verdict: Observe}
		name, value := strings.TrimSuffix(class.Name, classSuffix), class.Value
		switch {
		case !strings.HasSuffix(class.Name, classSuffix):
			plan.Reason = fmt.Sprintf("the names of the policy's priority classes end in %s", classSuffix)
		case len(name) > v1alpha1.MaxClassName || !v1alpha1.ValidName(name):
			plan.Reason = fmt.Sprintf("the name of a priority class has up to %d lower-case letters, digits and hyphens", v1alpha1.MaxClassName)
		case value < 0 || value > v1alpha1.MaxWeight:
			plan.Reason = fmt.Sprintf("its value is %d, and the weight of a priority class is from 0 to %d", value, v1alpha1.MaxWeight)
		case utf8.RuneCountInString(class.Description) > v1alpha1.MaxDescription:
			plan.Reason = fmt.Sprintf("its description has more than %d characters", v1alpha1.MaxDescription)
		case len(p.policy.Spec.PriorityClasses) == v1alpha1.MaxPriorityClasses:
			plan.Reason = fmt.Sprintf("a policy has at most %d priority classes", v1alpha1.MaxPriorityClasses)
		default:
			plan.Verdict = Manage
			p.policy.Spec.PriorityClasses = append(p.policy.Spec.PriorityClasses, v1alpha1.PriorityClass{Name: name, Weight: &value, Description: class.Description})
		}
		plans = append(plans, plan)
	}
	return plans
}

// describeKueue sets the parts of the proposed policy that describe Kueue's
// configuration, and what the policy would change there.
func (p *planner) describeKueue(plan *Plan) {
	if p.Kueue == nil {
		plan.PolicyProblem = "Kueue's configuration cannot be read."
		return
	}
	strategy, gang, err := kueueconfig.Describe(p.Kueue.Text)
	if err == nil {
		plan.Policy.Spec.IdleCompute.Strategy, plan.Policy.Spec.GangScheduling = strategy, gang
		var changed kueueconfig.Desired
		if changed, err = kueueconfig.ForPolicy(*p.Kueue, &plan.Policy.Spec); err == nil {
			plan.KueueChanges = changed.Patch
			return
		}
	}
	plan.PolicyProblem = kueueconfig.ErrorMessage(err)
}
