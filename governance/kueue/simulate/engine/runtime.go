package engine

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
)

// schedule plans the end of a Workload that has quota, if times has how long it goes
// on.
func (r *run) schedule(w *kueue.Workload, times map[string]time.Duration) {
	left, known := times[simulate.WorkloadKey(w)]
	if !known {
		return
	}
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime
	r.after(max(0, left), client.ObjectKeyFromObject(w), func(ctx context.Context, w *kueue.Workload) error {
		now := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if !workload.HasQuotaReservation(w) || workloadevict.IsEvicted(w) || !now.LastTransitionTime.Equal(&reserved) {
			return nil // preempted meanwhile
		}
		return workloadfinish.Finish(ctx, r.objects, w, "Simulated", "its estimated run time is over", r.clock)
	})
}
