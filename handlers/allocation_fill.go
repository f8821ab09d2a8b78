package handlers

import (
	"crypto/rand"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/resource"
)

// edited is the allocation that a form changes, as it is now.
type edited struct {
	allocation v1alpha1.ComputeAllocation
	// exact is the memory of its rows by type and text: the form writes GiB in
	// three decimals, and what nobody touched is saved as it was.
	exact map[[2]string]resource.Quantity
}

func edit(allocation v1alpha1.ComputeAllocation) *edited {
	e := &edited{allocation: allocation, exact: map[[2]string]resource.Quantity{}}
	for _, rows := range [][]v1alpha1.QuotaRow{allocation.Spec.Quota, allocation.Spec.Sharing.BorrowLimits} {
		for _, row := range rows {
			if row.Memory != nil {
				text := formRowOf(row)
				e.exact[[2]string{text.instanceType, text.memory}] = *row.Memory
			}
		}
	}
	return e
}

// exactMemory is what a row that nobody touched had, to the byte.
func (f *allocationForm) exactMemory(r formRow) (resource.Quantity, bool) {
	for _, was := range []*edited{f.earlier, f.edits} {
		if was == nil || r.memory == "" {
			continue
		}
		if exact, ok := was.exact[[2]string{r.instanceType, r.memory}]; ok {
			return exact, true
		}
	}
	return resource.Quantity{}, false
}

// emptyForm is a new allocation before anybody typed.
func emptyForm() allocationForm {
	return allocationForm{
		request: rand.Text(), weight: "0", rows: []formRow{{}}, members: []formMember{{kind: "Group"}},
		strategy: string(v1alpha1.LendAndBorrow), percent: "50", preemption: string(v1alpha1.PreemptLowerPriority),
	}
}

// formOf is an allocation as the form shows it.
func formOf(a v1alpha1.ComputeAllocation) allocationForm {
	spec := &a.Spec
	form := allocationForm{
		request: rand.Text(), edits: edit(a), version: a.ResourceVersion, generation: strconv.FormatInt(a.Generation, 10),
		team: a.Name, displayName: spec.DisplayName, description: spec.Description, activation: string(spec.Activation),
		namespace: spec.Namespace, weight: strconv.Itoa(int(spec.FairShareWeight)),
		strategy: string(spec.Sharing.Strategy), unlimited: spec.Sharing.Unlimited, preemption: string(spec.Preemption.WithinTeam),
		ceiling: spec.NamespaceCeiling, defaultQueue: spec.DefaultQueue,
	}
	orDefault(&form.activation, string(v1alpha1.Active))
	orDefault(&form.strategy, string(v1alpha1.LendAndBorrow))
	orDefault(&form.preemption, string(v1alpha1.PreemptLowerPriority))
	if p := spec.Sharing.BorrowLimitPercent; p != nil {
		form.percent = strconv.Itoa(int(*p))
	}
	for _, m := range spec.Members {
		form.members = append(form.members, formMember{m.Kind, m.Name})
	}
	for _, row := range spec.Quota {
		form.rows = append(form.rows, formRowOf(row))
	}
	for _, row := range spec.Sharing.BorrowLimits {
		form.limits = append(form.limits, formRowOf(row))
	}
	return form
}

func formRowOf(row v1alpha1.QuotaRow) formRow {
	r := formRow{instanceType: row.InstanceType + row.Pool}
	whole := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	r.instances, r.accelerators = whole(row.Instances), whole(row.Accelerators)
	if row.VCPU != nil {
		r.vcpu = quota.Number(catalog.CPU, row.VCPU.MilliValue())
	}
	if row.Memory != nil {
		r.memory = quota.Number(catalog.Memory, row.Memory.Value())
	}
	if p := row.Partition; p != nil {
		r.profile, r.count = p.Profile, strconv.FormatInt(p.Count, 10)
	}
	return r
}

func orDefault(text *string, value string) {
	if *text == "" {
		*text = value
	}
}
