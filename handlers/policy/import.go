package policy

import (
	"net/http"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/forms"

	"github.com/labstack/echo/v4"
)

// OpenImported shows an imported policy in its form. note is the reason if it cannot
// be opened.
func (h *Pages) OpenImported(c echo.Context, state policy.State, o imports.Object) (opened bool, note string, err error) {
	if !state.MayEdit {
		return false, "You are not allowed to save this.", nil
	}
	now := state.Policy
	if now != nil && now.DeletionTimestamp != nil {
		return false, "The cluster policy is being deleted. Import it again when it is deleted.", nil
	}
	merged := overlaidPolicy(now, o)
	if page, managed := managedPolicy(clusterPart, state); managed {
		page.Text, page.Typed, page.NotImported = manifest.PolicyYAML(merged), true, forms.Lines(o.Problems)
		return true, "", h.ShowManaged(c, page)
	}
	saved := &v1alpha1.ClusterPolicy{}
	if now != nil {
		saved = now
	}
	form := policyFormOf(merged, differing(clusterPart, &merged.Spec, &saved.Spec)...)
	usual, texts := policyFormOf(nil), form.texts()
	for name, text := range usual.texts() {
		forms.OrDefault(texts[name], *text)
	}
	form.Version, form.Generation = "", ""
	if now != nil { // saving is a change of it
		form.Version, form.Generation = now.ResourceVersion, generationOf(now, form.parts)
	}
	form.Submitted = true
	form.Imported = forms.Imported{Yes: true, NotTaken: forms.Lines(o.Problems)}
	return true, "", h.renderPolicy(c, http.StatusOK, form, state, nil)
}

// overlaidPolicy returns the imported policy; of HyperPod, the fields of now with those that
// HyperPod has.
func overlaidPolicy(now *v1alpha1.ClusterPolicy, o imports.Object) *v1alpha1.ClusterPolicy {
	merged := o.Policy.DeepCopy()
	if now == nil || !o.HyperPod {
		return merged
	}
	spec := now.Spec.DeepCopy()
	spec.TaskPrioritization, spec.PriorityClasses, spec.IdleCompute = merged.Spec.TaskPrioritization, merged.Spec.PriorityClasses, merged.Spec.IdleCompute
	merged.Spec = *spec
	spec = &merged.Spec
	for i := range spec.PriorityClasses {
		for _, class := range now.Spec.PriorityClasses {
			if class.Name == spec.PriorityClasses[i].Name {
				spec.PriorityClasses[i].Description = class.Description
			}
		}
	}
	return merged
}

// restoringPolicy fills the form with the version that ?restores= names.
func (h *Pages) restoringPolicy(c echo.Context, state policy.State, form policyForm) (policyForm, error) {
	from := c.QueryParam("restores")
	if from == "" {
		return form, nil
	}
	version, err := h.Versions.Version(c, revisions.PolicyOwner(), from)
	if err != nil {
		return form, err
	}
	saved := &v1alpha1.ClusterPolicy{}
	if state.Policy != nil {
		saved = state.Policy
	}
	filled := policyFormOf(&v1alpha1.ClusterPolicy{Spec: *version.Policy}, differing(form.parts[0], version.Policy, &saved.Spec)...)
	if filled.Version = form.Version; filled.Version != "" {
		filled.Generation = generationOf(saved, filled.parts)
	}
	filled.Restores, filled.Reason = from, forms.RestoresWords(version.Number)
	return filled, nil
}
