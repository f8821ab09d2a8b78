package adoption

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// plan returns the plan for one ClusterQueue. taken are the names of allocations in
// use; it adds that of the plan.
func (p *planner) plan(q *kueue.ClusterQueue, taken map[string]bool) Queue {
	plan := Queue{Name: q.Name, Verdict: Refuse, Team: p.teams[q.Name]}
	switch locals := p.locals[q.Name]; {
	case q.DeletionTimestamp != nil:
		plan.Reasons = []string{"it is being deleted"}
		return plan
	case len(locals) == 0:
		plan.Reasons = []string{"no LocalQueue uses it, so that it has no namespace: create a LocalQueue in the namespace of the team"}
		return plan
	}
	team := teamName(q.Name, taken)
	plan.Reasons = p.structure(q)
	var allocation *v1alpha1.ComputeAllocation
	if len(plan.Reasons) == 0 {
		allocation, plan.Reasons = p.describe(q, team)
	}
	plan.Verdict = Manage
	if len(plan.Reasons) > 0 {
		plan.Verdict, allocation = Observe, p.observe(q, team)
	} else {
		plan.Notes = p.notes(q)
		for cohort := string(q.Spec.CohortName); cohort != p.cohort && cohort != ""; cohort = p.parents[cohort] {
			if d := p.departments[cohort].Department; d != nil {
				plan.Departments = append([]*v1alpha1.Department{d}, plan.Departments...)
				plan.Notes = append(plan.Notes, fmt.Sprintf("Cohort %s becomes department %s", cohort, d.Name))
			}
		}
	}
	if plan.Team != "" {
		return plan
	}
	if allocation.Name != q.Name {
		allocation.Spec.DisplayName = q.Name[:min(len(q.Name), v1alpha1.MaxDisplayName)]
	}
	plan.Allocation = allocation
	taken[team] = true
	return plan
}

// structure returns why no allocation can describe a ClusterQueue, whatever its
// quota.
func (p *planner) structure(q *kueue.ClusterQueue) (reasons []string) {
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	spec := &q.Spec
	if checks := spec.AdmissionChecksStrategy; checks != nil && len(checks.AdmissionChecks) > 0 {
		var names []string
		for _, check := range checks.AdmissionChecks {
			names = append(names, string(check.Name))
		}
		add("it has admission checks (%s)", strings.Join(names, ", "))
	}
	if len(spec.ResourceGroups) > 1 {
		add("it has %d resource groups, and the quota of a team is in one", len(spec.ResourceGroups))
	}
	if spec.ConcurrentAdmissionPolicy != nil {
		add("it admits the same workload in several flavors at once (concurrentAdmissionPolicy)")
	}
	if spec.AdmissionScope != nil {
		add("it uses admission fair sharing (admissionScope)")
	}
	if pre := spec.Preemption; pre != nil {
		if pre.WithinClusterQueue == kueue.PreemptionPolicyLowerOrNewerEqualPriority {
			add("preemption within the queue is LowerOrNewerEqualPriority; Kuota knows LowerPriority and Never")
		}
		if pre.BorrowWithinCohort != nil && pre.BorrowWithinCohort.MaxPriorityThreshold != nil {
			add("preemption while borrowing has a maxPriorityThreshold")
		}
	}
	if w := spec.FairSharing; w != nil && w.Weight != nil {
		if n := int64(resources.AmountFromQuantity("", *w.Weight)); w.Weight.CmpInt64(n) != 0 || n > v1alpha1.MaxWeight {
			add("its fair-share weight %s is not a whole number from 0 to %d", w.Weight, v1alpha1.MaxWeight)
		}
	}
	reasons = append(reasons, ownerReasons(q)...)
	for _, l := range p.locals[q.Name] {
		reasons = append(reasons, ownerReasons(l)...)
	}
	reasons = append(reasons, p.cohortReasons(q)...)
	return append(reasons, p.namespaceReasons(q)...)
}

// ownerReasons returns why an object cannot be managed: its owner would revert Kuota's
// labels and changes.
func ownerReasons(object metav1.Object) []string {
	name := object.GetName()
	if m, managed := gitops.ManagerOf(object); managed {
		return []string{fmt.Sprintf("%s is managed by %s, which would revert changes; remove it from the repository without pruning it", name, m)}
	}
	if by := object.GetLabels()[desired.LabelManagedBy]; by != "" && by != desired.ManagedBy {
		return []string{fmt.Sprintf("%s is managed by %s, by its label %s; remove it from there first", name, by, desired.LabelManagedBy)}
	}
	return nil
}

