package change

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// quantityFields are the fields of ClusterQueues that are quantities, which differ
// in their notation: 1000m is 1.
var quantityFields = []string{"nominalQuota", "borrowingLimit", "lendingLimit", "weight"}

// clusterQueueFields are the fields of a ClusterQueue that Kuota corrects although want
// does not set them.
var clusterQueueFields = []string{"cohortName", "fairSharing.weight", "preemption.borrowWithinCohort.maxPriorityThreshold"}

// defaultWeight is the weight of a ClusterQueue that sets none.
const defaultWeight = "1"

// Applied returns the fields of the spec of an existing object that applying
// want would change. Fields that want does not set would stay, except within
// lists, which are replaced. Quota, a cohort, a weight and a priority threshold of a
// ClusterQueue that want does not contain count as changed.
func Applied(live client.Object, want any) ([]Field, error) {
	all, err := Fields(live, want)
	if err != nil {
		return nil, err
	}
	var changed []Field
	_, isQueue := live.(*kueue.ClusterQueue)
	for _, field := range all {
		if isQueue && field.After == "" && slices.Contains(clusterQueueFields, field.Path) {
			if field.Path == "fairSharing.weight" && field.Before == defaultWeight {
				continue
			}
			changed = append(changed, field)
			continue
		}
		inList := strings.Contains(field.Path, separator) || strings.HasPrefix(field.Path, "resourceGroups")
		if field.After == "" && !inList || equalQuantities(field) {
			continue
		}
		changed = append(changed, field)
	}
	return changed, nil
}

func equalQuantities(field Field) bool {
	for _, name := range quantityFields {
		if !strings.HasSuffix(field.Path, name) {
			continue
		}
		before, err := resource.ParseQuantity(field.Before)
		after, err2 := resource.ParseQuantity(field.After)
		return err == nil && err2 == nil && before.Cmp(after) == 0
	}
	return false
}
