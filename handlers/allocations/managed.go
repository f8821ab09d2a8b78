package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/manifest"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// managedAllocation returns the page in place of a form for an allocation that a
// GitOps tool manages.
func managedAllocation(m gitops.Manager, a *v1alpha1.ComputeAllocation, title string) views.Managed {
	page := views.Managed{UpLabel: a.Name, UpURL: urls.Allocation(a.Name), Sentence: m.Message("Team " + a.Name), Text: manifest.AllocationYAML(a)}
	page.Title = title
	return page
}

// written returns the typed values as YAML; empty if they are invalid.
func (f *allocationForm) written(types catalog.Catalog) string {
	if f.Version == "" {
		return "" // nothing was typed
	}
	wanted, wrong := f.parse(types.With(f.newPools()...))
	if len(wrong) > 0 {
		return ""
	}
	return manifest.AllocationYAML(wanted)
}
