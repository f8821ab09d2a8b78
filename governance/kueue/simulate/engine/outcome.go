package engine

import (
	"strings"

	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
)

func (r *run) record(e simulate.Event, w, of *kueue.Workload) {
	e.After, e.Workload = r.clock.Since(r.snapshot.Time), simulate.WorkloadKey(w)
	if a := of.Status.Admission; a != nil {
		e.ClusterQueue = string(a.ClusterQueue)
	}
	e.Usage = admitted.Usage(of)
	if e.Again = r.had[e.Workload] == (e.Kind == simulate.Started); e.Kind == simulate.Finished {
		r.ended[e.Workload] = true
	}
	r.outcome.Events = append(r.outcome.Events, e)
}

// finish records the state at the end.
func (r *run) finish() error {
	for i := range r.outcome.Events {
		if e := &r.outcome.Events[i]; e.Kind == simulate.Started && !r.ended[e.Workload] {
			w := r.objects.workloads[r.key(e.Workload)]
			e.Lost = !workload.HasQuotaReservation(w) || workloadevict.IsEvicted(w)
		}
	}
	r.outcome.Queues, r.outcome.Exceeding, r.outcome.Untried = map[string]simulate.Queue{}, map[string]bool{}, map[string]bool{}
	for name := range r.objects.clusterQueues {
		r.outcome.Queues[name] = simulate.Queue{Usage: quota.FlavorResourceQuantities{}}
	}
	for _, w := range r.objects.workloads {
		name := ""
		switch {
		case isTrue(w, kueue.WorkloadFinished):
		case w.Status.Admission != nil && workload.HasQuotaReservation(w):
			name = string(w.Status.Admission.ClusterQueue)
			if q, ok := r.outcome.Queues[name]; ok {
				q.Usage.Add(admitted.Usage(w))
			}
		default:
			if q := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; q != nil && workload.IsActive(w) {
				name = string(q.Spec.ClusterQueue)
				if q, ok := r.outcome.Queues[name]; ok {
					q.Pending++
					r.outcome.Queues[name] = q
					if !r.cache.ClusterQueueActive(kueue.ClusterQueueReference(name)) {
						r.outcome.Untried[simulate.WorkloadKey(w)] = true
					} else if r.exceeds(w) {
						r.outcome.Exceeding[simulate.WorkloadKey(w)] = true
					}
				}
			}
		}
	}
	return nil
}

// exceeds reports whether a pending Workload requests more than its queue can ever
// have. Equal Workloads are tried once, so that only their queue knows the reason.
func (r *run) exceeds(w *kueue.Workload) bool {
	reason, ok := r.queues.GetNoFitReason(w)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); !ok && c != nil {
		reason = c.Reason
	}
	return reason == kueue.WorkloadQuotaReservedReasonExceedsMaxQuota
}

func (r *run) key(of string) client.ObjectKey {
	namespace, name, _ := strings.Cut(of, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}
