package explain

import (
	"cmp"
	"math"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Contest is a tree of Cohorts in which the first tasks of the ClusterQueues take turns. Its
// usage grows with each task that had its turn. It is not safe for concurrent use.
type Contest struct {
	l        *snapshot
	fair     bool
	lendable map[*node]quota.Resources // by parent
}

// NewContest returns the contest of all queues and Cohorts of a tree, or of one queue without
// a Cohort. fair is whether Kueue shares fairly.
func NewContest(queues map[string]*Queue, cohorts map[string]*Cohort, fair bool) *Contest {
	index := map[quota.FlavorResource]int{}
	add := func(limits map[quota.FlavorResource]Limit) {
		for fr := range limits {
			if _, known := index[fr]; !known {
				index[fr] = len(index)
			}
		}
	}
	for _, q := range queues {
		add(q.Limits)
	}
	for _, c := range cohorts {
		add(c.Limits)
	}
	c := &Contest{l: newTree(&Cluster{Queues: queues, Cohorts: cohorts}, index), fair: fair, lendable: map[*node]quota.Resources{}}
	for _, nodes := range []map[string]*node{c.l.queues, c.l.cohorts} {
		for _, n := range nodes {
			height := 0
			for above := n.parent; above != nil; above = above.parent {
				height++
				above.height = max(above.height, height)
			}
		}
	}
	return c
}

// Contender is a ClusterQueue whose first task Kueue compares with the first tasks of
// others.
type Contender struct {
	Queue   *Queue
	Flavors map[string]kueue.ResourceFlavorSpec
	Contest *Contest
}

// Turn is what Kueue compares of the first tasks of several ClusterQueues, to process
// them one after the other.
type Turn struct {
	// Borrows is the height of the lowest subtree that has quota for the task: 0 within the
	// queue's own. It is not set with fair sharing.
	Borrows int
	// Shares are those of the queue and of the Cohorts above it but the root, once the task
	// has its quota; nil without fair sharing.
	Shares   []Share
	Priority int32
	QueuedAt time.Time
	usage    quota.FlavorResourceQuantities
}

// Share is the dominant resource share of a queue or Cohort.
type Share struct {
	// Borrows reports that the subtree uses more than its quota of a flavor and resource
	// that the task requests.
	Borrows bool
	// Share is the largest borrowed part, in thousandths of what the parent can have,
	// divided by the weight. Weightless reports that the weight is 0, so that it is not
	// divided: the task comes after those of all weights.
	Share      float64
	Weightless bool
}

func (a Share) compare(b Share) int {
	return cmp.Or(compareBool(a.Borrows, b.Borrows), compareBool(a.Weightless, b.Weightless), cmp.Compare(a.Share, b.Share))
}

// at returns the share of the node that is a child of a Cohort at a depth; 0 is the root.
func (a Turn) at(depth int) Share {
	if i := len(a.Shares) - 1 - depth; i >= 0 {
		return a.Shares[i]
	}
	return Share{}
}

// Compare orders turns in a Cohort at a depth below the root as Kueue's scheduler does (0.17 to
// 0.19). With fair sharing the lower share of the Cohort's children is first. Otherwise Kueue
// compares all of a tree at once: quota that is closer comes first. Then the higher priority
// is first, and then the longer wait. Kueue leaves the order of equals to chance.
func (a Turn) Compare(b Turn, depth int) int {
	return cmp.Or(cmp.Compare(a.Borrows, b.Borrows), a.at(depth).compare(b.at(depth)),
		cmp.Compare(b.Priority, a.Priority), a.QueuedAt.Compare(b.QueuedAt))
}

// Turn returns the turn of a task of the queue. Of the pools whose nodes match and in which
// the queue can ever have enough, it gets the one with the closest quota, the first of equals;
// else the first whose nodes match.
func (c *Contender) Turn(t Task, queuedAt time.Time) Turn {
	turn := Turn{Priority: t.Priority, QueuedAt: queuedAt, usage: quota.FlavorResourceQuantities{}}
	borrows := 0
	for _, d := range demands(t, &Cluster{Queue: c.Queue, Flavors: c.Flavors}) {
		chosen, lowest := "", math.MaxInt
		for _, m := range d.flavors {
			if m.mismatch != "" {
				continue
			}
			if height := c.height(d, m.flavor, turn.usage); chosen == "" || height < lowest {
				chosen, lowest = m.flavor, height
			}
		}
		if chosen != "" {
			d.add(turn.usage, chosen)
			borrows = max(borrows, lowest)
		}
	}
	switch own := c.Contest.l.queues[c.Queue.Name]; {
	case own.parent == nil:
	case c.Contest.fair:
		turn.Shares = c.Contest.shares(own, turn.usage)
	default:
		turn.Borrows = borrows
	}
	return turn
}

// height returns the height of the lowest subtree with the queue that has quota in a flavor for
// a demand beside its usage and that of the demands before it: 0 for the queue's own, that of
// the whole tree if no subtree has. It is the largest int if the queue can never have it.
func (c *Contender) height(d demand, flavor string, before quota.FlavorResourceQuantities) (most int) {
	own := c.Contest.l.queues[c.Queue.Name]
	for _, name := range d.resources {
		fr := quota.FlavorResource{Flavor: flavor, Resource: name}
		i, amount := c.Contest.l.index[fr], before[fr].Plus(d.requests[name].Times(d.pods))
		if amount > own.potentialAvailable(i) {
			return math.MaxInt
		}
		n := own.lowestWith(i, amount)
		if n == nil {
			for n = own; n.parent != nil; n = n.parent {
			}
		}
		most = max(most, n.height)
	}
	return most
}

// shares returns Kueue's dominant resource shares of a queue and of the Cohorts above it but
// the root, with more usage of the queue.
func (c *Contest) shares(n *node, more quota.FlavorResourceQuantities) (list []Share) {
	added := make([]resources.Amount, len(c.l.index)) // to the usage of n
	for fr, amount := range more {
		added[c.l.index[fr]] = amount
	}
	for ; n.parent != nil; n = n.parent {
		share, borrowed, lendable := Share{}, quota.Resources{}, c.lendableBy(n.parent)
		for fr, i := range c.l.index {
			if beyond := n.usage[i].Plus(added[i]).Minus(n.subtree[i]); beyond > 0 {
				borrowed[fr.Resource] = borrowed[fr.Resource].Plus(beyond)
				share.Borrows = share.Borrows || more[fr] > 0
			}
			added[i] = max(0, added[i].Minus(n.localAvailable(i)))
		}
		for name, amount := range borrowed {
			if lendable[name] > 0 {
				share.Share = max(share.Share, float64(amount)*1000/float64(lendable[name]))
			}
		}
		if share.Weightless = n.weight == 0 && share.Share > 0; n.weight > 0 {
			share.Share /= n.weight
		}
		list = append(list, share)
	}
	return list
}

// lendableBy returns what a Cohort can ever have, by resource.
func (c *Contest) lendableBy(n *node) quota.Resources {
	if found := c.lendable[n]; found != nil {
		return found
	}
	sum := quota.Resources{}
	for fr, i := range c.l.index {
		sum[fr.Resource] = sum[fr.Resource].Plus(n.potentialAvailable(i))
	}
	c.lendable[n] = sum
	return sum
}

// Take adds the usage of a task that had its turn.
func (c *Contender) Take(t Turn) {
	for fr, amount := range t.usage {
		c.Contest.l.queues[c.Queue.Name].add(c.Contest.l.index[fr], 0, amount)
	}
}

// Considered reports whether Kueue tries to admit a task now. It does not while its
// queue is on hold or inactive, or while the task backs off, for example.
func Considered(t Task, c *Cluster) bool {
	_, stopped := checkPreconditions(t, c)
	return !stopped
}
