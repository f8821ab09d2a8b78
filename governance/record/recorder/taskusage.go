package recorder

import (
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// taskUsage returns what the Workloads of a task use of each pool, or used until they
// finished. Kueue deletes the admission of a Workload that lost its quota: its run has
// no amounts, and ends the one that was recorded before.
func taskUsage(s timeline.Snapshot) (list []history.TaskUsage) {
	for _, w := range s.Parts {
		reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if reserved == nil {
			continue
		}
		r := history.TaskUsage{WorkloadUID: string(w.UID), Began: reserved.LastTransitionTime.Time}
		if reserved.Status != metav1.ConditionTrue || w.Status.Admission == nil {
			r.Ended = r.Began
			list = append(list, r)
			continue
		}
		admission := *w
		if finished := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); finished != nil && finished.Status == metav1.ConditionTrue {
			r.Ended = finished.LastTransitionTime.Time
			admission.Status.Conditions, admission.Status.ReclaimablePods = nil, nil // with both it uses nothing
		} else {
			r.Ended = s.DeletedAt
		}
		sum := map[history.PoolResource]resources.Amount{}
		for set := range admitted.PodSets(&admission) {
			for resource, amount := range set.Usage {
				if amount > 0 {
					of := history.PoolResource{Pool: set.Flavors[resource], Resource: resource}
					sum[of] = sum[of].Plus(amount)
				}
			}
		}
		r.Amounts = make(map[history.PoolResource]int64, len(sum))
		for of, amount := range sum {
			r.Amounts[of] = int64(inHistoryUnit(of.Resource, amount))
		}
		list = append(list, r)
	}
	return list
}
