package reconcile

import (
	"maps"
	"sync"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/types"
)

// ledger keeps what teams are given and what the Cohort lends from coming to
// more than is there, though the two are written by controllers that see each
// other's writes late: a team is given more only once the Cohort was written
// with that in mind, and the Cohort counts what was written for teams before the
// cache shows it. A second console has a ledger of its own, and what both write
// in the same moment may come to too much until they see it.
type ledger struct {
	mu sync.Mutex
	// accounted is the generation of each allocation that the Cohort, as it was
	// last written, leaves room for; nil while it is being written.
	accounted map[types.UID]int64
	sharing   bool                         // whether a Cohort lends, as far as its controller has seen
	trouble   string                       // why it cannot be written; empty when it can
	queues    map[string]allocations.Given // nominal quota that was last written, or may have been, by ClusterQueue
}

// grant tells whether an allocation may be written now: it takes no more than
// it has, or the Cohort leaves room for it. trouble says what is in the way,
// should that be more than time. What is granted counts as written.
func (l *ledger) grant(shares bool, allocation *v1alpha1.ComputeAllocation, queue string, wanted allocations.Given) (ok bool, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, known := l.queues[queue]
	if (shares || l.sharing) && !(known && within(wanted, has)) {
		if l.trouble != "" {
			return false, l.trouble
		}
		if l.accounted[allocation.UID] != allocation.Generation {
			return false, "" // it is about to, or what was read of the allocation is old
		}
	}
	if l.queues == nil {
		l.queues = map[string]allocations.Given{}
	}
	if known {
		wanted = larger(copyOf(wanted), has)
	}
	l.queues[queue] = wanted
	return true, ""
}

// differs tells whether a ClusterQueue may have been written with another quota
// since it was last known to have this one.
func (l *ledger) differs(queue string, given allocations.Given) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !within(l.queues[queue], given)
}

// wrote tells that a ClusterQueue has this quota now.
func (l *ledger) wrote(queue string, has allocations.Given) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[queue] = has
}

// written is what a ClusterQueue may have beyond what the cache shows.
func (l *ledger) written(queue string) allocations.Given {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[queue]
}

// keep forgets the queues that are gone.
func (l *ledger) keep(queues map[string]allocations.Given) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.queues, func(name string, _ allocations.Given) bool { return queues[name] == nil })
}

// close keeps everybody from being given more, while the Cohort is written.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounted, l.sharing = nil, true
}

// off lets everybody be given what they ask for: no Cohort lends.
func (l *ledger) off() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sharing, l.trouble = false, ""
}

// open tells which allocations the Cohort leaves room for, or why it could not
// be written.
func (l *ledger) open(all []v1alpha1.ComputeAllocation, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = trouble
	l.accounted = make(map[types.UID]int64, len(all))
	for i := range all {
		l.accounted[all[i].UID] = all[i].Generation
	}
}

// within tells whether a takes no more than b anywhere.
func within(a, b allocations.Given) bool {
	for pool, amounts := range a {
		for name, amount := range amounts {
			if amount > b[pool][name] {
				return false
			}
		}
	}
	return true
}

func copyOf(given allocations.Given) allocations.Given {
	c := allocations.Given{}
	for pool, amounts := range given {
		c[pool] = maps.Clone(amounts)
	}
	return c
}
