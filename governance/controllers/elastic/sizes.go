package elastic

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Sizes returns the allowed sizes of a policy in pods, the smallest first. The first is
// the minimum.
func Sizes(p v1alpha1.ElasticPolicy) []int32 {
	sizes := []int32{p.MinReplicas}
	if p.ReplicaIncrementStep != nil && *p.ReplicaIncrementStep > 0 {
		for size := p.MinReplicas + *p.ReplicaIncrementStep; size <= p.MaxReplicas; size += *p.ReplicaIncrementStep {
			sizes = append(sizes, size)
		}
	}
	for _, size := range p.ReplicaDiscreteValues {
		if size > p.MinReplicas && size <= p.MaxReplicas {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// next returns the smallest of sizes that is larger than size; 0 for none.
func next(sizes []int32, size int32) int32 {
	for _, s := range sizes {
		if s > size {
			return s
		}
	}
	return 0
}
