package allocations

import (
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/handlers/urls"
)

// raising types the figures into the form that ?raise= asks for: see urls.Raise. The
// user reviews and saves them like any others.
func raising(values url.Values, form allocationForm) allocationForm {
	kind, pool, figures := urls.ReadRaise(values)
	rows := &form.rows
	switch kind {
	case string(explain.RaiseNominalQuota):
	case string(explain.RaiseBorrowingLimit):
		rows = &form.limits
		form.strategy, form.unlimited = string(v1alpha1.LendAndBorrow), false // without it a limit is dropped
	default:
		return form
	}
	i := slices.IndexFunc(*rows, func(r formRow) bool { return r.instanceType == pool })
	if i < 0 {
		*rows = append(slices.Clone(*rows), formRow{instanceType: pool})
		i = len(*rows) - 1
	}
	row := &(*rows)[i]
	for name, amount := range figures {
		switch {
		case name == catalog.CPU:
			row.vcpu = quota.Number(name, amount)
		case name == catalog.Memory:
			row.memory, row.exact = quota.Number(name, amount), ""
		case strings.Contains(name, "/mig-"):
			_, row.profile, _ = strings.Cut(name, "/")
			row.count = quota.Number(name, amount)
		default:
			row.accelerators, row.instances = quota.Number(name, amount), ""
		}
	}
	form.Typed = true
	return form
}
