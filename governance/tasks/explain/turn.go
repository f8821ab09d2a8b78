package explain

import (
	"cmp"
	"time"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Contender is a ClusterQueue whose first task Kueue compares with the first tasks of
// others. Its usage grows with each task that had its turn.
type Contender struct {
	Queue   *Queue // Usage is written
	Flavors map[string]kueue.ResourceFlavorSpec
	// FairSharing compares shares: see Turn. Weight is that of the queue, and Lendable
	// what its cohort lends, by resource.
	FairSharing bool
	Weight      float64
	Lendable    quota.Resources
}

// Turn is what Kueue compares of the first tasks of several ClusterQueues, to process
// them one after the other.
type Turn struct {
	// Borrows reports that the queue uses more than its own quota of a pool and
	// resource that the task requests, once the task has it.
	Borrows bool
	// Share is the largest borrowed part, in thousandths of what the cohort lends,
	// divided by the weight; 0 without fair sharing. Weightless reports that the weight
	// is 0, so that it is not divided: the task comes after those of all weights.
	Share      float64
	Weightless bool
	Priority   int32
	QueuedAt   time.Time
	usage      quota.FlavorResourceQuantities
}

// Compare orders turns as Kueue's scheduler does (0.17 to 0.19): within the own quota
// first, then the lower share, then the higher priority, then the longer wait. Kueue
// leaves the order of equals to chance.
func (a Turn) Compare(b Turn) int {
	return cmp.Or(compareBool(a.Borrows, b.Borrows), compareBool(a.Weightless, b.Weightless), cmp.Compare(a.Share, b.Share),
		cmp.Compare(b.Priority, a.Priority), a.QueuedAt.Compare(b.QueuedAt))
}

// Turn returns the turn of a task of the queue. Its pools are the first, in the order
// of the queue, whose nodes match and where it stays within the queue's own quota; else
// the first whose nodes match.
func (c *Contender) Turn(t Task, queuedAt time.Time) Turn {
	turn := Turn{Priority: t.Priority, QueuedAt: queuedAt, usage: quota.FlavorResourceQuantities{}}
	for _, d := range demands(t, &Cluster{Queue: c.Queue, Flavors: c.Flavors}) {
		chosen := ""
		for _, m := range d.flavors {
			if m.mismatch != "" {
				continue
			}
			if chosen == "" {
				chosen = m.flavor
			}
			if c.ownQuotaHas(d, m.flavor, turn.usage) {
				chosen = m.flavor
				break
			}
		}
		if chosen != "" {
			d.add(turn.usage, chosen)
		}
	}
	if !c.Queue.inCohort() {
		return turn
	}
	for fr, amount := range turn.usage {
		turn.Borrows = turn.Borrows || amount > 0 && c.Queue.Usage[fr].Plus(amount) > c.Queue.Limits[fr].Nominal
	}
	if c.FairSharing {
		turn.Share = c.share(turn.usage)
		if turn.Weightless = c.Weight == 0 && turn.Share > 0; c.Weight > 0 {
			turn.Share /= c.Weight
		}
	}
	return turn
}

// ownQuotaHas reports whether the queue's own quota in a flavor covers a demand beside
// its usage and that of the demands before it.
func (c *Contender) ownQuotaHas(d demand, flavor string, before quota.FlavorResourceQuantities) bool {
	for _, name := range d.resources {
		fr := quota.FlavorResource{Flavor: flavor, Resource: name}
		if c.Queue.Usage[fr].Plus(before[fr]).Plus(d.requests[name].Times(d.pods)) > c.Queue.Limits[fr].Nominal {
			return false
		}
	}
	return true
}

// share returns Kueue's dominant resource share of the queue with more usage, before it
// is divided by the weight.
func (c *Contender) share(more quota.FlavorResourceQuantities) (share float64) {
	borrowed := quota.Resources{}
	for fr, limit := range c.Queue.Limits {
		borrowed[fr.Resource] = borrowed[fr.Resource].Plus(max(0, c.Queue.Usage[fr].Plus(more[fr]).Minus(limit.Nominal)))
	}
	for name, amount := range borrowed {
		if lendable := c.Lendable[name]; lendable > 0 {
			share = max(share, float64(amount)*1000/float64(lendable))
		}
	}
	return share
}

// Take adds the usage of a task that had its turn.
func (c *Contender) Take(t Turn) {
	c.Queue.Usage.Add(t.usage)
}

// AddLendable adds what a queue lends to its cohort, by resource.
func AddLendable(to quota.Resources, q *Queue) {
	for fr, limit := range q.Limits {
		to[fr.Resource] = to[fr.Resource].Plus(min(limit.Nominal, ptr.Deref(limit.LendingLimit, limit.Nominal)))
	}
}

// Considered reports whether Kueue tries to admit a task now. It does not while its
// queue is on hold or inactive, or while the task backs off, for example.
func Considered(t Task, c *Cluster) bool {
	_, stopped := checkPreconditions(t, c)
	return !stopped
}
