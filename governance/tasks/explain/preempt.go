package explain

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"
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
	*stake
	own bool
	// always says that it may be stopped even when the other one borrows.
	always bool
}

// room is which tasks Kueue would stop for one that needs so much: for those of
// one cohort (0.19, pkg/scheduler/preemption). Under fair sharing it depends on
// shares, which are not calculated: then there may be room, or it is not known
// whom it is that Kueue stops.
func (l *ledger) room(t Task, need quota.FlavorResourceQuantities) ([]*stake, chance) {
	q, fair := l.c.Queue, l.c.FairSharing && l.c.Queue.inCohort()
	looks := q.WhileBorrowing || fair && (q.Reclaims == LowerPriority || q.Reclaims == AnyPriority)
	wants := l.wants(need, t.Takes)
	var short []int
	within, shortWithin, below := true, true, true // its own quota
	for _, want := range wants {
		n := l.at(want.cell)
		inside := n.used+want.amount <= n.limit.Nominal
		within = within && inside
		if want.amount <= n.free() {
			continue
		}
		if want.fresh > n.limit.Nominal && !looks {
			return nil, none // Kueue looks for nobody to stop for such a one
		}
		short = append(short, want.cell)
		shortWithin, below = shortWithin && inside, below && n.used < n.limit.Nominal
	}
	list := l.candidates(t, short, within)
	others := slices.ContainsFunc(list, func(c candidate) bool { return !c.own })
	if fair {
		own := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !c.own })
		if stopped := l.stop(own, wants, short, true); stopped != nil {
			if others {
				return nil, sure
			}
			return stopped, sure
		}
		for i := range list {
			list[i].always = true
		}
		switch stopped := l.stop(list, wants, short, true); {
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
			if stopped := l.stop(list, wants, short, borrowing); stopped != nil {
				return stopped, sure
			}
		}
	}
	if within && q.Reclaims == AnyPriority && q.inCohort() {
		return nil, sure // whoever it is that borrowed it
	}
	return nil, none
}

// want is an amount of a cell, by its place in the ledger.
type want struct {
	cell   int
	amount int64
	fresh  int64 // of it, that the task does not have yet
}

func (l *ledger) wants(need, takes quota.FlavorResourceQuantities) []want {
	list := make([]want, 0, len(need))
	for cell, amount := range need {
		list = append(list, want{l.places[cell], amount, amount - takes[cell]})
	}
	return list
}

// candidates are the tasks that Kueue may stop, in its order.
func (l *ledger) candidates(t Task, short []int, within bool) (list []candidate) {
	q := l.c.Queue
	for _, s := range l.inOrder() {
		c := candidate{stake: s, own: s.account == l.own}
		lower := s.Priority < t.Priority
		switch {
		case c.own && (q.WithinNever || !lower), !c.own && !(q.inCohort() && s.account.exceeds(short) && q.Reclaims.allows(t, *s.Holder)):
			continue
		case !slices.ContainsFunc(short, func(cell int) bool { return s.amounts[cell] > 0 }):
			continue
		}
		c.always = c.own || within || q.WhileBorrowing && lower && (q.Threshold == nil || s.Priority <= *q.Threshold)
		list = append(list, c)
	}
	return list
}

// Compare tells which of two tasks Kueue stops first for one of another queue: the
// lowest, then the newest.
func (h *Holder) Compare(other *Holder) int {
	return cmp.Or(cmp.Compare(h.Priority, other.Priority), other.Since.Compare(h.Since), strings.Compare(h.Workload, other.Workload), strings.Compare(h.UID, other.UID))
}

// inOrder are all that hold something that counts, in the order in which Kueue
// stops them: those of other queues before the own ones.
func (l *ledger) inOrder() []*stake {
	if l.order != nil {
		return l.order
	}
	var others, own []*stake
	amounts := make([]int64, len(l.c.Holders)*len(l.places))
	stakes := make([]stake, len(l.c.Holders))
	for i, h := range l.c.Holders {
		s := &stakes[i]
		s.Holder, s.account, s.amounts = h, l.queues[h.Queue], amounts[:len(l.places)]
		if s.account == nil || !l.fill(s) {
			continue
		}
		if amounts = amounts[len(l.places):]; s.account == l.own {
			own = append(own, s)
		} else {
			others = append(others, s)
		}
	}
	l.order = append(others, own...)
	return l.order
}

// stop takes candidates away until all that is needed fits, and then puts back
// whom it did not take. It leaves the ledger as it was; nil says that it never
// fits.
func (l *ledger) stop(list []candidate, wants []want, short []int, borrowing bool) (stopped []*stake) {
	var gone []*stake
	fits := false
	for _, c := range list {
		if !c.own && (borrowing && !c.always || !c.account.exceeds(short)) {
			continue
		}
		l.take(c.stake)
		gone = append(gone, c.stake)
		if fits = l.takes(wants, borrowing); fits {
			break
		}
	}
	if fits {
		stopped = gone[len(gone)-1:]
		for _, s := range slices.Backward(gone[:len(gone)-1]) {
			if l.put(s); l.takes(wants, borrowing) {
				continue
			}
			l.take(s)
			stopped = append(stopped, s)
		}
		gone = stopped
	}
	for _, s := range gone {
		l.put(s)
	}
	return stopped
}

// holders are those among stakes of the own queue, or of others.
func (l *ledger) holders(stakes []*stake, own bool) []Holder {
	n := 0
	for _, s := range stakes {
		n += b2i((s.account == l.own) == own)
	}
	if n == 0 {
		return nil
	}
	list := make([]Holder, 0, n)
	for _, s := range stakes {
		if (s.account == l.own) == own {
			list = append(list, *s.Holder)
		}
	}
	return list
}

// takes tells whether all that is wanted fits, and where it may not borrow, into
// the own quota.
func (l *ledger) takes(wants []want, borrowing bool) bool {
	for _, want := range wants {
		n := l.at(want.cell)
		if want.amount > n.free() || !borrowing && n.used+want.amount > n.limit.Nominal {
			return false
		}
	}
	return true
}
