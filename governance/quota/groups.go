package quota

import (
	"iter"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Flavors iterates over the flavors of resource groups.
func Flavors(groups []kueue.ResourceGroup) iter.Seq[*kueue.FlavorQuotas] {
	return func(yield func(*kueue.FlavorQuotas) bool) {
		for i := range groups {
			for j := range groups[i].Flavors {
				if !yield(&groups[i].Flavors[j]) {
					return
				}
			}
		}
	}
}

// ResourceQuotas iterates over the resources of the flavors of resource groups.
func ResourceQuotas(groups []kueue.ResourceGroup) iter.Seq2[FlavorResource, *kueue.ResourceQuota] {
	return func(yield func(FlavorResource, *kueue.ResourceQuota) bool) {
		for flavor := range Flavors(groups) {
			for i := range flavor.Resources {
				r := &flavor.Resources[i]
				if !yield(FlavorResource{Flavor: string(flavor.Name), Resource: string(r.Name)}, r) {
					return
				}
			}
		}
	}
}
