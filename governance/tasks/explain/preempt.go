package explain

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/resources"
)

// PreemptionPolicy selects the tasks that a queue may preempt, by their priority.
// Empty is Never.
type PreemptionPolicy string

// The policies. Never selects none.
const (
	Never         PreemptionPolicy = "Never"
	LowerPriority PreemptionPolicy = "LowerPriority"
	AnyPriority   PreemptionPolicy = "Any"
)

func (p PreemptionPolicy) allows(t Task, h AdmittedWorkload) bool {
	return p == AnyPriority || p == LowerPriority && h.Priority < t.Priority
}

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
	// whileBorrowing reports that it may be preempted even if the preemptor borrows.
	whileBorrowing bool
}

// targets returns the tasks that Kueue would preempt for a task with such requests,
// in a flat cohort (0.19, pkg/scheduler/preemption). Fair sharing depends on
// shares, which are not computed: then it may preempt, or the targets are unknown.
func (l *snapshot) targets(t Task, need quota.FlavorResourceQuantities) ([]*workload, outcome) {
	q, fair := l.c.Queue, l.c.FairSharing && l.c.Queue.inCohort()
	searches := q.BorrowWithinCohort || fair && (q.ReclaimWithinCohort == LowerPriority || q.ReclaimWithinCohort == AnyPriority)
	wants := l.requests(need, t.ReplacedUsage)
	var short []int
	within, shortWithin, below := true, true, true // its own quota
	for _, want := range wants {
		n := l.at(want.fr)
		inside := n.usage.Plus(want.amount) <= n.limit.Nominal
		within = within && inside
		if want.amount <= n.available() {
			continue
		}
		if want.added > n.limit.Nominal && !searches {
			return nil, noTargets // Kueue does not look for candidates then
		}
		short = append(short, want.fr)
		shortWithin, below = shortWithin && inside, below && n.usage < n.limit.Nominal
	}
	list := l.candidates(t, short, within)
	others := slices.ContainsFunc(list, func(c candidate) bool { return !c.InQueue })
	if fair {
		own := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !c.InQueue })
		if stopped := l.removeUntilFit(own, wants, short, true); stopped != nil {
			if others {
				return nil, preempts
			}
			return stopped, preempts
		}
		for i := range list {
			list[i].whileBorrowing = true
		}
		switch stopped := l.removeUntilFit(list, wants, short, true); {
		case len(stopped) == len(list) && shortWithin && stopped != nil:
			return stopped, preempts
		case stopped != nil && shortWithin:
			return nil, preempts
		case stopped != nil:
			return nil, mayPreempt
		}
	} else {
		attempts := []bool{true, false} // whether it may borrow
		switch {
		case !others || !q.BorrowWithinCohort && !below:
			attempts = []bool{true}
		case !q.BorrowWithinCohort && !within:
			attempts = []bool{false, true}
		}
		for _, borrowing := range attempts {
			if stopped := l.removeUntilFit(list, wants, short, borrowing); stopped != nil {
				return stopped, preempts
			}
		}
	}
	if within && q.ReclaimWithinCohort == AnyPriority && q.inCohort() {
		return nil, preempts // the targets are unknown
	}
	return nil, noTargets
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

// candidates returns the tasks that Kueue may preempt, in its order.
func (l *snapshot) candidates(t Task, short []int, within bool) (list []candidate) {
	q := l.c.Queue
	for _, s := range l.byPreemptionOrder() {
		c := candidate{workload: s, InQueue: s.account == l.own}
		lower := s.Priority < t.Priority
		switch {
		case c.InQueue && (q.NeverWithinClusterQueue || !lower), !c.InQueue && !(q.inCohort() && s.account.borrowing(short) && q.ReclaimWithinCohort.allows(t, *s.AdmittedWorkload)):
			continue
		case !slices.ContainsFunc(short, func(fr int) bool { return s.usage[fr] > 0 }):
			continue
		}
		c.whileBorrowing = c.InQueue || within || q.BorrowWithinCohort && lower && (q.MaxPriorityThreshold == nil || s.Priority <= *q.MaxPriorityThreshold)
		list = append(list, c)
	}
	return list
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

// removeUntilFit removes candidates until all requests fit, and then fills back
// those that are not needed. It leaves the snapshot unchanged; nil if the requests
// never fit.
func (l *snapshot) removeUntilFit(list []candidate, wants []request, short []int, borrowing bool) (stopped []*workload) {
	var removed []*workload
	fits := false
	for _, c := range list {
		if !c.InQueue && (borrowing && !c.whileBorrowing || !c.account.borrowing(short)) {
			continue
		}
		l.removeUsage(c.workload)
		removed = append(removed, c.workload)
		if fits = l.fitsAll(wants, borrowing); fits {
			break
		}
	}
	if fits {
		stopped = removed[len(removed)-1:]
		for _, s := range slices.Backward(removed[:len(removed)-1]) {
			if l.addUsage(s); l.fitsAll(wants, borrowing) {
				continue
			}
			l.removeUsage(s)
			stopped = append(stopped, s)
		}
		removed = stopped
	}
	for _, s := range removed {
		l.addUsage(s)
	}
	return stopped
}

// admitted returns the workloads of the own queue, or of others.
func (l *snapshot) admitted(workloads []*workload, own bool) (list []AdmittedWorkload) {
	for _, w := range workloads {
		if (w.account == l.own) == own {
			list = append(list, *w.AdmittedWorkload)
		}
	}
	return list
}

// fitsAll reports whether all requests fit, and unless borrowing, within the
// nominal quota.
func (l *snapshot) fitsAll(wants []request, borrowing bool) bool {
	for _, want := range wants {
		n := l.at(want.fr)
		if want.amount > n.available() || !borrowing && n.usage.Plus(want.amount) > n.limit.Nominal {
			return false
		}
	}
	return true
}
