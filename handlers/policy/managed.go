package policy

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// managedPolicy returns the page in place of the form for a policy that a GitOps tool
// manages.
func managedPolicy(state policy.State) (page views.Managed, managed bool) {
	if state.Policy == nil {
		return page, false
	}
	m, managed := gitops.ManagerOf(state.Policy)
	if managed {
		page = views.Managed{UpLabel: "Policies", UpURL: urls.Policies, Sentence: m.Message("The cluster policy"), Text: manifest.PolicyYAML(state.Policy)}
		page.Title = "Edit cluster policy"
	}
	return page, managed
}

// written returns the typed values as YAML; empty if they are invalid.
func (f *policyForm) written() string {
	spec, wrong := f.parse()
	if f.Version == "" || len(wrong) > 0 {
		return ""
	}
	return manifest.PolicyYAML(&v1alpha1.ClusterPolicy{Spec: spec})
}
