package explain

import (
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
)

// snapshot is the usage of a tree of Cohorts, from which workloads are removed and to
// which they are added again. It has only the FlavorResources that a task requests, each
// at an index of dense slices: one explanation reads them for each of many thousand
// tasks.
type snapshot struct {
	c       *Cluster
	index   map[quota.FlavorResource]int
	own     *node
	queues  map[string]*node
	cohorts map[string]*node
	order   []*workload // see byPreemptionOrder; nil until first used
	brief   bool        // see Brief
}

// workload is an AdmittedWorkload with its usage.
type workload struct {
	*AdmittedWorkload
	account *node // its queue
	usage   []resources.Amount
}

// newSnapshot returns a snapshot of the FlavorResources that these demands could
// use.
func newSnapshot(c *Cluster, all []demand) *snapshot {
	index := map[quota.FlavorResource]int{}
	for _, d := range all {
		for _, m := range d.flavors {
			for _, name := range d.resources {
				fr := quota.FlavorResource{Flavor: m.flavor, Resource: name}
				if _, known := index[fr]; !known {
					index[fr] = len(index)
				}
			}
		}
	}
	l := newTree(c, index)
	l.own = l.queues[c.Queue.Name]
	for n := l.own.parent; n != nil; n = n.parent {
		n.above = true
	}
	return l
}

// newTree returns a snapshot of the FlavorResources at these indices, without a queue of
// the task.
func newTree(c *Cluster, index map[quota.FlavorResource]int) *snapshot {
	l := &snapshot{c: c, index: index, queues: make(map[string]*node, len(c.Queues)), cohorts: make(map[string]*node, len(c.Cohorts))}
	for name := range c.Cohorts {
		l.cohort(name)
	}
	width := len(l.index)
	nodes, limits, amounts := make([]node, len(c.Queues)), make([]Limit, len(c.Queues)*width), make([]resources.Amount, 2*len(c.Queues)*width)
	for name, q := range c.Queues {
		n := &nodes[len(l.queues)]
		n.name, n.weight = name, q.Weight
		n.under(l.cohort(q.Cohort))
		n.limits, limits = limits[:width], limits[width:]
		n.subtree, n.usage, amounts = amounts[:width], amounts[width:2*width], amounts[2*width:]
		for fr, i := range l.index {
			n.limits[i] = q.Limits[fr]
			n.add(i, n.limits[i].Nominal, q.Usage[fr])
		}
		l.queues[name] = n
	}
	return l
}

// cohort returns the node of a Cohort, which it adds with its ancestors; nil for no name.
func (l *snapshot) cohort(name string) *node {
	if n := l.cohorts[name]; n != nil || name == "" {
		return n
	}
	width := len(l.index)
	n := &node{name: name, limits: make([]Limit, width), subtree: make([]resources.Amount, width), usage: make([]resources.Amount, width)}
	l.cohorts[name] = n
	if o := l.c.Cohorts[name]; o != nil {
		n.title, n.weight = o.Title, o.Weight
		n.under(l.cohort(o.Parent))
		for fr, i := range l.index {
			n.limits[i] = o.Limits[fr]
			n.add(i, n.limits[i].Nominal, 0)
		}
	}
	return n
}

// setLimit gives the own queue another limit.
func (l *snapshot) setLimit(fr quota.FlavorResource, to Limit) { l.own.setLimit(l.index[fr], to) }

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
		s.account.add(i, 0, amount.Times(sign))
	}
}
