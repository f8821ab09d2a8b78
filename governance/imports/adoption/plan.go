package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Input is the state of the cluster that a plan is made for.
type Input struct {
	ClusterQueues   []kueue.ClusterQueue
	LocalQueues     []kueue.LocalQueue
	Cohorts         []kueue.Cohort
	Flavors         []kueue.ResourceFlavor
	PriorityClasses []kueue.WorkloadPriorityClass
	Nodes           []corev1.Node
	Allocations     []v1alpha1.ComputeAllocation
	Departments     []v1alpha1.Department
	Policy          *v1alpha1.ClusterPolicy // nil if there is none

	Naming desired.Naming
	Kueue  *kueueconfig.Current // nil if it is unknown
}

// Verdict is what Kuota can do with an existing object.
type Verdict string

// The verdicts.
const (
	Manage  Verdict = "Manage"  // an allocation or the policy describes it exactly
	Observe Verdict = "Observe" // Kuota can show it, and must not write it
	Refuse  Verdict = "Refuse"  // not even shown, until the reasons no longer apply
)

// Queue is the plan for one ClusterQueue that Kuota does not manage.
type Queue struct {
	Name    string // of the ClusterQueue
	Verdict Verdict
	Reasons []string // why it is not managed; empty for Manage
	Notes   []string // what stays outside of Kuota although it is managed

	// Allocation describes it; nil for Refuse, and if Team is set.
	Allocation *v1alpha1.ComputeAllocation
	// Departments are those to create before Allocation, each before those below it.
	Departments []*v1alpha1.Department
	// Team is the allocation that observes it already; empty for none.
	Team string
}

// PriorityClass is the plan for one WorkloadPriorityClass that Kuota does not
// manage. One that is not managed stays as it is, and tasks can use it.
type PriorityClass struct {
	Name    string
	Verdict Verdict // Manage or Observe
	Reason  string  // why it is not managed
}

// Plan is how the ClusterQueues of a cluster can be adopted.
type Plan struct {
	Queues          []Queue         // sorted by name
	PriorityClasses []PriorityClass // sorted by name; empty if there is a policy

	// Policy is to be created before the allocations; nil if there is one.
	Policy *v1alpha1.ClusterPolicy
	// KueueChanges are the lines of Kueue's configuration that Policy changes, after
	// which Kueue restarts; empty for none.
	KueueChanges string
	// PolicyProblem is why it is unknown what Policy changes in Kueue's configuration;
	// empty if it is known.
	PolicyProblem string
}

// Queue returns the plan for a ClusterQueue; false if it is managed already or does
// not exist.
func (p Plan) Queue(name string) (Queue, bool) {
	i := slices.IndexFunc(p.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		return Queue{}, false
	}
	return p.Queues[i], true
}

// WhyNotManaged returns why a ClusterQueue cannot be managed, as one text; empty if
// it can.
func (p Plan) WhyNotManaged(name string) string {
	q, _ := p.Queue(name)
	return strings.Join(q.Reasons, "; ")
}

// WhyNotManaged returns the same as that of NewPlan, and computes only this
// ClusterQueue.
func WhyNotManaged(in Input, name string) string {
	p := newPlanner(in)
	q := p.queues[name]
	if q == nil {
		return ""
	}
	p.addPools(slices.Sorted(maps.Keys(p.queues)))
	p.addResources(slices.Sorted(maps.Keys(p.queues)))
	p.planDepartments()
	return strings.Join(p.plan(q, map[string]bool{}).Reasons, "; ")
}

// NewPlan returns the plan for all ClusterQueues that Kuota does not manage.
func NewPlan(in Input) Plan {
	p := newPlanner(in)
	names := slices.Sorted(maps.Keys(p.queues))
	p.addPools(names)
	p.addResources(names)
	p.planDepartments()
	plan := Plan{}
	taken := map[string]bool{}
	for i := range in.Allocations {
		taken[in.Allocations[i].Name] = true
	}
	for _, name := range names {
		plan.Queues = append(plan.Queues, p.plan(p.queues[name], taken))
	}
	if in.Policy != nil {
		return plan
	}
	plan.PriorityClasses = p.addClasses()
	plan.Policy = p.policy
	p.describeKueue(&plan)
	return plan
}

// planner has what the plans of all ClusterQueues share.
type planner struct {
	Input
	queues  map[string]*kueue.ClusterQueue // those that Kuota does not manage
	locals  map[string][]*kueue.LocalQueue // by ClusterQueue, sorted by namespace and name
	users   map[string]map[string]bool     // ClusterQueues by the namespaces of their LocalQueues
	owners  map[string]string              // team by the namespace that Kuota manages
	flavors map[string]*kueue.ResourceFlavor
	teams   map[string]string // allocation that observes a ClusterQueue

	parents     map[string]string      // by cohort
	departments map[string]*Department // by nested cohort; nil until they are planned
	naming      desired.Naming         // with the departments

	cohort string                  // that Kuota manages, with those nested in it
	policy *v1alpha1.ClusterPolicy // the existing or the proposed one
	fresh  bool                    // there is neither a policy nor a managed allocation, so that pools can be proposed
	types  catalog.Catalog         // with the pools of policy
}

