package allocations

import (
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// editAllocation answers GET /policies/allocations/{name}/edit: the allocation as
// it is saved, or the values in the address.
func (h *Pages) editAllocation(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, editURL(c.Param("name")))
		if values != nil {
			return h.takeEdit(c, values, forms.ActionShow)
		}
		if err := h.mayDo(c, toUpdate); err != nil {
			return err
		}
		found, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
		if err != nil {
			return err
		}
		if err := h.mayDo(c, toUpdateIn(found.Spec.Department)); err != nil {
			return err
		}
		if m, managed := managerOf(&found); managed {
			return h.ShowManaged(c, managedAllocation(m, &found, "Edit "+found.Name))
		}
		form, err := h.restoring(c, formOf(found))
		if err != nil {
			return err
		}
		form = raising(c.QueryParams(), form)
		form.Lost = lost
		state, err := h.stateOf(c.Request().Context(), console.UserOf(c), &form)
		if err != nil {
			return err
		}
		return h.showForm(c, s, form, state)
	}
}

// editURL returns the address of the form that changes a team's allocation.
func editURL(team string) string { return urls.Allocation(team) + "/edit" }

// takeEdit answers an action on the form that changes an allocation. The typed
// values are shown again even when the team was deleted since.
func (h *Pages) takeEdit(c echo.Context, values url.Values, action string) error {
	form := readForm(ofTeam, values)
	allowed := h.mayDo(c, toUpdate)
	if allowed != nil && !console.Unavailable(allowed) {
		return allowed
	}
	found, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		found = v1alpha1.ComputeAllocation{}
		found.Name = c.Param("name")
	}
	form.changes(edit(found))
	if err == nil {
		if forbidden := h.mayDo(c, toUpdateIn(found.Spec.Department)); forbidden != nil && !console.Unavailable(forbidden) {
			return forbidden
		}
		err = allowed
	}
	if err == nil {
		err = h.remember(c, &form)
	}
	if m, managed := managerOf(&found); managed && err == nil {
		state, err := h.Allocations.State(c.Request().Context(), console.UserOf(c))
		if err != nil {
			return err
		}
		typed := ""
		if !found.Spec.Observed() {
			typed = form.written(state.Types)
		}
		return h.RefuseManaged(c, managedAllocation(m, &found, "Edit "+found.Name), typed)
	}
	if governance.KindOf(err) == governance.NotFound && form.Version == "" {
		return err // nothing was typed
	}
	if governance.KindOf(err) == governance.NotFound {
		state, _ := h.Allocations.State(c.Request().Context(), console.UserOf(c))
		return h.renderDeleted(c, form, state)
	}
	return h.takeForm(c, form, action, err)
}

// changes makes the form edit e. The team and its namespace cannot change.
func (f *allocationForm) changes(e *edited) {
	if f.edits = e; e != nil {
		f.team, f.typed["namespace"] = e.allocation.Name, e.allocation.Spec.Namespace
	}
}

// raising types the figures into the form that ?raise= asks for: see urls.Raise. The
// user reviews and saves them like any others.
func raising(values url.Values, form allocationForm) allocationForm {
	kind, pool, figures := urls.ReadRaise(values)
	if share := values.Get("share"); share != "" {
		return raisingShare(share, pool, figures, form)
	}
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
		set, _ := url.ParseQuery(row.others)
		switch {
		case set.Has(name), !catalog.IsAccelerator(name) && !catalog.FollowsAccelerators(name):
			row.setOther(name, quota.Number(name, amount))
		case name == catalog.CPU:
			row.vcpu = quota.Number(name, amount)
		case name == catalog.Memory:
			row.memory, row.exact = quota.Number(name, amount), ""
		case catalog.IsPartition(name):
			row.profile, row.count = strings.TrimPrefix(name, quota.PartitionResource("")), quota.Number(name, amount)
		default:
			row.accelerators, row.instances = quota.Number(name, amount), ""
		}
	}
	form.Typed = true
	return form
}

// raisingShare types accelerators into the quota of a share.
func raisingShare(share, pool string, figures map[string]resources.Amount, form allocationForm) allocationForm {
	i := slices.IndexFunc(form.shares, func(s formShare) bool { return s.name == share })
	for name, amount := range figures {
		if i < 0 || !catalog.IsAccelerator(name) {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(form.shares[i].quota, "\n"), func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) == 0 || fields[0] == pool
		})
		form.shares = slices.Clone(form.shares)
		form.shares[i].quota = strings.Join(append(lines, pool+" "+quota.Number(name, amount)), "\n")
		form.Typed = true
	}
	return form
}
