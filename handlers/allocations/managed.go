package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/manifest"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// managedAllocation is the page in place of a form for an allocation that
// somebody else's repository says.
func managedAllocation(m gitops.Manager, a *v1alpha1.ComputeAllocation, title string) views.Managed {
	page := views.Managed{UpLabel: a.Name, UpURL: urls.Allocation(a.Name), Sentence: m.Message("Team " + a.Name), Text: manifest.AllocationYAML(a)}
	page.Title = title
	return page
}

// written is what was typed as YAML; empty for what is no allocation yet.
func (f *allocationForm) written(types catalog.Catalog) string {
	if f.Version == "" {
		return "" // nobody typed anything
	}
	wanted, wrong := f.parse(types.With(f.newPools()...))
	if len(wrong) > 0 {
		return ""
	}
	return manifest.AllocationYAML(wanted)
}
