package explain

import "kuota.dev/kuota/governance/quota"

// ledger is who uses how much of what a task asks for, while tasks are taken away
// and put back. It counts those cells only, each by its place in a row of numbers:
// what one explanation asks of it, it asks for each of many thousand tasks.
type ledger struct {
	c      *Cluster
	places map[quota.FlavorResource]int
	own    *account
	queues map[string]*account
	shared []sum    // of the cohort, by cell
	order  []*stake // see inOrder; nil until it is asked for
	brief  bool     // see Brief
}

// account is what a queue may use, and uses, by cell.
type account struct {
	limits []Limit
	used   []int64
}

// stake is what a task holds, by cell.
type stake struct {
	*Holder
	account *account
	amounts []int64
}

// sum is what a cohort has to share of a cell, and how much of it is used.
type sum struct{ total, used int64 }

// newLedger counts what these demands could use.
func newLedger(c *Cluster, all []demand) *ledger {
	l := &ledger{c: c, places: map[quota.FlavorResource]int{}, queues: make(map[string]*account, len(c.Queues))}
	for _, d := range all {
		for _, m := range d.flavors {
			for _, name := range d.names {
				if cell := (quota.FlavorResource{Flavor: m.flavor, Resource: name}); !l.counts(cell) {
					l.places[cell] = len(l.places)
				}
			}
		}
	}
	l.shared = make([]sum, len(l.places))
	for cell, i := range l.places {
		l.shared[i].total = c.Shared[cell]
	}
	width := len(l.places)
	limits, used, accounts := make([]Limit, len(c.Queues)*width), make([]int64, len(c.Queues)*width), make([]account, len(c.Queues))
	for name, q := range c.Queues {
		a := &accounts[len(l.queues)]
		a.limits, limits = limits[:width], limits[width:]
		a.used, used = used[:width], used[width:]
		for cell, i := range l.places {
			a.limits[i], a.used[i] = q.Limits[cell], q.Used[cell]
			l.share(a, i, 1)
		}
		l.queues[name] = a
	}
	l.own = l.queues[c.Queue.Name]
	return l
}

// share counts what a queue has and uses of what its cohort shares, or for -1 no
// longer does.
func (l *ledger) share(a *account, i int, sign int64) {
	l.shared[i].total += sign * (a.limits[i].Nominal - notLent(a.limits[i]))
	l.shared[i].used += sign * a.lent(i)
}

// limit gives the own queue another limit.
func (l *ledger) limit(cell quota.FlavorResource, to Limit) {
	i := l.places[cell]
	l.share(l.own, i, -1)
	l.own.limits[i] = to
	l.share(l.own, i, 1)
}

func (l *ledger) counts(cell quota.FlavorResource) bool { _, ok := l.places[cell]; return ok }

// stake is what a task holds of what the ledger counts.
func (l *ledger) stake(h *Holder) *stake {
	s := &stake{Holder: h, account: l.queues[h.Queue], amounts: make([]int64, len(l.places))}
	l.fill(s)
	return s
}

// fill tells whether a task holds anything that counts.
func (l *ledger) fill(s *stake) (holds bool) {
	for cell, amount := range s.Holds {
		if i, ok := l.places[cell]; ok && amount > 0 {
			s.amounts[i], holds = amount, true
		}
	}
	return holds
}

func (l *ledger) take(s *stake) { l.move(s, -1) }
func (l *ledger) put(s *stake)  { l.move(s, 1) }

func (l *ledger) move(s *stake, sign int64) {
	if s.account == nil {
		return
	}
	for i, amount := range s.amounts {
		l.share(s.account, i, -1)
		s.account.used[i] += sign * amount
		l.share(s.account, i, 1)
	}
}

// lent is how much a queue uses of what its cohort shares.
func (a *account) lent(i int) int64 { return max(0, a.used[i]-notLent(a.limits[i])) }

// exceeds tells whether a queue holds more than its own quota of one of these
// cells.
func (a *account) exceeds(cells []int) bool {
	for _, i := range cells {
		if a.used[i] > a.limits[i].Nominal {
			return true
		}
	}
	return false
}

// node is the arithmetic of one cell of the own queue in its cohort.
type node struct {
	limit  Limit
	used   int64
	local  int64 // that it does not lend
	parent sum
	cohort bool
}

func (l *ledger) node(cell quota.FlavorResource) node { return l.at(l.places[cell]) }

func (l *ledger) at(i int) node {
	n := node{limit: l.own.limits[i], used: l.own.used[i], cohort: l.c.Queue.inCohort()}
	if n.cohort {
		n.local, n.parent = notLent(n.limit), l.shared[i]
	}
	return n
}

func notLent(l Limit) int64 {
	if l.Lend == nil {
		return 0
	}
	return max(0, l.Nominal-*l.Lend)
}

// free is what the queue could take now.
func (n node) free() int64 {
	if !n.cohort {
		return n.limit.Nominal - n.used
	}
	shared := n.parent.total - n.parent.used
	if n.limit.Borrow != nil {
		shared = min(shared, n.limit.Nominal-n.local-max(0, n.used-n.local)+*n.limit.Borrow)
	}
	return max(0, n.local-n.used) + shared
}

// most is what the queue could ever have.
func (n node) most() int64 {
	if !n.cohort {
		return n.limit.Nominal
	}
	most := n.local + n.parent.total
	if n.limit.Borrow != nil {
		most = min(most, n.limit.Nominal+*n.limit.Borrow)
	}
	return most
}
