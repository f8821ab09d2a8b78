package allocations

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/forms"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// parse converts the form to an allocation. It omits invalid values and returns
// their errors, with paths by the rows of the form. types distinguishes instance
// types from pools.
func (f *allocationForm) parse(types catalog.Catalog) (*v1alpha1.ComputeAllocation, []governance.FieldError) {
	var wrong governance.FieldErrors
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: f.team, ResourceVersion: f.Version}}
	v1alpha1.SetReason(allocation, f.Reason)
	spec := &allocation.Spec
	for _, field := range fields {
		if field.write != nil && f.kind.has(field) {
			wrong.Add(field.Path, field.write(spec, f.typed[field.ID]))
		}
	}
	if f.edits != nil && f.kind == ofTeam {
		keepAdopted(spec, &f.edits.allocation.Spec)
	}
	if w := spec.Preemption.WithinTeam; f.kind == ofTeam && w != v1alpha1.PreemptLowerPriority && w != v1alpha1.PreemptNever {
		wrong.Add("spec.preemption.withinTeam", "choose whether the team's tasks preempt its own lower-priority ones")
		spec.Preemption.WithinTeam = ""
	}
	spec.Members = f.parseMembers(&wrong)
	spec.Shares = f.parseShares(types, &wrong)
	spec.Quota = f.parseRows(f.rows, "spec.quota", types, &wrong)
	spec.Sharing = f.parseSharing(types, &wrong)
	before := len(wrong)
	spec.Windows, spec.Budget = f.parseWindows(types, &wrong), f.budget.parse(f.Submitted, &wrong)
	incomplete := func(w formWindow) bool { return !w.empty() && !w.complete() }
	if f.Submitted || len(wrong) == before && !slices.ContainsFunc(f.windows, incomplete) {
		typed := wrong[before:]
		for _, e := range f.windowErrors(spec, types) {
			if !slices.ContainsFunc(typed, func(t governance.FieldError) bool { return followsFrom(e.Path, t.Path) }) {
				wrong = append(wrong, e)
			}
		}
	}
	return allocation, wrong
}

// followsFrom reports whether an error at a path can be the consequence of one that parsing
// found: it is at the same field, or at a time whose notation depends on the days.
func followsFrom(path, cause string) bool {
	window, ofDays := strings.CutSuffix(cause, ".days")
	return path == cause || ofDays && (path == window+".from" || path == window+".to")
}

// keepAdopted keeps the fields of an allocation that no form has: those that describe
// an existing ClusterQueue.
func keepAdopted(spec, saved *v1alpha1.ComputeAllocationSpec) {
	spec.Management, spec.ClusterQueueName, spec.LocalQueueName = saved.Management, saved.ClusterQueueName, saved.LocalQueueName
	spec.CohortName, spec.CoveredResources = saved.CohortName, saved.CoveredResources
	if saved.QueueingStrategy == v1alpha1.BestEffortFIFO && spec.QueueingStrategy == "" {
		spec.QueueingStrategy = saved.QueueingStrategy
	}
	spec.Preemption.ReclaimWithinCohort, spec.Preemption.BorrowWithinCohort = saved.Preemption.ReclaimWithinCohort, saved.Preemption.BorrowWithinCohort
}

// parseSharing omits the inputs that the strategy does not use.
func (f *allocationForm) parseSharing(types catalog.Catalog, wrong *governance.FieldErrors) v1alpha1.Sharing {
	sharing := v1alpha1.Sharing{Strategy: v1alpha1.SharingStrategy(f.strategy)}
	switch sharing.Strategy {
	case v1alpha1.LendAndBorrow:
	case v1alpha1.Lend, v1alpha1.DontLend:
		return sharing
	default:
		wrong.Add("spec.sharing.strategy", "choose one of lend and borrow, lend, and do not lend")
		sharing.Strategy = v1alpha1.LendAndBorrow
		return sharing
	}
	sharing.BorrowLimits = f.parseRows(f.limits, "spec.sharing.borrowLimits", types, wrong)
	sharing.Unlimited = f.unlimited
	if !f.unlimited && f.percent != "" {
		percent, problem := forms.ParseWhole(f.percent, 0, v1alpha1.MaxBorrowLimitPercent)
		wrong.Add("spec.sharing.borrowLimitPercent", problem)
		p := int32(percent)
		sharing.BorrowLimitPercent = &p
	}
	return sharing
}

