package explain

import "kuota.dev/kuota/governance/quota"

// ledger is who uses how much of what a task asks for, while tasks are taken away
// and put back. It counts those cells only, each by its place in a row of numbers:
// what one explanation asks of it, it asks for each of many thousand tasks.
type snapshot struct {
	c      *Cluster
	index  map[quota.FlavorResource]int
	own    *clusterQueue
	queues map[string]*clusterQueue
	cohort []cohortQuota // of the cohort, by cell
	order  []*workload   // see inOrder; nil until it is asked for
	brief  bool          // see Brief
}

// account is what a queue may use, and uses, by cell.
type clusterQueue struct {
	limits []Limit
	usage  []int64
}

// stake is what a task holds, by cell.
type workload struct {
	*AdmittedWorkload
	account *clusterQueue
	usage   []int64
}

// sum is what a cohort has to share of a cell, and how much of it is used.
type cohortQuota struct{ total, usage int64 }

// newLedger counts what these demands could use.
func newSnapshot(c *Cluster, all []demand) *snapshot {
	l := &snapshot{c: c, index: map[quota.FlavorResource]int{}, queues: make(map[string]*clusterQueue, len(c.Queues))}
	for _, d := range all {
		for _, m := range d.flavors {
			for _, name := range d.resources {
				if cell := (quota.FlavorResource{Flavor: m.flavor, Resource: name}); !l.has(cell) {
					l.index[cell] = len(l.index)
				}
			}
		}
	}
	l.cohort = make([]cohortQuota, len(l.index))
	for cell, i := range l.index {
		l.cohort[i].total = c.CohortQuota[cell]
	}
	width := len(l.index)
	limits, used, accounts := make([]Limit, len(c.Queues)*width), make([]int64, len(c.Queues)*width), make([]clusterQueue, len(c.Queues))
	for name, q := range c.Queues {
		a := &accounts[len(l.queues)]
		a.limits, limits = limits[:width], limits[width:]
		a.usage, used = used[:width], used[width:]
		for cell, i := range l.index {
			a.limits[i], a.usage[i] = q.Limits[cell], q.Usage[cell]
			l.addToCohort(a, i, 1)
		}
		l.queues[name] = a
	}
	l.own = l.queues[c.Queue.Name]
	return l
}

// share counts what a queue has and uses of what its cohort shares, or for -1 no
// longer does.
func (l *snapshot) addToCohort(a *clusterQueue, i int, sign int64) {
	l.cohort[i].total += sign * (a.limits[i].Nominal - localQuota(a.limits[i]))
	l.cohort[i].usage += sign * a.usageFromCohort(i)
}

// limit gives the own queue another limit.
func (l *snapshot) setLimit(cell quota.FlavorResource, to Limit) {
	i := l.index[cell]
	l.addToCohort(l.own, i, -1)
	l.own.limits[i] = to
	l.addToCohort(l.own, i, 1)
}

func (l *snapshot) has(cell quota.FlavorResource) bool { _, ok := l.index[cell]; return ok }

// stake is what a task holds of what the ledger counts.
func (l *snapshot) workload(h *AdmittedWorkload) *workload {
	s := &workload{AdmittedWorkload: h, account: l.queues[h.Queue], usage: make([]int64, len(l.index))}
	l.setUsage(s)
	return s
}

// fill tells whether a task holds anything that counts.
func (l *snapshot) setUsage(s *workload) (holds bool) {
	for cell, amount := range s.Usage {
		if i, ok := l.index[cell]; ok && amount > 0 {
			s.usage[i], holds = amount, true
		}
	}
	return holds
}

func (l *snapshot) removeUsage(s *workload) { l.changeUsage(s, -1) }
func (l *snapshot) addUsage(s *workload)    { l.changeUsage(s, 1) }

func (l *snapshot) changeUsage(s *workload, sign int64) {
	if s.account == nil {
		return
	}
	for i, amount := range s.usage {
		l.addToCohort(s.account, i, -1)
		s.account.usage[i] += sign * amount
		l.addToCohort(s.account, i, 1)
	}
}

// lent is how much a queue uses of what its cohort shares.
func (a *clusterQueue) usageFromCohort(i int) int64 {
	return max(0, a.usage[i]-localQuota(a.limits[i]))
}

// exceeds tells whether a queue holds more than its own quota of one of these
// cells.
func (a *clusterQueue) borrowing(cells []int) bool {
	for _, i := range cells {
		if a.usage[i] > a.limits[i].Nominal {
			return true
		}
	}
	return false
}

// node is the arithmetic of one cell of the own queue in its cohort.
type resourceNode struct {
	limit      Limit
	usage      int64
	localQuota int64 // that it does not lend
	parent     cohortQuota
	cohort     bool
}

func (l *snapshot) node(cell quota.FlavorResource) resourceNode { return l.at(l.index[cell]) }

func (l *snapshot) at(i int) resourceNode {
	n := resourceNode{limit: l.own.limits[i], usage: l.own.usage[i], cohort: l.c.Queue.inCohort()}
	if n.cohort {
		n.localQuota, n.parent = localQuota(n.limit), l.cohort[i]
	}
	return n
}

func localQuota(l Limit) int64 {
	if l.LendingLimit == nil {
		return 0
	}
	return max(0, l.Nominal-*l.LendingLimit)
}

// free is what the queue could take now.
func (n resourceNode) available() int64 {
	if !n.cohort {
		return n.limit.Nominal - n.usage
	}
	shared := n.parent.total - n.parent.usage
	if n.limit.BorrowingLimit != nil {
		shared = min(shared, n.limit.Nominal-n.localQuota-max(0, n.usage-n.localQuota)+*n.limit.BorrowingLimit)
	}
	return max(0, n.localQuota-n.usage) + shared
}

// most is what the queue could ever have.
func (n resourceNode) potentialAvailable() int64 {
	if !n.cohort {
		return n.limit.Nominal
	}
	most := n.localQuota + n.parent.total
	if n.limit.BorrowingLimit != nil {
		most = min(most, n.limit.Nominal+*n.limit.BorrowingLimit)
	}
	return most
}