func (p *planner) cohortReasons(q *kueue.ClusterQueue) []string {
	cohort := string(q.Spec.CohortName)
	root, levels, ok := p.levels(cohort)
	switch {
	case cohort == "" || cohort == p.cohort && levels == 0:
		return nil
	case !ok:
		return []string{fmt.Sprintf("cohort %s is nested in itself", cohort)}
	case p.parents[p.cohort] != "":
		return []string{fmt.Sprintf("cohort %s, which Kuota manages, is nested in cohort %s", p.cohort, p.parents[p.cohort])}
	case root != p.cohort:
		return []string{fmt.Sprintf("it is in cohort %s; Kuota manages one cohort, %s, and those nested in it", cohort, p.cohort)}
	case levels > v1alpha1.MaxDepartmentLevels:
		return []string{fmt.Sprintf("cohort %s is nested in %d levels; departments have at most %d", cohort, levels, v1alpha1.MaxDepartmentLevels)}
	case p.departments == nil:
		return nil // not planned yet
	}
	return p.departments[cohort].Reasons
}

// namespaceReasons returns why the LocalQueues of a ClusterQueue are not those of one
// team.
func (p *planner) namespaceReasons(q *kueue.ClusterQueue) []string {
	namespaces := p.namespaces(q.Name)
	if len(namespaces) == 0 {
		return nil // plan refuses it
	}
	if len(namespaces) > 1 {
		return []string{fmt.Sprintf("LocalQueues in several namespaces use it (%s); a team has one namespace", strings.Join(namespaces, ", "))}
	}
	namespace := namespaces[0]
	if problem := quota.CheckNamespaceName(namespace); problem != "" {
		return []string{"its LocalQueue is in namespace " + namespace + ", which is reserved for the cluster"}
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(p.users[namespace])), func(name string) bool { return name == q.Name })
	if len(others) > 0 {
		return []string{fmt.Sprintf("namespace %s also has LocalQueues of ClusterQueue %s; a team has a namespace of its own", namespace, strings.Join(others, ", "))}
	}
	if team := p.owners[namespace]; team != "" {
		return []string{fmt.Sprintf("namespace %s belongs to team %s", namespace, team)}
	}
	return nil
}

// namespaces returns the namespaces of the LocalQueues of a ClusterQueue, sorted.
func (p *planner) namespaces(queue string) (names []string) {
	for _, l := range p.locals[queue] {
		names = append(names, l.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// describe returns the allocation that describes a ClusterQueue, or why none does.
func (p *planner) describe(q *kueue.ClusterQueue, team string) (*v1alpha1.ComputeAllocation, []string) {
	local := p.locals[q.Name][0]
	a := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{
		ClusterQueueName: q.Name, LocalQueueName: local.Name, Namespace: local.Namespace,
		CohortName: new(string), FairShareWeight: 1,
		Preemption: preemptionOf(q.Spec.Preemption),
	}}
	a.Name = team
	if a.Spec.Department = p.departmentOf(string(q.Spec.CohortName)); a.Spec.Department != "" {
		a.Spec.CohortName = nil
	} else {
		*a.Spec.CohortName = string(q.Spec.CohortName)
	}
	if w := q.Spec.FairSharing; w != nil && w.Weight != nil {
		a.Spec.FairShareWeight = int32(min(resources.AmountFromQuantity("", *w.Weight), v1alpha1.MaxWeight))
	}
	if q.Spec.QueueingStrategy == kueue.StrictFIFO {
		a.Spec.QueueingStrategy = string(kueue.StrictFIFO)
	}
	if stop := q.Spec.StopPolicy; stop != nil {
		a.Spec.Activation = map[kueue.StopPolicy]v1alpha1.Activation{kueue.Hold: v1alpha1.Hold, kueue.HoldAndDrain: v1alpha1.Drain}[*stop]
	}
	if reasons := p.describeQuota(q, &a.Spec); len(reasons) > 0 {
		return nil, reasons
	}
	copied := a.Spec.DeepCopy() // which the CRD would reject where this changes it
	if problems := manifest.SanitizeSpec(copied, "spec"); len(problems) > 0 {
		return nil, []string{problems[0].Path + " " + problems[0].Message}
	}
	objects, errs := desired.Build(a, p.types, p.naming, desired.RankingOf(p.Input.Policy))
	if len(errs) > 0 {
		var reasons []string
		for _, e := range errs {
			reasons = append(reasons, e.Message)
		}
		return nil, reasons
	}
	return a, p.compare(q, local, objects)
}

// compare returns what an allocation would change in existing objects.
func (p *planner) compare(q *kueue.ClusterQueue, local *kueue.LocalQueue, objects desired.Objects) (reasons []string) {
	changed, err := change.Applied(q, objects.ClusterQueue)
	inLocal, err2 := change.Applied(local, objects.LocalQueue)
	if err != nil || err2 != nil {
		return []string{"it cannot be compared with an allocation"}
	}
	for _, field := range append(changed, inLocal...) {
		reasons = append(reasons, fmt.Sprintf("%s is %s, and an allocation would set %s", field.Path, cmp.Or(field.Before, "not set"), cmp.Or(field.After, "none")))
	}
	for _, f := range objects.Flavors {
		flavor := p.flavors[*f.GetName()]
		if flavor.Labels[desired.LabelManagedBy] != desired.ManagedBy && !objects.UsesFlavor(flavor.Name, flavor.Spec.NodeLabels) {
			reasons = append(reasons, fmt.Sprintf("ResourceFlavor %s selects other nodes than pool %s", flavor.Name, flavor.Name))
		}
	}
	return reasons
}

func preemptionOf(p *kueue.ClusterQueuePreemption) v1alpha1.Preemption {
	out := v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever, ReclaimWithinCohort: string(kueue.PreemptionPolicyNever), BorrowWithinCohort: string(kueue.BorrowWithinCohortPolicyNever)}
	if p == nil {
		return out
	}
	if p.WithinClusterQueue == kueue.PreemptionPolicyLowerPriority {
		out.WithinTeam = v1alpha1.PreemptLowerPriority
	}
	out.ReclaimWithinCohort = cmp.Or(string(p.ReclaimWithinCohort), out.ReclaimWithinCohort)
	if p.BorrowWithinCohort != nil {
		out.BorrowWithinCohort = cmp.Or(string(p.BorrowWithinCohort.Policy), out.BorrowWithinCohort)
	}
	return out
}

// observe returns the allocation that shows a ClusterQueue.
func (p *planner) observe(q *kueue.ClusterQueue, team string) *v1alpha1.ComputeAllocation {
	a := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Management: v1alpha1.Observe, ClusterQueueName: q.Name}}
	a.Name = team
	if names := p.namespaces(q.Name); len(names) == 1 && quota.CheckNamespaceName(names[0]) == "" {
		a.Spec.Namespace = names[0]
	}
	if locals := p.locals[q.Name]; len(locals) == 1 {
		a.Spec.LocalQueueName = locals[0].Name
	}
	return a
}

