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
	mu        sync.Mutex
	headroom  map[string]quota.PoolResources // what the Cohort, as it was last written, leaves to each ClusterQueue; nil while it is being written
	requested map[string]quota.PoolResources // what queues wait for that it does not leave them
	written   map[string]quota.PoolResources // what each queue was last given, or may have been
	lending   bool                           // whether a Cohort lends, as far as its controller has seen
	failure   string                         // why it cannot be written; empty when it can
}

// grant tells whether a queue may be written now with a quota: it takes no more
// than it has, or the Cohort leaves room for it. If not, it is kept as asked
// for, and trouble says what is in the way, should that be more than time. What
// is granted counts as written.
func (l *ledger) reserve(shares bool, queue string, wanted quota.PoolResources) (ok bool, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, known := l.written[queue]
	if (shares || l.lending) && !(known && within(wanted, has)) && !(l.headroom != nil && within(wanted, l.headroom[queue])) {
		if l.requested == nil {
			l.requested = map[string]quota.PoolResources{}
		}
		l.requested[queue] = wanted
		return false, l.failure
	}
	delete(l.requested, queue)
	if l.written == nil {
		l.written = map[string]quota.PoolResources{}
	}
	if known {
		wanted = maxQuota(clone(wanted), has)
	}
	l.written[queue] = wanted
	return true, ""
}

// differs tells whether a ClusterQueue may have been written with another quota
// since it was last known to have this one.
func (l *ledger) differs(queue string, given quota.PoolResources) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !within(l.written[queue], given)
}

// wrote tells that a ClusterQueue has this quota now.
func (l *ledger) recordWritten(queue string, has quota.PoolResources) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[queue] = has
}

// count adds what was written for queues and what they ask for, and forgets
// the queues that are not among these.
func (l *ledger) addTo(queues map[string]quota.PoolResources) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, more := range []map[string]quota.PoolResources{l.written, l.requested} {
		maps.DeleteFunc(more, func(name string, _ quota.PoolResources) bool { return queues[name] == nil })
		for name, given := range more {
			queues[name] = maxQuota(queues[name], given)
		}
	}
}

// close keeps everybody from being given more, while the Cohort is written.
func (l *ledger) suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.headroom, l.lending = nil, true
}

// off lets everybody be given what they ask for: no Cohort lends.
func (l *ledger) disable() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lending, l.failure = false, ""
}

// open tells what the Cohort leaves to each queue, or why it could not be
// written.
func (l *ledger) resume(room map[string]quota.PoolResources, trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.headroom, l.failure = room, trouble
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

func clone(given quota.PoolResources) quota.PoolResources {
	c := quota.PoolResources{}
	for pool, amounts := range given {
		c[pool] = maps.Clone(amounts)
	}
	return c
}
