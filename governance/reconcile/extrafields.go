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
		spec := &o.Spec
		if spec.Preemption != nil && spec.Preemption.BorrowWithinCohort != nil && spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold != nil ||
			spec.FlavorFungibility != nil && spec.FlavorFungibility.Preference != nil {
			return `{"spec": {"preemption": {"borrowWithinCohort": {"maxPriorityThreshold": null}}, "flavorFungibility": {"preference": null}}}`
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
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"nodeLabels": stray}})
			if err == nil {
				return string(patch)
			}
		}
	}
	return ""
}
