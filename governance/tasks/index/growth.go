package index

import (
	"kuota.dev/kuota/governance/admitted"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
)

// elasticPods counts the pods of ElasticJobs that use quota.
type elasticPods struct{ guaranteed, growth int64 }

// addGrowth adds what growth of a task uses; sign is -1 to remove it.
func (x *Index) addGrowth(t *tasks.Task, sign int64) {
	for _, w := range t.Parts {
		growth := desired.IsGrowth(w)
		if !growth && t.Kind != v1alpha1.ElasticJobKind {
			continue
		}
		for set := range admitted.PodSets(w) {
			if !growth {
				x.elasticPods.guaranteed += sign * int64(set.Count)
				continue
			}
			x.elasticPods.growth += sign * int64(set.Count)
			used := make(quota.FlavorResourceQuantities, len(set.Usage))
			for name, amount := range set.Usage {
				used[quota.FlavorResource{Flavor: set.Flavors[name], Resource: name}] = amount
			}
			addUsed(x.growth, string(w.Status.Admission.ClusterQueue), used, sign)
		}
	}
}
