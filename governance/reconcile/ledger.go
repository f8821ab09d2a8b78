package reconcile

import (
	"maps"
	"sync"

	"kuota.dev/kuota/governance/quota"
)

// ledger keeps what teams are given and what the Cohort lends from coming to
// more than is there, though the two are written by controllers that see each
// other's writes late: a team is given more only once the Cohort was written
// with that in mind, and the Cohort counts what was written for teams before the
// cache shows it. A second console has a ledger of its own, and what both write
// in the same moment may come to too much until they see it.
type ledger struct {
	mu      sync.Mutex
	room    map[string]quota.PoolResources // what the Cohort, as it was last written, leaves to each ClusterQueue; nil while it is being written
	asks    map[string]quota.PoolResources // what queues wait for that it does not leave them
	queues  map[string]quota.PoolResources // what each queue was last given, or may have been
	sharing bool                           // whether a Cohort lends, as far as its controller has seen
	trouble string                         // why it cannot be written; empty when it can
}

// grant tells whether a queue may be written now with a quota: it takes no more
// than it has, or the Cohort leaves room for it. If not, it is kept as asked
// for, and trouble says what is in the way, should that be more than time. What
// is granted counts as written.
func (l *ledger) grant(shares bool, queue string, wanted quota.PoolResources) (ok bool, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, known := l.queues[queue]
	if (shares || l.sharing) && !(known && within(wanted, has)) && !(l.room != nil && within(wanted, l.room[queue])) {
		if l.asks == nil {
			l.asks = map[string]quota.PoolResources{}
		}
		l.asks[queue] = wanted
		return false, l.trouble
	}
	delete(l.asks, queue)
	if l.queues == nil {
		l.queues = map[string]quota.PoolResources{}
	}
	if known {
		wanted = larger(copyOf(wanted), has)
	}
	l.queues[queue] = wanted
	return true, ""
}

// differs tells whether a ClusterQueue may have been written with another quota
// since it was last known to have this one.
func (l *ledger) differs(queue string, given quota.PoolResources) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !within(l.queues[queue], given)
}

// wrote tells that a ClusterQueue has this quota now.
func (l *ledger) wrote(queue string, has quota.PoolResources) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[queue] = has
}

// count adds what was written for queues and what they ask for, and forgets
// the queues that are not among these.
func (l *ledger) count(queues map[string]quota.PoolResources) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, more := range []map[string]quota.PoolResources{l.queues, l.asks} {
		maps.DeleteFunc(more, func(name string, _ quota.PoolResources) bool { return queues[name] == nil })
		for name, given := range more {
			queues[name] = larger(queues[name], given)
		}
	}
}

// close keeps everybody from being given more, while the Cohort is written.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.sharing = nil, true
}

// off lets everybody be given what they ask for: no Cohort lends.
func (l *ledger) off() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sharing, l.trouble = false, ""
}

// open tells what the Cohort leaves to each queue, or why it could not be
// written.
func (l *ledger) open(room map[string]quota.PoolResources, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.trouble = room, trouble
}

// within tells whether a takes no more than b anywhere.
func within(a, b quota.PoolResources) bool {
	for pool, amounts := range a {
		for name, amount := range amounts {
			if amount > b[pool][name] {
				return false
			}
		}
	}
	return true
}

func copyOf(given quota.PoolResources) quota.PoolResources {
	c := quota.PoolResources{}
	for pool, amounts := range given {
		c[pool] = maps.Clone(amounts)
	}
	return c
}
