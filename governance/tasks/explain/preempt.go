package explain

import (
	"cmp"
	"slices"
	"strings"
)

// Policy is which tasks a queue may stop, by their priority. Empty is Never.
type Policy string

// The policies. Never stops none.
const (
	Never         Policy = "Never"
	LowerPriority Policy = "LowerPriority"
	AnyPriority   Policy = "Any"
)

func (p Policy) allows(t Task, h Holder) bool {
	return p == AnyPriority || p == LowerPriority && h.Priority < t.Priority
}

// chance is whether Kueue makes room.
type chance int

const (
	none chance = iota
	maybe
	sure
)

// candidate is a task that Kueue may stop for another.
type candidate struct {
	*Holder
	own bool
	// always says that it may be stopped even when the other one borrows.
	always bool
}

// room is which tasks Kueue would stop for one that needs so much: for those of
// one cohort (0.19, pkg/scheduler/preemption). Under fair sharing it depends on
// shares, which are not calculated: then there may be room, or it is not known
// whom it is that Kueue stops.
func (l *ledger) room(t Task, need Amounts) ([]Holder, chance) {
	q, fair := l.c.Queue, l.c.FairSharing && l.c.Queue.inCohort()
	looks := q.WhileBorrowing || fair && (q.Reclaims == LowerPriority || q.Reclaims == AnyPriority)
	var short []Cell
	within, shortWithin, below := true, true, true // its own quota
	for cell, amount := range need {
		n := l.node(cell)
		inside := n.used+amount <= n.limit.Nominal
		within = within && inside
		if amount <= n.free() {
			continue
		}
		if amount > n.limit.Nominal && !looks {
			return nil, none // Kueue looks for nobody to stop for such a one
		}
		short = append(short, cell)
		shortWithin, below = shortWithin && inside, below && n.used < n.limit.Nominal
	}
	list := l.candidates(t, short, within)
	others := slices.ContainsFunc(list, func(c candidate) bool { return !c.own })
	if fair {
		own := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !c.own })
		if stopped := l.stop(own, need, short, true); stopped != nil {
			if others {
				return nil, sure
			}
			return stopped, sure
		}
		for i := range list {
			list[i].always = true
		}
		switch stopped := l.stop(list, need, short, true); {
		case len(stopped) == len(list) && shortWithin && stopped != nil:
			return stopped, sure
		case stopped != nil && shortWithin:
			return nil, sure
		case stopped != nil:
			return nil, maybe
		}
	} else {
		attempts := []bool{true, false} // whether it may borrow
		switch {
		case !others || !q.WhileBorrowing && !below:
			attempts = []bool{true}
		case !q.WhileBorrowing && !within:
			attempts = []bool{false, true}
		}
		for _, borrowing := range attempts {
			if stopped := l.stop(list, need, short, borrowing); stopped != nil {
				return stopped, sure
			}
		}
	}
	if within && q.Reclaims == AnyPriority && q.inCohort() {
		return nil, sure // whoever it is that borrowed it
	}
	return nil, none
}

// candidates are the tasks that Kueue may stop, in its order.
func (l *ledger) candidates(t Task, short []Cell, within bool) (list []candidate) {
	q := l.c.Queue
	exceeds := map[string]bool{}
	for name, other := range l.c.Queues {
		exceeds[name] = q.inCohort() && name != q.Name && l.exceeds(other, short)
	}
	for _, h := range l.inOrder() {
		c := candidate{Holder: h, own: h.Queue == q.Name}
		lower := h.Priority < t.Priority
		switch {
		case c.own && (q.WithinNever || !lower), !c.own && !(exceeds[h.Queue] && q.Reclaims.allows(t, *h)):
			continue
		case !slices.ContainsFunc(short, func(cell Cell) bool { return h.Holds[cell] > 0 }):
			continue
		}
		c.always = c.own || within || q.WhileBorrowing && lower && (q.Threshold == nil || h.Priority <= *q.Threshold)
		list = append(list, c)
	}
	return list
}

// inOrder are all that hold something in the order in which Kueue stops them:
// those of other queues before the own ones, then the lowest, then the newest.
func (l *ledger) inOrder() []*Holder {
	if l.order != nil {
		return l.order
	}
	l.order = make([]*Holder, len(l.c.Holders))
	for i := range l.c.Holders {
		l.order[i] = &l.c.Holders[i]
	}
	own := func(h *Holder) int { return b2i(h.Queue == l.c.Queue.Name) }
	slices.SortFunc(l.order, func(a, b *Holder) int {
		return cmp.Or(own(a)-own(b), cmp.Compare(a.Priority, b.Priority), b.Since.Compare(a.Since), strings.Compare(a.Workload, b.Workload), strings.Compare(a.UID, b.UID))
	})
	return l.order
}

// stop takes candidates away until all that is needed fits, and then puts back
// whom it did not take. It leaves the ledger as it was; nil says that it never
// fits.
func (l *ledger) stop(list []candidate, need Amounts, short []Cell, borrowing bool) []Holder {
	var stopped []Holder
	fits := false
	for _, c := range list {
		if !c.own && (borrowing && !c.always || !l.exceeds(l.c.Queues[c.Queue], short)) {
			continue
		}
		l.take(*c.Holder)
		stopped = append(stopped, *c.Holder)
		if fits = l.takes(need, borrowing); fits {
			break
		}
	}
	gone := stopped
	if fits {
		stopped = stopped[len(stopped)-1:]
		for _, h := range slices.Backward(gone[:len(gone)-1]) {
			if l.put(h); l.takes(need, borrowing) {
				continue
			}
			l.take(h)
			stopped = append(stopped, h)
		}
		gone = stopped
	}
	for _, h := range gone {
		l.put(h)
	}
	if !fits {
		return nil
	}
	return stopped
}

// takes tells whether all that is needed fits, and where it may not borrow, into
// the own quota.
func (l *ledger) takes(need Amounts, borrowing bool) bool {
	for cell, amount := range need {
		n := l.node(cell)
		if amount > n.free() || !borrowing && n.used+amount > n.limit.Nominal {
			return false
		}
	}
	return true
}