func (f *allocationForm) parseMembers(wrong *governance.FieldErrors) []v1alpha1.Member {
	var members []v1alpha1.Member
	seen := map[v1alpha1.Member]bool{}
	for i, m := range f.members {
		if m.name == "" {
			continue
		}
		member := v1alpha1.Member{Kind: m.kind, Name: m.name}
		at := fmt.Sprintf("spec.members[%d].", i)
		if seen[member] {
			wrong.Add(at+"name", "is listed twice; remove one of the two")
		}
		seen[member] = true
		members = append(members, member)
	}
	return members
}

func (f *allocationForm) parseRows(rows []formRow, path string, types catalog.Catalog, wrong *governance.FieldErrors) []v1alpha1.QuotaRow {
	var parsed []v1alpha1.QuotaRow
	for i, row := range rows {
		if row.empty() {
			continue
		}
		one, problems := f.parseRow(row, types)
		for _, p := range problems {
			wrong.Add(fmt.Sprintf("%s[%d].%s", path, i, p.Path), p.Message)
		}
		parsed = append(parsed, one)
	}
	return parsed
}

// parseRow parses the amounts of a row. Paths are relative to the row.
func (f *allocationForm) parseRow(r formRow, types catalog.Catalog) (v1alpha1.QuotaRow, []governance.FieldError) {
	var wrong governance.FieldErrors
	whole := func(path, text string) *int64 {
		if text == "" {
			return nil
		}
		n, problem := forms.ParseWhole(text, 0, v1alpha1.MaxAmount)
		wrong.Add(path, problem)
		if problem != "" {
			return nil
		}
		return &n
	}
	row := v1alpha1.QuotaRow{InstanceType: r.instanceType}
	if f.isPool(r.instanceType, types) {
		row = v1alpha1.QuotaRow{Pool: r.instanceType}
	}
	row.Instances = whole("instances", r.instances)
	row.Accelerators = whole("accelerators", r.accelerators)
	var problem string
	row.VCPU, problem = forms.ParseVCPU(r.vcpu)
	wrong.Add("vCPU", problem)
	row.Memory, problem = forms.ParseGiB(r.memory)
	wrong.Add("memory", problem)
	if exact, ok := r.exactMemory(); ok {
		row.Memory = &exact
	}
	switch {
	case r.profile == "" && r.count == "":
	case r.profile == "":
		wrong.Add("partition.profile", "choose which parts these are")
	case r.count == "":
		wrong.Add("partition.count", "give how many parts")
	default:
		if n := whole("partition.count", r.count); n != nil {
			row.Partition = &v1alpha1.Partition{Profile: r.profile, Count: *n}
		}
	}
	others, _ := url.ParseQuery(r.others)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		one, amount := v1alpha1.ResourceQuantity{Name: name}, others.Get(name)
		switch {
		case resources.InBytes(name) && withUnit(amount):
			one.Quantity = resource.MustParse(amount)
		case resources.InBytes(name):
			bytes, problem := forms.ParseGiB(amount)
			wrong.Add("resources", problem)
			one.Quantity = ptr.Deref(bytes, one.Quantity)
		default:
			one.Quantity = *resource.NewQuantity(ptr.Deref(whole("resources", amount), 0), resource.DecimalSI)
		}
		row.Resources = append(row.Resources, one)
	}
	return row, wrong
}

// checkName returns what is wrong with the name; empty if it is valid.
func (f *allocationForm) checkName() string {
	if f.kind == ofDepartment {
		return quota.CheckDepartmentName(f.team)
	}
	return quota.CheckTeamName(f.team)
}

// missing returns errors for the values that a save needs and the form lacks.
func (f *allocationForm) missing() []governance.FieldError {
	var wrong governance.FieldErrors
	for i, s := range f.shares {
		if !s.empty() && s.name == "" {
			wrong.Add(fmt.Sprintf("%s[%d].name", sharesPath, i), "give the share a name, which its queue gets")
		}
		if !s.empty() && s.weight == "" {
			wrong.Add(fmt.Sprintf("%s[%d].weight", sharesPath, i), fmt.Sprintf("give a weight from 1 to %d", v1alpha1.MaxShareWeight))
		}
	}
	if f.edits != nil {
		return wrong // its name is fixed, and it may have no quota
	}
	wrong.Add("metadata.name", f.checkName())
	filled := func(r formRow) bool { return !r.empty() }
	if borrows := f.strategy == string(v1alpha1.LendAndBorrow) && slices.ContainsFunc(f.limits, filled); !borrows && !slices.ContainsFunc(f.rows, filled) {
		wrong.Add("spec.quota", "give at least one pool a number, or set a limit for a pool under More settings")
	}
	return wrong
}
