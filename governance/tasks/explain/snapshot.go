package explain

import (
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// snapshot is the usage of a cohort, from which workloads are removed and to which
// they are added again. It has only the FlavorResources that a task requests, each
// at an index of dense slices: one explanation reads them for each of many thousand
// tasks.
type snapshot struct {
	c      *Cluster
	index  map[quota.FlavorResource]int
	own    *clusterQueue
	queues map[string]*clusterQueue
	cohort []cohortQuota // of the cohort, by fr
	order  []*workload   // see byPreemptionOrder; nil until first used
	brief  bool          // see Brief
}

// clusterQueue has the limits and the usage of a queue.
type clusterQueue struct {
	limits []Limit
	usage  []resources.Amount
}

// workload is an AdmittedWorkload with its usage.
type workload struct {
	*AdmittedWorkload
	account *clusterQueue
	usage   []resources.Amount
}

// cohortQuota is what a cohort shares of a FlavorResource, and how much of that is
// used.
type cohortQuota struct{ total, usage resources.Amount }

// newSnapshot returns a snapshot of the FlavorResources that these demands could
// use.
func newSnapshot(c *Cluster, all []demand) *snapshot {
	l := &snapshot{c: c, index: map[quota.FlavorResource]int{}, queues: make(map[string]*clusterQueue, len(c.Queues))}
	for _, d := range all {
		for _, m := range d.flavors {
			for _, name := range d.resources {
				if fr := (quota.FlavorResource{Flavor: m.flavor, Resource: name}); !l.has(fr) {
					l.index[fr] = len(l.index)
				}
			}
		}
	}
	l.cohort = make([]cohortQuota, len(l.index))
	for fr, i := range l.index {
		l.cohort[i].total = c.CohortQuota[fr]
	}
	width := len(l.index)
	limits, used, accounts := make([]Limit, len(c.Queues)*width), make([]resources.Amount, len(c.Queues)*width), make([]clusterQueue, len(c.Queues))
	for name, q := range c.Queues {
		a := &accounts[len(l.queues)]
		a.limits, limits = limits[:width], limits[width:]
		a.usage, used = used[:width], used[width:]
		for fr, i := range l.index {
			a.limits[i], a.usage[i] = q.Limits[fr], q.Usage[fr]
			l.addToCohort(a, i, 1)
		}
		l.queues[name] = a
	}
	l.own = l.queues[c.Queue.Name]
	return l
}

// addToCohort adds the quota and usage of a queue to those of its cohort; sign -1
// subtracts them.
func (l *snapshot) addToCohort(a *clusterQueue, i int, sign int64) {
	l.cohort[i].total = l.cohort[i].total.Plus(a.limits[i].Nominal.Minus(localQuota(a.limits[i])).Times(sign))
	l.cohort[i].usage = l.cohort[i].usage.Plus(a.usageFromCohort(i).Times(sign))
}

// limit gives the own queue another limit.
func (l *snapshot) setLimit(fr quota.FlavorResource, to Limit) {
	i := l.index[fr]
	l.addToCohort(l.own, i, -1)
	l.own.limits[i] = to
	l.addToCohort(l.own, i, 1)
}

func (l *snapshot) has(fr quota.FlavorResource) bool { _, ok := l.index[fr]; return ok }

// workload returns h with its usage in the snapshot.
func (l *snapshot) workload(h *AdmittedWorkload) *workload {
	s := &workload{AdmittedWorkload: h, account: l.queues[h.Queue], usage: make([]resources.Amount, len(l.index))}
	l.setUsage(s)
	return s
}

// setUsage reports whether the workload uses any FlavorResource of the snapshot.
func (l *snapshot) setUsage(s *workload) (used bool) {
	for fr, amount := range s.Usage {
		if i, ok := l.index[fr]; ok && amount > 0 {
			s.usage[i], used = amount, true
		}
	}
	return used
}

func (l *snapshot) removeUsage(s *workload) { l.changeUsage(s, -1) }
func (l *snapshot) addUsage(s *workload)    { l.changeUsage(s, 1) }

func (l *snapshot) changeUsage(s *workload, sign int64) {
	if s.account == nil {
		return
	}
	for i, amount := range s.usage {
		l.addToCohort(s.account, i, -1)
		s.account.usage[i] = s.account.usage[i].Plus(amount.Times(sign))
		l.addToCohort(s.account, i, 1)
	}
}

// usageFromCohort returns how much a queue uses of what its cohort shares.
func (a *clusterQueue) usageFromCohort(i int) resources.Amount {
	return max(0, a.usage[i].Minus(localQuota(a.limits[i])))
}

// borrowing reports whether a queue uses more than its nominal quota of any of
// these.
func (a *clusterQueue) borrowing(keys []int) bool {
	for _, i := range keys {
		if a.usage[i] > a.limits[i].Nominal {
			return true
		}
	}
	return false
}

// resourceNode is one FlavorResource of the task's queue in its cohort, as in
// Kueue's resource_node.go.
type resourceNode struct {
	limit      Limit
	usage      resources.Amount
	localQuota resources.Amount // that it does not lend
	parent     cohortQuota
	cohort     bool
}

func (l *snapshot) node(fr quota.FlavorResource) resourceNode { return l.at(l.index[fr]) }

func (l *snapshot) at(i int) resourceNode {
	n := resourceNode{limit: l.own.limits[i], usage: l.own.usage[i], cohort: l.c.Queue.inCohort()}
	if n.cohort {
		n.localQuota, n.parent = localQuota(n.limit), l.cohort[i]
	}
	return n
}

func localQuota(l Limit) resources.Amount {
	if l.LendingLimit == nil {
		return 0
	}
	return max(0, l.Nominal.Minus(*l.LendingLimit))
}

// available returns what the queue can use now.
func (n resourceNode) available() resources.Amount {
	if !n.cohort {
		return n.limit.Nominal.Minus(n.usage)
	}
	shared := n.parent.total.Minus(n.parent.usage)
	if n.limit.BorrowingLimit != nil {
		shared = min(shared, n.limit.Nominal.Minus(n.localQuota).Minus(max(0, n.usage.Minus(n.localQuota))).Plus(*n.limit.BorrowingLimit))
	}
	return max(0, n.localQuota.Minus(n.usage)).Plus(shared)
}

// potentialAvailable returns what the queue can ever have.
func (n resourceNode) potentialAvailable() resources.Amount {
	if !n.cohort {
		return n.limit.Nominal
	}
	most := n.localQuota.Plus(n.parent.total)
	if n.limit.BorrowingLimit != nil {
		most = min(most, n.limit.Nominal.Plus(*n.limit.BorrowingLimit))
	}
	return most
}
