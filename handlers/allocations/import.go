package allocations

import (
	"crypto/rand"
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"

	"github.com/labstack/echo/v4"
)

// OpenImported shows an imported allocation in its form. note is the reason if it
// cannot be opened.
func (h *Pages) OpenImported(c echo.Context, may allocations.Permissions, o imports.Object) (opened bool, note string, err error) {
	ctx, user := c.Request().Context(), console.UserOf(c)
	found, err := h.Allocations.Find(ctx, user, o.Allocation.Name)
	there := err == nil
	if kind := governance.KindOf(err); err != nil && kind != governance.NotFound && kind != governance.Outside {
		return false, "", err
	}
	var form allocationForm
	switch {
	case there && found.DeletionTimestamp != nil:
		return false, "Team " + found.Name + " is being deleted. Import it again when it is deleted.", nil
	case there && !may.UpdatesIn(found.Spec.Department), !there && !may.Creates():
		return false, "You are not allowed to save this.", nil
	case there:
		merged := overlaid(&found, o)
		if m, managed := managerOf(&found); managed {
			page := managedAllocation(m, &found, "Edit "+found.Name)
			page.Text, page.Typed, page.NotImported = manifest.AllocationYAML(merged), true, forms.Lines(o.Problems)
			return true, "", h.ShowManaged(c, page)
		}
		form = formOf(*merged)
		form.edits = edit(found)
		if ns := o.Allocation.Spec.Namespace; ns != "" && ns != found.Spec.Namespace {
			o.Problems = append(o.Problems, governance.FieldError{Path: "spec.namespace", Message: "a team keeps its namespace; left out"})
		}
	default:
		form = newFormOf(o.Allocation)
		if o.Allocation.Spec.Adopted() {
			o.Problems = append(o.Problems, governance.FieldError{Path: "spec.clusterQueueName", Message: "describes an existing ClusterQueue, which the form cannot; left out. Adopt the ClusterQueue instead, or apply the YAML with kubectl"})
		}
	}
	form.Submitted = true // show all errors of the imported values
	form.Imported = forms.Imported{Yes: true, NotTaken: forms.Lines(o.Problems)}
	state, err := h.stateOf(ctx, user, &form)
	if err != nil {
		return false, "", err
	}
	return true, "", h.renderForm(c, http.StatusOK, form, state, nil)
}

// newFormOf returns the form of a new allocation with the values of a.
func newFormOf(a *v1alpha1.ComputeAllocation) allocationForm {
	form := formOf(*a)
	form.request, form.edits, form.Version, form.Generation = rand.Text(), nil, "", ""
	form.typed["activation"] = string(a.Spec.Activation) // empty leaves it unset
	return form
}

// overlaid returns found with the imported spec; of HyperPod, with the fields that HyperPod has.
func overlaid(found *v1alpha1.ComputeAllocation, o imports.Object) *v1alpha1.ComputeAllocation {
	merged := found.DeepCopy()
	spec, imported := &merged.Spec, o.Allocation.Spec.DeepCopy()
	switch {
	case o.Overlay != nil:
		o.Overlay(spec)
	case o.HyperPod:
		spec.DisplayName, spec.Description = imported.DisplayName, imported.Description
		spec.Activation, spec.FairShareWeight, spec.Quota = imported.Activation, imported.FairShareWeight, imported.Quota
		spec.Sharing, spec.Preemption.WithinTeam = imported.Sharing, imported.Preemption.WithinTeam
	default:
		*spec = *imported
		spec.Namespace = found.Spec.Namespace
	}
	return merged
}
