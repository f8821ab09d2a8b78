package queries

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
)

const (
	// briefsKept is how many brief verdicts are kept, twice at most.
	briefsKept = 2000
	// briefTurn is how long verdicts are computed without a pause, and briefRest
	// how many times as long the pause is: with tens of thousands of tasks a
	// verdict costs milliseconds, and lists must not wait for a hundred.
	briefTurn = 20 * time.Millisecond
	briefRest = 4
	// briefAge is for how long pages show a verdict after it was last known to be current,
	// instead of waiting for a new one. Open pages ask every five seconds.
	briefAge = 10 * time.Second
)

// briefs keeps the verdicts that lists show. A list never waits for one: it shows
// what is kept, and asks for what is missing or older than the last change. Its
// zero value is ready.
//
//	list ── of ──► kept verdicts
//	         └──► wanted ──► work, a turn at a time ──► kept, and listeners notified
//
// A brief verdict names no task and no team but the task's own, so that one serves
// all readers.
type briefs struct {
	mu               sync.Mutex
	now, older       map[tasks.Key]brief
	wanted           map[tasks.Key]*tasks.Task
	waiters          []chan struct{}
	working          bool
	ownNotifications atomic.Uint64 // changes that this notified of itself
}

// brief is a verdict and the count of changes that it was computed at.
type brief struct {
	task    *tasks.Task // as it was
	verdict *explain.Verdict
	changes uint64
	current time.Time // when it was last known to be current
}

// explained reports whether lists show why a task does not run, or not with all
// its pods.
func explained(t *tasks.Task, missing bool) bool {
	switch {
	case t.State.Finished(), t.State == tasks.Stopping, t.State == tasks.Stopped:
		return false
	case t.NoWorkload, t.State.Waiting():
		return true
	}
	return missing || t.State == tasks.Starting && t.AdmittedAt.IsZero()
}

// changes counts what may have changed a verdict.
func (s *Service) changes() uint64 {
	return s.Cluster.TaskChanges.Count() - s.briefs.ownNotifications.Load()
}

// verdicts returns the kept verdict of each task, nil for none. Missing and
// outdated ones are computed in the background; the channel is closed once they
// are, or where every task has one that was current in the last age.
func (s *Service) verdicts(list []*tasks.Task, age time.Duration) ([]*explain.Verdict, <-chan struct{}) {
	b, changes, done, now := &s.briefs, s.changes(), make(chan struct{}), time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	outdated, missing := false, false
	for _, t := range list {
		key := t.Key()
		if kept, ok := b.get(key); ok && kept.task == t && kept.changes >= changes {
			kept.current = now
			b.put(key, kept) // it is in use
			continue
		} else if !ok || now.Sub(kept.current) > age {
			missing = true
		}
		outdated = true
		if b.wanted == nil {
			b.wanted = map[tasks.Key]*tasks.Task{}
		}
		if len(b.wanted) < briefsKept {
			b.wanted[key] = t
		}
	}
	found, without := b.shown(list)
	if missing = missing || without; missing {
		b.waiters = append(b.waiters, done)
	} else {
		close(done)
	}
	if outdated && !b.working {
		b.working = true
		go s.work(!missing)
	}
	return found, done
}

// Verdicts returns why tasks wait now, without names of others. It waits up to patience; nil
// for one that is not computed until then, or has nothing to explain.
func (s *Service) Verdicts(ctx context.Context, list []*tasks.Task, patience time.Duration) []*explain.Verdict {
	items := make([]Item, len(list))
	for i, t := range list {
		items[i].Task = t
	}
	s.explainAll(ctx, items, make([]bool, len(items)), patience, 0)
	found := make([]*explain.Verdict, len(list))
	for i := range items {
		found[i] = items[i].Brief
	}
	return found
}

// kept returns the kept verdict of each task, nil for none.
func (b *briefs) kept(list []*tasks.Task) []*explain.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, _ := b.shown(list)
	return found
}

// shown is kept while b.mu is locked, and reports whether any task has none. An outdated
// verdict stays until there is a new one, unless the task's state changed.
func (b *briefs) shown(list []*tasks.Task) (found []*explain.Verdict, missing bool) {
	found = make([]*explain.Verdict, len(list))
	for i, t := range list {
		if kept, ok := b.get(t.Key()); ok && kept.task.State == t.State && kept.task.NoWorkload == t.NoWorkload {
			found[i] = kept.verdict
		} else {
			missing = true
		}
	}
	return found, missing
}

