package index

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota/desired"
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
		pods := &x.elasticPods.guaranteed
		if growth {
			pods = &x.elasticPods.growth
		}
		for set := range admitted.PodSets(w) {
			*pods += sign * int64(set.Count)
		}
		if growth && w.Status.Admission != nil {
			addUsed(x.growth, string(w.Status.Admission.ClusterQueue), admitted.Usage(w), sign)
		}
	}
}