// notes returns what of a ClusterQueue Kuota leaves as it is.
func (p *planner) notes(q *kueue.ClusterQueue) (notes []string) {
	locals := p.locals[q.Name]
	if len(locals) > 1 {
		var names []string
		for _, l := range locals[1:] {
			names = append(names, l.Name)
		}
		notes = append(notes, fmt.Sprintf("tasks are submitted to LocalQueue %s; other LocalQueues stay as they are: %s", locals[0].Name, strings.Join(names, ", ")))
	}
	if stop := locals[0].Spec.StopPolicy; stop != nil && *stop != kueue.None {
		notes = append(notes, fmt.Sprintf("LocalQueue %s stays on %s", locals[0].Name, *stop))
	}
	for i := range p.Cohorts {
		if c := &p.Cohorts[i]; c.Name == string(q.Spec.CohortName) && c.Name == p.cohort && len(c.Spec.ResourceGroups) > 0 {
			notes = append(notes, fmt.Sprintf("Cohort %s has quota of its own, which stays as it is", c.Name))
		}
	}
	for f := range quota.Flavors(q.Spec.ResourceGroups) {
		if flavor := p.flavors[string(f.Name)]; flavor != nil && flavor.Spec.TopologyName != nil {
			notes = append(notes, fmt.Sprintf("Kueue also places tasks by topology %s of ResourceFlavor %s", *flavor.Spec.TopologyName, flavor.Name))
		}
	}
	if p.Input.Policy != nil && p.Input.Policy.Spec.Enforcement != v1alpha1.EnforcementNone {
		notes = append(notes, fmt.Sprintf("from then on, jobs without a queue are rejected in namespace %s", locals[0].Namespace))
	}
	return notes
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// teamName returns the name of the allocation of a ClusterQueue: its own name if it
// is valid and not taken.
func teamName(queue string, taken map[string]bool) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(queue), "-"), "-")
	if quota.CheckTeamName(name) == "" && !taken[name] {
		return name
	}
	sum := sha256.Sum256([]byte(queue))
	suffix := "-" + hex.EncodeToString(sum[:])[:6]
	return strings.TrimRight(name[:min(len(name), v1alpha1.MaxTeamName-len(suffix))], "-") + suffix
}
