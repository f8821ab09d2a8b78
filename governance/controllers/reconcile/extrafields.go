package reconcile

import (
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// extraFieldsPatch returns a merge patch that removes fields that another
// manager added and that change the meaning of fields that Kuota sets; empty if
// there are none. An apply does not remove them, because Kuota never owned
// them. Admission checks, taints and the like stay: they belong to the admin.
func extraFieldsPatch(object client.Object, want map[string]any) string {
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		extra := map[string]any{}
		wanted, _ := want["spec"].(map[string]any)
		if pre := o.Spec.Preemption; pre != nil && pre.BorrowWithinCohort != nil && pre.BorrowWithinCohort.MaxPriorityThreshold != nil {
			extra["preemption"] = map[string]any{"borrowWithinCohort": map[string]any{"maxPriorityThreshold": nil}}
		}
		if wanted["flavorFungibility"] != nil && o.Spec.FlavorFungibility != nil && o.Spec.FlavorFungibility.Preference != nil {
			extra["flavorFungibility"] = map[string]any{"preference": nil}
		}
		// Of an adopted ClusterQueue, another manager may own fields that Kuota also owned.
		if wanted["cohortName"] == nil && o.Spec.CohortName != "" {
			extra["cohortName"] = nil
		}
		if wanted["resourceGroups"] == nil && len(o.Spec.ResourceGroups) > 0 {
			extra["resourceGroups"] = nil
		}
		return specPatch(extra)
	case *kueue.Cohort:
		wanted, _ := want["spec"].(map[string]any)
		if wanted["parentName"] == nil && o.Spec.ParentName != "" {
			return specPatch(map[string]any{"parentName": nil})
		}
	case *kueue.ResourceFlavor:
		spec, _ := want["spec"].(map[string]any)
		wanted, _ := spec["nodeLabels"].(map[string]any)
		stray := map[string]any{}
		for key := range o.Spec.NodeLabels {
			if _, ok := wanted[key]; !ok {
				stray[key] = nil
			}
		}
		if len(stray) > 0 {
			return specPatch(map[string]any{"nodeLabels": stray})
		}
	}
	return ""
}

// specPatch returns a merge patch of fields of a spec; empty for none.
func specPatch(fields map[string]any) string {
	patch, err := json.Marshal(map[string]any{"spec": fields})
	if len(fields) == 0 || err != nil {
		return ""
	}
	return string(patch)
}
