package explain

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// outcome is whether Kueue preempts.
type outcome int

const (
	noTargets outcome = iota
	mayPreempt
	preempts
)

// candidate is a task that Kueue may preempt.
type candidate struct {
	*workload
	InQueue bool
	// advantage reports that a subtree with the task's queue, and without that of the
	// candidate, has quota for the task: Kueue calls that hierarchical reclaim.
	advantage bool
	// whileBorrowing reports that it may be preempted even if the preemptor borrows.
	whileBorrowing bool
}

// preemption returns whether Kueue would preempt others for a task with such requests
// (0.19, pkg/scheduler/preemption). Fair sharing depends on shares, which are not
// computed: then it may.
func (l *snapshot) preemption(t Task, need quota.FlavorResourceQuantities) outcome {
	q, fair := l.c.Queue, l.c.FairSharing && l.c.Queue.inCohort()
	searches := q.BorrowWithinCohort || fair && (q.ReclaimWithinCohort == kueue.PreemptionPolicyLowerPriority || q.ReclaimWithinCohort == kueue.PreemptionPolicyAny)
	wants := l.requests(need, t.ReplacedUsage)
	var short []int
	within, shortWithin, below := true, true, true // its own quota
	for _, want := range wants {
		n := l.own
		inside := n.has(want.fr, want.amount)
		within = within && inside
		if want.amount <= n.available(want.fr) {
			continue
		}
		if in := n.lowestWith(want.fr, want.amount); want.added > n.limits[want.fr].Nominal && !searches && (in == nil || in.parent == nil) {
			return noTargets // Kueue does not look for candidates then
		}
		short = append(short, want.fr)
		shortWithin, below = shortWithin && inside, below && n.usage[want.fr] < n.limits[want.fr].Nominal
	}
	list := l.candidates(t, short, l.advantages(wants))
	attempts := []bool{true, false} // whether it may borrow
	switch others := slices.ContainsFunc(list, func(c candidate) bool { return !c.InQueue }); {
	case fair:
		own := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !c.InQueue })
		if l.fitsWithoutCandidates(own, wants, short, true) {
			return preempts
		}
		for i := range list {
			list[i].whileBorrowing = true
		}
		if l.fitsWithoutCandidates(list, wants, short, true) {
			if shortWithin {
				return preempts
			}
			return mayPreempt
		}
		attempts = nil
	case !others || !q.BorrowWithinCohort && !below:
		attempts = attempts[:1]
	case !q.BorrowWithinCohort && !slices.ContainsFunc(list, func(c candidate) bool { return c.advantage }):
		attempts = []bool{false, true}
	}
	for _, borrowing := range attempts {
		if l.fitsWithoutCandidates(list, wants, short, borrowing) {
			return preempts
		}
	}
	if within && q.ReclaimWithinCohort == kueue.PreemptionPolicyAny && q.inCohort() {
		return preempts
	}
	return noTargets
}

// advantages returns the ancestors of the task's queue that have a subtree below them, with
// the queue, that has quota for all requests.
func (l *snapshot) advantages(wants []request) map[*node]bool {
	found, has := map[*node]bool{}, false
	remaining := make([]resources.Amount, len(wants))
	for i, want := range wants {
		remaining[i] = want.amount
	}
	for n := l.own; n.parent != nil; n = n.parent {
		fits := true
		for i, want := range wants {
			fits = fits && n.has(want.fr, remaining[i])
			remaining[i] = max(0, remaining[i].Minus(n.localAvailable(want.fr)))
		}
		has = has || fits
		found[n.parent] = has
	}
	return found
}

// request is an amount of the FlavorResource at an index of the snapshot.
type request struct {
	fr     int
	amount resources.Amount
	added  resources.Amount // of it, that the task does not have yet
}

func (l *snapshot) requests(need, takes quota.FlavorResourceQuantities) []request {
	list := make([]request, 0, len(need))
	for fr, amount := range need {
		list = append(list, request{l.index[fr], amount, amount.Minus(takes[fr])})
	}
	return list
}

// candidates returns the tasks that Kueue may preempt, in its order: those that the task has
// an advantage over, other queues, its own queue.
func (l *snapshot) candidates(t Task, short []int, advantages map[*node]bool) []candidate {
	q := l.c.Queue
	var first, list []candidate
	for _, s := range l.byPreemptionOrder() {
		c := candidate{workload: s, InQueue: s.account == l.own}
		if !slices.ContainsFunc(short, func(fr int) bool { return s.usage[fr] > 0 }) {
			continue
		}
		lower := s.Priority < t.Priority
		if c.InQueue {
			if c.whileBorrowing = true; lower && !q.NeverWithinClusterQueue {
				list = append(list, c)
			}
			continue
		}
		lender := s.account.lenderTo(short)
		if lender == nil || q.ReclaimWithinCohort != kueue.PreemptionPolicyAny && !(q.ReclaimWithinCohort == kueue.PreemptionPolicyLowerPriority && lower) {
			continue
		}
		c.advantage = advantages[lender]
		c.whileBorrowing = c.advantage || q.BorrowWithinCohort && lower && (q.MaxPriorityThreshold == nil || s.Priority <= *q.MaxPriorityThreshold)
		if c.advantage {
			first = append(first, c)
		} else {
			list = append(list, c)
		}
	}
	return append(first, list...)
}

// Compare orders workloads of other queues the way Kueue picks preemption
// candidates: lowest priority first, then the most recently admitted.
func (h *AdmittedWorkload) Compare(other *AdmittedWorkload) int {
	return cmp.Or(cmp.Compare(h.Priority, other.Priority), other.QuotaReservedAt.Compare(h.QuotaReservedAt), strings.Compare(h.WorkloadUID, other.WorkloadUID), strings.Compare(h.UID, other.UID))
}

// byPreemptionOrder returns all workloads with usage in the snapshot, in the order
// in which Kueue picks candidates: those of other queues before those of the own
// queue.
func (l *snapshot) byPreemptionOrder() []*workload {
	if l.order != nil {
		return l.order
	}
	var others, own []*workload
	amounts := make([]resources.Amount, len(l.c.Admitted)*len(l.index))
	admitted := make([]workload, len(l.c.Admitted))
	for i, h := range l.c.Admitted {
		s := &admitted[i]
		s.AdmittedWorkload, s.account, s.usage = h, l.queues[h.Queue], amounts[:len(l.index)]
		if s.account == nil || !l.setUsage(s) {
			continue
		}
		if amounts = amounts[len(l.index):]; s.account == l.own {
			own = append(own, s)
		} else {
			others = append(others, s)
		}
	}
	l.order = append(others, own...)
	return l.order
}

// fitsWithoutCandidates reports whether all requests fit once some of the candidates are
// removed. It leaves the snapshot unchanged.
func (l *snapshot) fitsWithoutCandidates(list []candidate, wants []request, short []int, borrowing bool) (fits bool) {
	var removed []*workload
	for _, c := range list {
		if !c.InQueue && (borrowing && !c.whileBorrowing || c.account.lenderTo(short) == nil) {
			continue
		}
		l.removeUsage(c.workload)
		removed = append(removed, c.workload)
		if fits = l.fitsAll(wants, borrowing); fits {
			break
		}
	}
	for _, s := range removed {
		l.addUsage(s)
	}
	return fits
}

// fitsAll reports whether all requests fit, and unless borrowing, within the
// nominal quota.
func (l *snapshot) fitsAll(wants []request, borrowing bool) bool {
	for _, want := range wants {
		if want.amount > l.own.available(want.fr) || !borrowing && !l.own.has(want.fr, want.amount) {
			return false
		}
	}
	return true
}
