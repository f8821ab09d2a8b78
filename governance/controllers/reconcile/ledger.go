package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger keeps the sum of all nominal quota and of the quota of the Cohorts within
// the capacity, and what is below each department within its quota, although two
// controllers write them and see each other's writes late. A nominal quota grows, and a
// ClusterQueue moves to another department, only after the Cohorts were written for it, and
// the Cohorts count what was written before the cache shows it. Only
// the leader writes, and begins with an empty ledger: no nominal quota grows
// before CohortReconciler has read what the Cohorts have. A ledger is safe
// for concurrent use.
type ledger struct {
	mu        sync.Mutex
	granted   map[string]grant   // for each ClusterQueue, as the Cohorts were last written; nil while they are being written
	requested map[string]request // what ClusterQueues wait for
	written   map[string]written // what each ClusterQueue was last written with, or may have been
	disabled  bool               // no Cohort lends and there is no department, as CohortReconciler last read
	failure   string             // why a Cohort cannot be written; empty if all can
}

// grant is what the Cohorts leave to a ClusterQueue.
type grant struct {
	desired.Wish                 // what it may be written with
	wanted       desired.Wish    // what its allocation wants
	refused      desired.Refusal // why that is not granted
}

// request is what a ClusterQueue of a team waits for.
type request struct {
	desired.Wish
	team string
}

// covers reports whether a ClusterQueue may be written with a wish.
func (g grant) covers(wish desired.Wish) bool {
	return g.Department == wish.Department && g.Nominal.Covers(wish.Nominal)
}

// refuses reports whether a wish is what is not granted.
func (g grant) refuses(wish desired.Wish) bool {
	return g.refused != (desired.Refusal{}) && g.wanted.Department == wish.Department && g.wanted.Nominal.Covers(wish.Nominal) && wish.Nominal.Covers(g.wanted.Nominal)
}

// written is the quota of a ClusterQueue and the departments in which it may count.
type written struct {
	departments []string
	nominal     quota.PoolResources
}

// reservation is whether a ClusterQueue can be written.
type reservation struct {
	ok      bool
	failure string // why waiting does not help: a Cohort cannot be written
	refused string // why waiting does not help: the department has not as much left
}

// reserve reports whether a ClusterQueue of a team can be written now as wanted: it does not grow
// or move, or the Cohorts were written for it. It then counts as written. Otherwise it
// is recorded as requested.
func (l *ledger) reserve(shares bool, team, queue string, wanted desired.Wish) reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	has, known := l.written[queue]
	stays := known && slices.Equal(has.departments, []string{wanted.Department}) && has.nominal.Covers(wanted.Nominal)
	grant, is := l.granted[queue]
	if (shares || wanted.Department != "" || !l.disabled) && !stays && !(is && grant.covers(wanted)) {
		if grant.refuses(wanted) {
			return reservation{refused: grant.refused.Message}
		}
		if l.requested == nil {
			l.requested = map[string]request{}
		}
		l.requested[queue] = request{wanted, team}
		return reservation{failure: l.failure}
	}
	delete(l.requested, queue)
	if l.written == nil {
		l.written = map[string]written{}
	}
	now := written{[]string{wanted.Department}, wanted.Nominal}
	if known {
		now.nominal = clone(wanted.Nominal)
		now.nominal.Raise(has.nominal)
		now.departments = union(has.departments, now.departments)
	}
	l.written[queue] = now
	return reservation{ok: true}
}

// differs reports whether a ClusterQueue may have been written with more than
// this quota, or in another department, since recordWritten.
func (l *ledger) differs(queue string, has desired.Wish) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.written[queue]
	return known && (!has.Nominal.Covers(was.nominal) || !slices.Equal(was.departments, []string{has.Department}))
}

// recordWritten records that a ClusterQueue has this quota in this department, and reports
// whether it may have been written with more before, or elsewhere.
func (l *ledger) recordWritten(queue string, has desired.Wish) (shrinks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.written[queue]
	shrinks = known && (!has.Nominal.Covers(was.nominal) || !slices.Equal(was.departments, []string{has.Department}))
	if l.written == nil {
		l.written = map[string]written{}
	}
	l.written[queue] = written{[]string{has.Department}, has.Nominal}
	return shrinks
}

// atLeast returns the quota of a ClusterQueue that the cache has, raised to what it was
// written with.
func (l *ledger) atLeast(queue string, cached quota.PoolResources) quota.PoolResources {
	l.mu.Lock()
	defer l.mu.Unlock()
	cached.Raise(l.written[queue].nominal)
	return cached
}

// addTo raises the ClusterQueues of a tree to what was written and adds the departments in
// which they may count, raises the wishes to what is requested, and forgets ClusterQueues
// that are not in the tree.
func (l *ledger) addTo(tree *desired.Tree, wishes map[string]desired.Wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, was := range l.written {
		q, exists := tree.Queues[name]
		if !exists {
			delete(l.written, name)
			continue
		}
		q = maps.Clone(q)
		for _, department := range was.departments {
			nominal := clone(q[department])
			nominal.Raise(was.nominal)
			q[department] = nominal
		}
		tree.Queues[name] = q
	}
	for name, wanted := range l.requested {
		if _, exists := tree.Queues[name]; !exists {
			delete(l.requested, name)
			continue
		}
		wish, exists := wishes[name]
		if exists && wish.Department == wanted.Department {
			wish.Nominal = clone(wish.Nominal)
			wish.Nominal.Raise(wanted.Nominal)
			wishes[name] = wish
		}
	}
}

// suspend lets nothing grow while the Cohorts are written.
func (l *ledger) suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted, l.disabled = nil, false
}

// disable lets every nominal quota grow: no Cohort lends. It returns the teams that waited.
func (l *ledger) disable() (answered []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disabled, l.failure = true, ""
	for _, request := range l.requested {
		answered = append(answered, request.team)
	}
	return answered
}

// resume lets ClusterQueues become what is granted, or records why the Cohorts
// cannot be written. It returns the teams whose request is answered by that.
func (l *ledger) resume(granted map[string]grant, failure string) (answered []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted, l.failure = granted, failure
	for queue, request := range l.requested {
		if g, is := granted[queue]; failure != "" || is && (g.covers(request.Wish) || g.refuses(request.Wish)) {
			answered = append(answered, request.team)
		}
	}
	return answered
}

// union returns the elements of two lists, each once.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
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
