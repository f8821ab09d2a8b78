package explain

// ledger is who uses how much of a cluster while tasks are taken away and put
// back. What a cohort shares is summed up once for each cell, and then follows.
type ledger struct {
	c     *Cluster
	sums  map[Cell]sum
	gone  map[string]Amounts // by queue
	order []*Holder          // see inOrder; nil until it is asked for
}

// sum is what a cohort has to share of a cell, and how much of it is used.
type sum struct{ total, used int64 }

func newLedger(c *Cluster) *ledger {
	return &ledger{c: c, sums: map[Cell]sum{}, gone: map[string]Amounts{}}
}

func (l *ledger) used(q *Queue, cell Cell) int64 { return q.Used[cell] - l.gone[q.Name][cell] }

func (l *ledger) take(h Holder) { l.move(h, 1) }
func (l *ledger) put(h Holder)  { l.move(h, -1) }

func (l *ledger) move(h Holder, sign int64) {
	q := l.c.Queues[h.Queue]
	if q == nil {
		return
	}
	gone := l.gone[q.Name]
	if gone == nil {
		gone = Amounts{}
		l.gone[q.Name] = gone
	}
	for cell, amount := range h.Holds {
		keeps, before := notLent(q.Limits[cell]), l.used(q, cell)
		gone[cell] += sign * amount
		if s, ok := l.sums[cell]; ok {
			s.used += max(0, l.used(q, cell)-keeps) - max(0, before-keeps)
			l.sums[cell] = s
		}
	}
}

func (l *ledger) sum(cell Cell) sum {
	if s, ok := l.sums[cell]; ok {
		return s
	}
	s := sum{total: l.c.Shared[cell]}
	for _, q := range l.c.Queues {
		limit := q.Limits[cell]
		s.total += limit.Nominal - notLent(limit)
		s.used += max(0, l.used(q, cell)-notLent(limit))
	}
	l.sums[cell] = s
	return s
}

// exceeds tells whether a queue holds more than its own quota of one of these.
func (l *ledger) exceeds(q *Queue, cells []Cell) bool {
	for _, cell := range cells {
		if l.used(q, cell) > q.Limits[cell].Nominal {
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

func (l *ledger) node(cell Cell) node {
	q := l.c.Queue
	n := node{limit: q.Limits[cell], used: l.used(q, cell), cohort: q.inCohort()}
	if n.cohort {
		n.local, n.parent = notLent(n.limit), l.sum(cell)
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
