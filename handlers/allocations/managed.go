package allocations

import (
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manager is who changes an allocation instead of its pages.
type manager struct {
	short    string // such as "Managed by Flux"
	sentence string // and where to change it
}

// managerOf returns the manager of an allocation that its pages show and do not change:
// a GitOps tool manages it, or Kuota only observes its ClusterQueue.
func managerOf(a *v1alpha1.ComputeAllocation) (manager, bool) {
	if m, ok := gitops.ManagerOf(a); ok {
		return manager{"Managed by " + m.String(), m.Message("Team " + a.Name)}, true
	}
	if !a.Spec.Observed() {
		return manager{}, false
	}
	sentence := fmt.Sprintf("Kuota shows ClusterQueue %s and does not change it", a.Spec.ClusterQueueName)
	if ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		sentence = ready.Message // with the reason
	}
	return manager{"Observed", fmt.Sprintf("%s. To remove the team from Kuota and keep its queue, run kuota release %s.", sentence, a.Name)}, true
}

// managedAllocation returns the page in place of a form for an allocation that its
// pages do not change.
func managedAllocation(m manager, a *v1alpha1.ComputeAllocation, title string) views.Managed {
	page := views.Managed{UpLabel: a.Name, UpURL: urls.Allocation(a.Name), Sentence: m.sentence, Text: manifest.AllocationYAML(a)}
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
