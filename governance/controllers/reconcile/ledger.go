package reconcile

import (
	"maps"
	"sync"
	"time"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger keeps the sum of all nominal quota and of the Cohort's quota within
// the capacity, although two controllers write them and see each other's writes
// late. A nominal quota grows only after the Cohort was written with less, and
// the Cohort counts the quota that was written before the cache shows it. Only
// the leader writes, and begins with an empty ledger: no nominal quota grows
// before CohortReconciler has read whether a Cohort lends. A ledger is safe
// for concurrent use.
type ledger struct {
	mu        sync.Mutex
	headroom  map[string]quota.PoolResources // quota of each ClusterQueue that the Cohort was last written for; nil while it is being written
	requested map[string]quota.PoolResources // quota that ClusterQueues wait for
	written   map[string]quota.PoolResources // quota that each ClusterQueue was last written with, or may have been
	disabled  bool                           // no Cohort lends, as CohortReconciler last read
	failure   string                         // why the Cohort cannot be written; empty if it can
}

// reserve reports whether a ClusterQueue can be written now with the wanted
// quota: it does not grow, or the Cohort was written for it. The quota then
// counts as written. Otherwise it is recorded as requested, and failure is
// the reason if waiting does not help.
func (l *ledger) reserve(shares bool, queue string, wanted quota.PoolResources) (ok bool, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, known := l.written[queue]
	if (shares || !l.disabled) && !(known && within(wanted, has)) && !(l.headroom != nil && within(wanted, l.headroom[queue])) {
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
		wanted = clone(wanted)
		wanted.Raise(has)
	}
	l.written[queue] = wanted
	return true, ""
}

// differs reports whether a ClusterQueue may have been written with more than
// this quota since recordWritten.
func (l *ledger) differs(queue string, nominal quota.PoolResources) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !within(l.written[queue], nominal)
}

// recordWritten records that a ClusterQueue has this quota, and reports whether it may
// have been written with more before.
func (l *ledger) recordWritten(queue string, has quota.PoolResources) (shrinks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shrinks = !within(l.written[queue], has)
	if l.written == nil {
		l.written = map[string]quota.PoolResources{}
	}
	l.written[queue] = has
	return shrinks
}

// atLeast returns the quota of a ClusterQueue that the cache has, raised to what it was
// written with.
func (l *ledger) atLeast(queue string, cached quota.PoolResources) quota.PoolResources {
	l.mu.Lock()
	defer l.mu.Unlock()
	cached.Raise(l.written[queue])
	return cached
}

// addTo raises queues to the written and requested quota, and forgets
// ClusterQueues that are not in it.
func (l *ledger) addTo(queues map[string]quota.PoolResources) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, more := range []map[string]quota.PoolResources{l.written, l.requested} {
		maps.DeleteFunc(more, func(name string, _ quota.PoolResources) bool { return queues[name] == nil })
		for name, nominal := range more {
			queues[name].Raise(nominal)
		}
	}
}

// suspend lets no nominal quota grow while the Cohort is written.
func (l *ledger) suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.headroom, l.disabled = nil, false
}

// disable lets every nominal quota grow: no Cohort lends.
func (l *ledger) disable() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disabled, l.failure = true, ""
}

// resume lets nominal quota grow up to headroom, or records why the Cohort
// cannot be written.
func (l *ledger) resume(headroom map[string]quota.PoolResources, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.headroom, l.failure = headroom, failure
}

// within reports whether no amount of a exceeds that of b.
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

func clone(all quota.PoolResources) quota.PoolResources {
	c := quota.PoolResources{}
	for pool, amounts := range all {
		c[pool] = maps.Clone(amounts)
	}
	return c
}

// lastWriteTTL bounds how long a cached object counts as stale. After an etcd
// restore, resourceVersions are lower than before.
const lastWriteTTL = 10 * time.Second

// lastWrites stores the resourceVersion that each object had after a controller
// wrote it, until the cache has it. Reconciling an older object would repeat the
// write as a conflict, and decide by an outdated status. The zero
// value is ready, and safe for concurrent use.
type lastWrites struct{ byName sync.Map }

type lastWrite struct {
	resourceVersion string
	at              time.Time
}

// record stores the resourceVersion of an object that was just written.
func (w *lastWrites) record(object client.Object) {
	w.byName.Store(object.GetName(), lastWrite{object.GetResourceVersion(), time.Now()})
}

// forget removes an object that no longer exists.
func (w *lastWrites) forget(name string) { w.byName.Delete(name) }

// isStale reports whether an object from the cache is older than the last write.
func (w *lastWrites) isStale(object client.Object) bool {
	value, ok := w.byName.Load(object.GetName())
	if !ok {
		return false
	}
	last, _ := value.(lastWrite)
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resourceVersion)
	if err == nil && order < 0 && time.Since(last.at) < lastWriteTTL {
		return true
	}
	w.byName.CompareAndDelete(object.GetName(), value)
	return false
}
