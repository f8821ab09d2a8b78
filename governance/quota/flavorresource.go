package quota

import (
	"encoding/json"
	"iter"

	"kuota.dev/kuota/governance/quota/resources"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FlavorResource is one resource of one flavor, such as nvidia.com/gpu of
// ml-p5-48xlarge.
type FlavorResource struct{ Flavor, Resource string }

// FlavorResourceQuantities are quantities by flavor and resource, in the units
// of Resources.
type FlavorResourceQuantities map[FlavorResource]resources.Amount

// Add adds other to q. Sums saturate.
func (q FlavorResourceQuantities) Add(other FlavorResourceQuantities) {
	for fr, amount := range other {
		q[fr] = q[fr].Plus(amount)
	}
}

// ByResource returns the sums over all flavors.
func (q FlavorResourceQuantities) ByResource() Resources {
	sums := Resources{}
	for fr, amount := range q {
		sums[fr.Resource] = sums[fr.Resource].Plus(amount)
	}
	return sums
}

// MarshalJSON writes the quantities by flavor, then by resource.
func (q FlavorResourceQuantities) MarshalJSON() ([]byte, error) {
	by := map[string]map[string]resources.Amount{}
	for fr, amount := range q {
		if by[fr.Flavor] == nil {
			by[fr.Flavor] = map[string]resources.Amount{}
		}
		by[fr.Flavor][fr.Resource] = amount
	}
	return json.Marshal(by)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (q *FlavorResourceQuantities) UnmarshalJSON(text []byte) error {
	var by map[string]map[string]resources.Amount
	if err := json.Unmarshal(text, &by); err != nil {
		return err
	}
	*q = FlavorResourceQuantities{}
	for flavor, resources := range by {
		for name, amount := range resources {
			(*q)[FlavorResource{Flavor: flavor, Resource: name}] = amount
		}
	}
	return nil
}

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
