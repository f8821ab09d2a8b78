package engine

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"
)

func stopped(p *kueue.StopPolicy) bool { return p != nil && *p != kueue.None }

// add adds a Workload of the snapshot, unless it finished, or has quota of no queue, for
// which Kueue panics.
func (r *run) add(w *kueue.Workload) {
	if isTrue(w, kueue.WorkloadFinished) || workload.HasQuotaReservation(w) && w.Status.Admission == nil {
		return
	}
	copied := *w // shares what it points to, which is read only
	w = &copied
	w.CreationTimestamp.Time = w.CreationTimestamp.Add(r.nudge(w))
	key := client.ObjectKeyFromObject(w)
	if !workload.HasQuotaReservation(w) {
		r.requeue(w)
	}
	r.objects.workloads[key] = w
	r.uids[string(w.UID)] = key.String()
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil && !workload.HasQuotaReservation(w) {
		at := state.RequeueAt.Time
		w.Status.RequeueState = &kueue.RequeueState{Count: state.Count} // Kueue compares the time with the wall clock
		if at.After(r.snapshot.Time) {
			r.after(at.Sub(r.snapshot.Time), key, func(_ context.Context, w *kueue.Workload) error {
				r.requeue(w)
				r.objects.workloads[key] = w
				r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
				return nil
			})
			return
		}
	}
	if r.options.Arrivals && w.CreationTimestamp.After(r.snapshot.Time) {
		r.after(w.CreationTimestamp.Sub(r.snapshot.Time), key, func(_ context.Context, w *kueue.Workload) error {
			r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
			return nil
		})
		return
	}
	if r.tried(w) {
		// Kueue keeps it apart until it requeues, unless it is the head of a StrictFIFO queue.
		r.queues.RequeueWorkload(logr.NewContext(context.Background(), logr.Discard()), &workload.Info{Obj: w}, qcache.RequeueReasonGeneric, "")
		return
	}
	r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
	switch {
	case !workload.HasQuotaReservation(w):
	case workloadevict.IsEvicted(w):
		r.had[key.String()] = true
		r.after(r.terminationTime(), key, r.release)
	default:
		r.had[key.String()] = true
		r.schedule(w, r.options.Remaining)
	}
}

// tried reports whether Kueue has found no quota for a pending Workload as it is, and
// tries it again only when it requeues.
func (r *run) tried(w *kueue.Workload) bool {
	if r.options.Restarted || r.options.Changed[simulate.WorkloadKey(w)] || !workload.IsActive(w) {
		return false
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status != metav1.ConditionFalse {
		return false
	}
	switch c.Reason {
	case kueue.WorkloadQuotaReservedReasonPendingEvaluation, kueue.WorkloadQuotaReservedReasonWaitingForPreemptedWorkloads, kueue.WorkloadQuotaReservedReasonWaitingForPodsReady:
		return false
	}
	return !simulate.TriedInEachCycle(c.Message)
}

// requeue sets the condition without which Kueue's queues do not offer an evicted
// Workload again, as Kueue's controller does when the reason of its eviction is over.
// It replaces the conditions, which are shared.
func (r *run) requeue(w *kueue.Workload) {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	if c == nil || c.Status != metav1.ConditionFalse || !r.evictionOver(w, c.Reason) {
		return
	}
	w.Status.Conditions = slices.Clone(w.Status.Conditions)
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadRequeued, Status: metav1.ConditionTrue, Reason: c.Reason, LastTransitionTime: metav1.NewTime(r.clock.Now())})
}

// evictionOver reports whether what a Workload was evicted for has ended.
func (r *run) evictionOver(w *kueue.Workload, reason string) bool {
	local := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]
	switch reason {
	case kueue.WorkloadDeactivated:
		return workload.IsActive(w)
	case kueue.WorkloadEvictedByLocalQueueStopped:
		return local != nil && !stopped(local.Spec.StopPolicy)
	case kueue.WorkloadEvictedByClusterQueueStopped:
		if local == nil {
			return false
		}
		queue := r.objects.clusterQueues[string(local.Spec.ClusterQueue)]
		return queue != nil && !stopped(queue.Spec.StopPolicy)
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck:
		state := w.Status.RequeueState
		return state == nil || state.RequeueAt == nil || !state.RequeueAt.After(r.clock.Now())
	}
	return false
}

// nudge returns less than a second by which the creation of all Workloads of a
// ClusterQueue is moved. Within a queue, Kueue breaks ties itself.
func (r *run) nudge(w *kueue.Workload) time.Duration {
	queue := ""
	if local := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; local != nil {
		queue = string(local.Spec.ClusterQueue)
		if q := r.objects.clusterQueues[queue]; q != nil && q.UID != "" {
			queue = string(q.UID) // which stays when names are replaced
		}
	}
	h := fnv.New64a()
	h.Write([]byte(queue))
	return time.Duration(rand.New(rand.NewPCG(r.options.Tie, h.Sum64())).Int64N(int64(time.Second)))
}

// drain evicts the Workloads that Kueue's controllers evict: inactive ones, and
// those of queues that are stopped and drained.
func (r *run) drain() {
	for _, w := range r.snapshot.Workloads {
		key := client.ObjectKeyFromObject(w)
		current := r.objects.workloads[key]
		if current == nil || !workload.HasQuotaReservation(current) || workloadevict.IsEvicted(current) {
			continue
		}
		reason := ""
		if q := r.objects.clusterQueues[string(current.Status.Admission.ClusterQueue)]; q != nil && q.Spec.StopPolicy != nil && *q.Spec.StopPolicy == kueue.HoldAndDrain {
			reason = kueue.WorkloadEvictedByClusterQueueStopped
		}
		if q := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; q != nil && q.Spec.StopPolicy != nil && *q.Spec.StopPolicy == kueue.HoldAndDrain {
			reason = kueue.WorkloadEvictedByLocalQueueStopped
		}
		if !workload.IsActive(current) {
			reason = kueue.WorkloadDeactivated
		}
		if reason != "" {
			r.after(0, key, func(ctx context.Context, w *kueue.Workload) error {
				return workloadevict.Evict(ctx, r.objects, discard{}, w, reason, reason, "", r.clock, false, nil, nil, workloadevict.WithLooseOnApply())
			})
		}
	}
}

// release takes quota from an evicted Workload whose pods ended, as Kueue's
// controller of its job does.
func (r *run) release(ctx context.Context, w *kueue.Workload) error {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if !workload.HasQuotaReservation(w) || evicted == nil || evicted.Status != metav1.ConditionTrue {
		return nil
	}
	return workloadpatching.PatchAdmissionStatus(ctx, r.objects, w, r.clock, func(w *kueue.Workload) (bool, error) {
		workload.SetRequeuedCondition(w, evicted.Reason, evicted.Message, evicted.Reason == kueue.WorkloadEvictedByPreemption || r.evictionOver(w, evicted.Reason))
		workload.UnsetQuotaReservationWithCondition(w, kueue.WorkloadQuotaReservedReasonPendingEvaluation, evicted.Message, r.clock.Now())
		return true, nil
	}, workloadpatching.WithLooseOnApply())
}
