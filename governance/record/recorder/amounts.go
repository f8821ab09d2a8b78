package recorder

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Amounts returns the amounts of all series in a snapshot. Memory is in MiB, rounded
// down; Idle of a pool absorbs the difference, so that the parts add up.
func Amounts(s *capacity.Snapshot) map[history.SeriesKey]int64 {
	all := map[history.SeriesKey]int64{}
	for _, p := range s.Pools {
		for _, c := range p.Resources {
			put := func(measure history.Measure, amount resources.Amount) resources.Amount {
				amount = InHistoryUnit(c.Resource, amount)
				all[history.SeriesKey{Pool: p.Name, Resource: c.Resource, Measure: measure}] = int64(amount)
				return amount
			}
			left := put(history.Physical, c.Physical)
			left = left.Minus(put(history.OwnBound, c.OwnBound))
			left = left.Minus(put(history.BorrowedBound, c.BorrowedBound))
			left = left.Minus(put(history.Outside, c.Outside))
			left = left.Minus(put(history.Unhealthy, c.Unhealthy))
			all[history.SeriesKey{Pool: p.Name, Resource: c.Resource, Measure: history.Idle}] = int64(left)
			put(history.Quota, c.Nominal)
			put(history.Used, c.Usage)
			put(history.Unplaced, c.Unbound)
			put(history.Borrowed, c.Borrowed)
			if c.Growth > 0 { // few clusters have any
				put(history.Growth, c.Growth)
				put(history.OwnGrowth, c.OwnGrowth)
			}
		}
	}
	for _, t := range s.Teams {
		for _, c := range t.Resources {
			put := func(measure history.Measure, amount resources.Amount) {
				all[history.SeriesKey{Team: t.Name, Pool: c.Flavor, Resource: c.Resource, Measure: measure}] = int64(InHistoryUnit(c.Resource, amount))
			}
			put(history.Quota, c.Nominal)
			put(history.Used, c.Usage)
			put(history.Borrowed, c.Borrowed)
			put(history.OwnBound, c.OwnBound)
			put(history.BorrowedBound, c.BorrowedBound)
			if c.Growth > 0 { // few clusters have any
				put(history.Growth, c.Growth)
				put(history.OwnGrowth, c.OwnGrowth())
			}
			put(history.LentToCohort, c.LentBound)
			put(history.Unplaced, c.Unbound)
		}
	}
	return all
}

// InHistoryUnit converts an amount to the unit of package history.
func InHistoryUnit(resource string, amount resources.Amount) resources.Amount {
	if resource == catalog.Memory {
		return amount / catalog.MiB
	}
	return amount
}

// diffAmounts returns the amounts that differ from before, in a fixed order. Series
// that no longer exist become 0.
func diffAmounts(before, now map[history.SeriesKey]int64) []history.Amount {
	var changed []history.Amount
	for key, amount := range now {
		if was, ok := before[key]; !ok || was != amount {
			changed = append(changed, history.Amount{SeriesKey: key, Amount: amount})
		}
	}
	for key, amount := range before {
		if _, ok := now[key]; !ok && amount != 0 {
			changed = append(changed, history.Amount{SeriesKey: key})
		}
	}
	slices.SortFunc(changed, func(a, b history.Amount) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Team, b.Team), strings.Compare(string(a.Measure), string(b.Measure)))
	})
	return changed
}

// newRecord converts s for package history.
func newRecord(s timeline.Snapshot, teams clusterstate.Teams) history.Record {
	r := history.Record{Task: history.Task{
		Namespace: s.Namespace, Kind: s.Kind, Name: s.Name, UID: s.UID, Team: teams.Of(s.Place()), PriorityClass: s.PriorityClass, Priority: s.Priority,
		Queue: s.Queue, State: string(s.State), Pools: s.Pools, Requests: s.Requests, SubmittedAt: s.Submitted, FinishedAt: s.FinishedAt, DeletedAt: s.DeletedAt, Preemptions: s.Preemptions,
		SubmittedBy: s.SubmittedBy,
	}}
	for _, e := range s.Events {
		if e.AtOrBefore { // its time is unknown
			continue
		}
		event := history.Event{
			WorkloadUID: e.WorkloadUID, At: e.At, Type: string(e.Type), Reason: e.Reason, Message: e.Message, Ran: e.Ran, Size: e.Size,
			FirstPreemption: e.PreemptionCount, LastPreemption: e.PreemptionCount,
		}
		if e.Preemptor == nil {
			event.Preemptor.UID = e.PreemptorUID // distinguishes preemptions by unknown tasks
		} else {
			event.Preemptor = history.TaskRef{Namespace: e.Preemptor.Namespace, Kind: e.Preemptor.Kind, Name: e.Preemptor.Name, UID: e.Preemptor.UID, Team: teams.Of(e.Preemptor.Place())}
		}
		r.Events = append(r.Events, event)
	}
	r.Usage = taskUsage(s)
	waits, ran := s.Spans()
	for _, w := range waits {
		r.Spans = append(r.Spans, history.Span{WorkloadUID: w.WorkloadUID, Kind: history.Wait, Began: w.Began, Ended: w.Ended})
	}
	for _, run := range ran {
		r.Spans = append(r.Spans, history.Span{WorkloadUID: run.WorkloadUID, Kind: history.Run, Began: run.Began, Ended: run.Ended})
	}
	for _, l := range s.Loops {
		r.Loops = append(r.Loops, history.Loop{WorkloadUID: string(l.WorkloadUID), Since: l.Since, Last: l.Last, Runs: l.Runs})
	}
	r.Task.RunTime = s.RanBefore
	end := s.FinishedAt
	if end.IsZero() {
		end = s.DeletedAt
	}
	if !s.AdmittedAt.IsZero() && !end.IsZero() {
		r.Task.RunTime += max(0, end.Sub(s.AdmittedAt))
	}
	return r
}

// taskUsage returns what the Workloads of a task use of each pool, or used until they
// finished, or were evicted because they were deactivated. Kueue deletes the admission of a Workload that lost its quota: its run has
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
		admission.Spec.Active = nil // until Kueue has evicted it, its run goes on
		if finished := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); finished != nil && finished.Status == metav1.ConditionTrue {
			r.Ended = finished.LastTransitionTime.Time
			admission.Status.Conditions, admission.Status.ReclaimablePods = nil, nil // with both it uses nothing
		} else if evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); !ptr.Deref(w.Spec.Active, true) && evicted != nil && evicted.Status == metav1.ConditionTrue {
			r.Ended = evicted.LastTransitionTime.Time
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
			r.Amounts[of] = int64(InHistoryUnit(of.Resource, amount))
		}
		list = append(list, r)
	}
	return list
}