// next removes a wanted task, one without any verdict first; nil for none.
func (b *briefs) next() (key tasks.Key, t *tasks.Task) {
	for k, task := range b.wanted {
		key, t = k, task
		if _, ok := b.get(k); !ok {
			break
		}
	}
	delete(b.wanted, key)
	return key, t
}

func (b *briefs) get(key tasks.Key) (brief, bool) {
	kept, ok := b.now[key]
	if !ok {
		kept, ok = b.older[key]
	}
	return kept, ok
}

func (b *briefs) put(key tasks.Key, kept brief) {
	if b.now == nil || len(b.now) >= briefsKept {
		b.now, b.older = map[tasks.Key]brief{}, b.now
	}
	b.now[key] = kept
}

// work computes wanted verdicts, in turns, until none is wanted. Where outdated ones are
// shown meanwhile, it lets the pages that show them be rendered first.
func (s *Service) work(shown bool) {
	b := &s.briefs
	if shown {
		time.Sleep(briefRest * briefTurn)
	}
	for {
		began := time.Now()
		differs, left := s.turn(began)
		if differs {
			b.ownNotifications.Add(1)
			s.Cluster.TaskChanges.Notify()
		}
		if !left {
			return
		}
		time.Sleep(briefRest * time.Since(began))
	}
}

// turn computes wanted verdicts for one turn. It reports whether any verdict
// differs from the kept one, and whether any is still wanted.
func (s *Service) turn(began time.Time) (differs, left bool) {
	b, changes := &s.briefs, s.changes()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v, err := s.within(ctx, access.Scope{All: true})
	around := newSurvey(v)
	return b.turn(began, changes, err, func(t *tasks.Task) (*explain.Verdict, error) { return around.brief(ctx, t) })
}

// turn computes wanted verdicts for one turn, unless there is no cluster to explain them by.
// A task that cannot be explained is left out, and the next list wants it again.
func (b *briefs) turn(began time.Time, changes uint64, err error, explained func(*tasks.Task) (*explain.Verdict, error)) (differs, left bool) {
	for {
		b.mu.Lock()
		key, t := b.next()
		if t == nil || err != nil { // without a cluster nothing is explained: the next list wants them again
			clear(b.wanted)
			b.working = false
			for _, waiter := range b.waiters {
				close(waiter)
			}
			b.waiters = nil
			b.mu.Unlock()
			return differs, false
		}
		b.mu.Unlock()
		var verdict *explain.Verdict
		failed := governance.Recovered(func() (err error) {
			verdict, err = explained(t)
			return err
		})
		if failed != nil && !errors.Is(failed, governance.ErrPanic) { // which is not tried again before something changes
			if governance.KindOf(failed) == governance.Unavailable || errors.Is(failed, context.DeadlineExceeded) {
				err = failed
			}
			continue
		}
		b.mu.Lock()
		if was, ok := b.get(key); !ok && verdict != nil || ok && !reflect.DeepEqual(was.verdict, verdict) {
			differs = true
		}
		b.put(key, brief{t, verdict, changes, began})
		left = len(b.wanted) > 0
		b.mu.Unlock()
		if left && time.Since(began) > briefTurn {
			return differs, true
		}
	}
}

// brief returns the verdict of a task in a list, see explain.Brief.
func (s *survey) brief(ctx context.Context, t *tasks.Task) (*explain.Verdict, error) {
	pods, count := s.index.Pods(t)
	q, c, err := s.input(ctx, t, pods, count)
	if q == nil || err != nil {
		return nil, err
	}
	v := explain.Brief(*q, c)
	// Names of others, and what no headline shows, are not kept.
	kept := &explain.Verdict{Constraint: v.Constraint, Shortage: v.Shortage, Fit: v.Fit, MayPreempt: v.MayPreempt, Predecessors: v.Predecessors}
	switch v.Constraint {
	case explain.UncoveredResource, explain.NoPriorityClass, explain.NotIntegrated:
		kept.Detail = v.Detail
	}
	return kept, nil
}
