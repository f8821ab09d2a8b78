package handlers

import (
	"net/http"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/manifest"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// managedAllocation is the page in place of a form for an allocation that
// somebody else's repository says.
func managedAllocation(m gitops.Manager, a *v1alpha1.ComputeAllocation, title string) views.Managed {
	page := views.Managed{UpLabel: a.Name, UpURL: allocationURL(a.Name), Sentence: m.Sentence("Team " + a.Name), Text: manifest.Allocation(a)}
	page.Title = title
	return page
}

// managedPolicy is the same for the policy.
func managedPolicy(state policy.State) (page views.Managed, managed bool) {
	if state.Policy == nil {
		return page, false
	}
	m, managed := gitops.Of(state.Policy)
	if managed {
		page = views.Managed{UpLabel: "Policies", UpURL: policiesURL, Sentence: m.Sentence("The cluster policy"), Text: manifest.Policy(state.Policy)}
		page.Title = "Edit cluster policy"
	}
	return page, managed
}

// showManaged answers who opens such a form.
func (h *Handlers) showManaged(c echo.Context, page views.Managed) error {
	return h.renderManaged(c, http.StatusOK, page)
}

// refuseManaged answers who sends such a form, with what was typed; empty for
// nothing.
func (h *Handlers) refuseManaged(c echo.Context, page views.Managed, typed string) error {
	page.Refused = true
	if typed != "" {
		page.Text, page.Typed = typed, true
	}
	return h.renderManaged(c, http.StatusForbidden, page)
}

func (h *Handlers) renderManaged(c echo.Context, status int, page views.Managed) error {
	title := page.Title
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = title, "policies"
	return web.Render(c, status, views.ManagedPage(page))
}

// written is what was typed as YAML; empty for what is no allocation yet.
func (f *allocationForm) written(types catalog.Catalog) string {
	if f.version == "" {
		return "" // nobody typed anything
	}
	wanted, wrong := f.parse(types.With(f.newPools()...))
	if len(wrong) > 0 {
		return ""
	}
	return manifest.Allocation(wanted)
}

// written is what was typed as YAML; empty for what is no policy yet.
func (f *policyForm) written() string {
	spec, wrong := f.parse()
	if f.version == "" || len(wrong) > 0 {
		return ""
	}
	return manifest.Policy(&v1alpha1.ClusterPolicy{Spec: spec})
}