func newPlanner(in Input) *planner {
	p := &planner{Input: in, queues: map[string]*kueue.ClusterQueue{}, locals: map[string][]*kueue.LocalQueue{}, users: map[string]map[string]bool{}, owners: map[string]string{}, flavors: map[string]*kueue.ResourceFlavor{}, teams: map[string]string{}, policy: in.Policy}
	managed, fresh := map[string]bool{}, in.Policy == nil
	for i := range in.Allocations {
		a := &in.Allocations[i]
		if a.Spec.Observed() {
			p.teams[a.Spec.ClusterQueueName] = a.Name
			continue
		}
		managed[desired.ClusterQueueName(a, in.Naming)], fresh = true, false
		p.owners[desired.NamespaceName(a, in.Naming)] = a.Name
	}
	for i := range in.ClusterQueues {
		if q := &in.ClusterQueues[i]; !managed[q.Name] && q.Labels[desired.LabelManagedBy] != desired.ManagedBy {
			p.queues[q.Name] = q
		}
	}
	for i := range in.LocalQueues {
		l := &in.LocalQueues[i]
		queue := string(l.Spec.ClusterQueue)
		p.locals[queue] = append(p.locals[queue], l)
		if p.users[l.Namespace] == nil {
			p.users[l.Namespace] = map[string]bool{}
		}
		p.users[l.Namespace][queue] = true
	}
	for _, list := range p.locals {
		slices.SortFunc(list, func(a, b *kueue.LocalQueue) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		})
	}
	for i := range in.Flavors {
		p.flavors[in.Flavors[i].Name] = &in.Flavors[i]
	}
	p.fresh = fresh
	p.parents = map[string]string{}
	for i := range in.Cohorts {
		p.parents[in.Cohorts[i].Name] = string(in.Cohorts[i].Spec.ParentName)
	}
	p.cohort = in.Naming.Under(in.Policy).Cohort
	if fresh {
		p.policy = newPolicy()
		p.cohort = p.largestCohort()
		p.policy.Spec.CohortName = p.cohort
		if p.cohort == in.Naming.Cohort {
			p.policy.Spec.CohortName = ""
		}
	}
	p.types = p.catalog()
	p.naming = in.Naming.Under(p.policy).In(in.Departments)
	return p
}

// newPolicy returns a policy that changes nothing: tasks keep the priority of their
// class, no unallocated compute is lent, and no job is rejected.
func newPolicy() *v1alpha1.ClusterPolicy {
	policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{
		TaskPrioritization: v1alpha1.TaskRanking,
		IdleCompute:        v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFirstComeFirstServe},
		Enforcement:        v1alpha1.EnforcementNone,
		PreemptionLoops:    v1alpha1.WarnOfLoops,
	}}
	policy.Name = v1alpha1.ClusterPolicyName
	return policy
}

// catalog returns the catalog with the pools that the policy has applied, or that are
// proposed.
func (p *planner) catalog() catalog.Catalog {
	input := catalog.Input{Nodes: p.Nodes, InstanceTypeLabel: p.Naming.InstanceTypeLabel}
	switch {
	case p.Input.Policy != nil:
		input.Pools, input.ReportedTypes = p.Input.Policy.Status.Pools, p.Input.Policy.Status.ReportedTypes
	case p.policy != nil:
		input.Pools = p.policy.Spec.Pools
	}
	return catalog.New(input)
}

// levels returns the cohort in which a cohort is nested in the end, itself if in none, and how many
// levels it is below that. ok is false for a cycle.
func (p *planner) levels(cohort string) (root string, levels int, ok bool) {
	for ; p.parents[cohort] != ""; levels++ {
		if levels > len(p.parents) {
			return "", 0, false
		}
		cohort = p.parents[cohort]
	}
	return cohort, levels, true
}

// largestCohort returns the cohort with the most ClusterQueues in it and in those nested in it, of
// equal ones the first by name; that of the configuration if there is none.
func (p *planner) largestCohort() string {
	members := map[string]int{}
	for _, q := range p.queues {
		if root, _, ok := p.levels(string(q.Spec.CohortName)); ok && root != "" {
			members[root]++
		}
	}
	largest := p.Naming.Cohort
	if members[largest] > 0 {
		return largest
	}
	for _, cohort := range slices.Sorted(maps.Keys(members)) {
		if members[cohort] > members[largest] {
			largest = cohort
		}
	}
	return largest
}

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
