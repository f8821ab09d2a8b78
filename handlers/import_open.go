package handlers

import (
	"crypto/rand"
	"net/http"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/manifest"

	"github.com/labstack/echo/v4"
)

// open shows an object in the form that saves such. note says why it cannot be.
func (h *Handlers) open(c echo.Context, who importer, o imports.Object) (opened bool, note string, err error) {
	if o.Policy != nil {
		return h.openPolicy(c, who, o)
	}
	return h.openAllocation(c, who, o)
}

func (h *Handlers) openAllocation(c echo.Context, who importer, o imports.Object) (opened bool, note string, err error) {
	ctx, user := c.Request().Context(), userOf(c)
	found, err := h.Allocations.Find(ctx, user, o.Allocation.Name)
	there := err == nil
	if kind := governance.KindOf(err); err != nil && kind != governance.NotFound && kind != governance.Outside {
		return false, "", err
	}
	var form allocationForm
	switch {
	case there && found.DeletionTimestamp != nil:
		return false, "Team " + found.Name + " is being deleted. Import it again when it is deleted.", nil
	case there && !who.may.Update, !there && !who.may.Create:
		return false, "You are not allowed to save this.", nil
	case there:
		merged := overlaid(&found, o)
		if m, managed := gitops.Of(&found); managed {
			page := managedAllocation(m, &found, "Edit "+found.Name)
			page.Text, page.Typed, page.NotTaken = manifest.Allocation(merged), true, lines(o.NotTaken)
			return true, "", h.showManaged(c, page)
		}
		form = formOf(*merged)
		form.edits = edit(found)
		if ns := o.Allocation.Spec.Namespace; ns != "" && ns != found.Spec.Namespace {
			o.NotTaken = append(o.NotTaken, governance.FieldError{Path: "spec.namespace", Message: "a team keeps its namespace; left out"})
		}
	default:
		form = newFormOf(o.Allocation)
	}
	form.submitted = true // so that it says what is wrong with what was brought
	form.imported = imported{yes: true, notTaken: lines(o.NotTaken)}
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return false, "", err
	}
	return true, "", h.renderForm(c, http.StatusOK, form, state, nil)
}

// newFormOf is a new allocation, filled in.
func newFormOf(a *v1alpha1.ComputeAllocation) allocationForm {
	form := formOf(*a)
	form.request, form.edits, form.version, form.generation = rand.Text(), nil, "", ""
	form.activation = string(a.Spec.Activation) // none asks nothing
	return form
}

// overlaid is an allocation with what was imported in place of what it has. What
// HyperPod does not have stays.
func overlaid(found *v1alpha1.ComputeAllocation, o imports.Object) *v1alpha1.ComputeAllocation {
	merged := found.DeepCopy()
	merged.Spec = *o.Allocation.Spec.DeepCopy()
	merged.Spec.Namespace = found.Spec.Namespace
	if o.HyperPod {
		merged.Spec.Members = slices.Clone(found.Spec.Members)
		merged.Spec.NamespaceCeiling, merged.Spec.DefaultQueue = found.Spec.NamespaceCeiling, found.Spec.DefaultQueue
	}
	return merged
}

func (h *Handlers) openPolicy(c echo.Context, who importer, o imports.Object) (opened bool, note string, err error) {
	if !who.policy.MayEdit {
		return false, "You are not allowed to save this.", nil
	}
	now := who.policy.Policy
	if now != nil && now.DeletionTimestamp != nil {
		return false, "The cluster policy is being deleted. Import it again when it is deleted.", nil
	}
	merged := overlaidPolicy(now, o)
	if page, managed := managedPolicy(who.policy); managed {
		page.Text, page.Typed, page.NotTaken = manifest.Policy(merged), true, lines(o.NotTaken)
		return true, "", h.showManaged(c, page)
	}
	form := policyFormOf(merged)
	usual, texts := policyFormOf(nil), form.texts()
	for name, text := range usual.texts() {
		orDefault(texts[name], *text)
	}
	form.version, form.generation = "", ""
	if now != nil { // saving is a change of it
		form.version, form.generation = now.ResourceVersion, generationOf(now)
	}
	form.submitted = true
	form.imported = imported{yes: true, notTaken: lines(o.NotTaken)}
	return true, "", h.renderPolicy(c, http.StatusOK, form, who.policy, nil)
}

// overlaidPolicy is the policy with what was imported in place of what it has. What
// HyperPod does not have stays.
func overlaidPolicy(now *v1alpha1.ClusterPolicy, o imports.Object) *v1alpha1.ClusterPolicy {
	merged := o.Policy.DeepCopy()
	if now == nil || !o.HyperPod {
		return merged
	}
	spec := &merged.Spec
	spec.GangScheduling, spec.Enforcement, spec.Pools = *now.Spec.GangScheduling.DeepCopy(), now.Spec.Enforcement, slices.Clone(now.Spec.Pools)
	spec.PreemptionLoops = now.Spec.PreemptionLoops
	for i := range spec.PriorityClasses {
		for _, class := range now.Spec.PriorityClasses {
			if class.Name == spec.PriorityClasses[i].Name {
				spec.PriorityClasses[i].Description = class.Description
			}
		}
	}
	return merged
}
