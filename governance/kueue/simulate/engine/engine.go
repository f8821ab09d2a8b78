// Package engine runs Kueue's scheduler, caches and queues on a snapshot, in
// virtual time and with a client in memory.
//
// It sets feature gates and other state of its whole process. Only a process whose
// crash costs nothing else may import it: see package simulate.
package engine

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/fairsharing"
	"sigs.k8s.io/kueue/pkg/util/expectations"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
)

// Options bound a run.
type Options struct {
	// Tie selects how ties between queues are broken: Workloads that the scheduler
	// orders by their time of creation may have been created in the same second. It also
	// selects how long evicted Workloads take to end.
	Tie uint64
	// Until ends the run when this Workload, by its key, starts; empty for none.
	Until string
	// UntilAll ends the run when all of these have started once; empty for none.
	UntilAll []string
	// Changed are the keys of Workloads that a change touches. Kueue tries them at once,
	// and others that it found no quota for only when it requeues them.
	Changed map[string]bool
	// Requeue lets Kueue requeue Workloads that it found no quota for a second after the
	// time of the snapshot, as it does when quota changes. Otherwise it requeues when
	// quota becomes free, and once in the end.
	Requeue bool
	// Restarted lets Kueue try all Workloads at once, as it does after a restart.
	Restarted bool
	// Arrivals lets Workloads that were created after the time of the snapshot arrive
	// when they were created. Otherwise all wait from the beginning.
	Arrivals bool
	// Partial returns what was simulated when the deadline of the context passes.
	Partial bool
	// Horizon is how much virtual time is simulated; 0 until all preemptions are
	// over.
	Horizon time.Duration
	// RunTimes is how long a Workload runs from its start, by key, and Remaining how
	// long one that has quota already goes on. One without either does not end.
	RunTimes, Remaining map[string]time.Duration
}

// settleLimit is how long preemptions that lead to further ones are followed, each a
// second after the one before. What does not end by then is a preemption loop.
const settleLimit = time.Minute

// terminationTimes are how long the pods of an evicted Workload take to end; in one run
// all take equally long. It matters whether they end before Kueue requeues, a second
// after what it requeues for.
var terminationTimes = [...]time.Duration{500 * time.Millisecond, 5 * time.Second}

func (r *run) terminationTime() time.Duration {
	return terminationTimes[r.options.Tie%uint64(len(terminationTimes))]
}

// Run schedules a snapshot until nothing changes any more, or ctx ends.
func Run(ctx context.Context, s *simulate.Snapshot, o Options) (*simulate.Outcome, error) {
	r := newRun(s, o)
	err := r.run(ctx)
	if o.Partial && errors.Is(err, context.DeadlineExceeded) {
		r.outcome.Cut = true
		err = r.finish()
	}
	if err != nil {
		return nil, err
	}
	return r.outcome, nil
}

// run is one run of the scheduler.
type run struct {
	options   Options
	snapshot  *simulate.Snapshot
	objects   *objects
	clock     *testclock.FakeClock
	cache     *schdcache.Cache
	queues    *qcache.Manager
	requeuer  interface{ ProcessRequeues(context.Context) int }
	workloads *core.WorkloadReconciler
	scheduler *scheduler.Scheduler
	outcome   *simulate.Outcome
	uids      map[string]string // of Workloads to keys
	had       map[string]bool   // keys of the Workloads that have quota in the snapshot
	ended     map[string]bool   // keys of those that finished since
	waiting   map[string]bool   // keys of Options.UntilAll that have not started yet
	requeued  bool              // requeueAll was called
	requeueAt time.Time         // when queues are requeued next; zero for no plan
	pending   []timer           // by time, then by key
	// patience is how many cycles with the same heads and no effect end a series: the
	// scheduler may try one flavor in each.
	patience int
}

// timer is something that happens to a Workload in virtual time.
type timer struct {
	at   time.Time
	key  client.ObjectKey
	fire func(ctx context.Context, w *kueue.Workload) error
}

func newRun(s *simulate.Snapshot, o Options) *run {
	setWrapper()
	ctx := logr.NewContext(context.Background(), logr.Discard())
	r := &run{options: o, snapshot: s, objects: newObjects(), clock: testclock.NewFakeClock(s.Time), outcome: &simulate.Outcome{}, uids: map[string]string{}, had: map[string]bool{}, ended: map[string]bool{}, waiting: map[string]bool{}}
	expected := expectations.NewStore("preemption")
	fair := s.Configuration.FairSharing
	requeuing := s.Configuration.RequeuingTimestamp
	if requeuing == "" {
		requeuing = config.EvictionTimestamp
	}
	cacheOptions := []schdcache.Option{schdcache.WithFairSharing(fairsharing.Enabled(fair))}
	queueOptions := []qcache.Option{qcache.WithClock(r.clock), qcache.WithPreemptionExpectations(expected), qcache.WithPodsReadyRequeuingTimestamp(requeuing)}
	if of := s.Configuration.Resources; of != nil {
		cacheOptions = append(cacheOptions, schdcache.WithExcludedResourcePrefixes(of.ExcludeResourcePrefixes), schdcache.WithResourceTransformations(of.Transformations))
		queueOptions = append(queueOptions, qcache.WithExcludedResourcePrefixes(of.ExcludeResourcePrefixes), qcache.WithResourceTransformations(of.Transformations))
	}
	for _, n := range s.Namespaces {
		r.objects.namespaces[n.Name] = n
	}
	for _, q := range s.ClusterQueues {
		r.objects.clusterQueues[q.Name] = q
	}
	for _, q := range s.LocalQueues {
		r.objects.localQueues[client.ObjectKeyFromObject(q)] = q
	}
	for _, w := range s.Workloads {
		if workload.HasQuotaReservation(w) {
			key := client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}
			r.objects.admitted[key] = append(r.objects.admitted[key], *w)
		}
	}
	for _, l := range s.LimitRanges {
		r.objects.limitRanges[l.Namespace] = append(r.objects.limitRanges[l.Namespace], *l)
	}
	for _, key := range o.UntilAll {
		r.waiting[key] = true
	}
	r.patience = 2 + len(s.Flavors)
	r.cache = schdcache.New(r.objects, cacheOptions...)
	r.queues, r.requeuer = qcache.NewManagerForUnitTestsWithRequeuer(r.objects, r.cache, queueOptions...)
	r.workloads = core.NewWorkloadReconciler(r.objects, r.queues, r.cache, discard{}, core.WithPreemptionExpectations(expected))
	r.scheduler = scheduler.New(r.queues, r.cache, r.objects, discard{}, scheduler.WithClock(nil, r.clock), scheduler.WithFairSharing(fair),
		scheduler.WithPreemptionExpectations(expected), scheduler.WithPodsReadyRequeuingTimestamp(requeuing))
	r.load(ctx)
	return r
}

// load adds the objects to Kueue's caches and queues. Those that they reject, such as
// Cohorts in a cycle, are inactive or left out, as in Kueue. Workloads that Kueue found no
// quota for wait apart: see tried.
func (r *run) load(ctx context.Context) {
	log := logr.Discard()
	for _, f := range r.snapshot.Flavors {
		r.cache.AddOrUpdateResourceFlavor(log, f.DeepCopy())
	}
	for _, c := range r.snapshot.AdmissionChecks {
		r.cache.AddOrUpdateAdmissionCheck(log, c.DeepCopy())
	}
	for _, q := range r.snapshot.ClusterQueues {
		_ = r.cache.AddClusterQueue(ctx, q.DeepCopy())
		_ = r.queues.AddClusterQueue(ctx, q.DeepCopy())
		if !q.DeletionTimestamp.IsZero() {
			r.cache.TerminateClusterQueue(kueue.ClusterQueueReference(q.Name))
		}
	}
	// Kueue computes the quota of a whole tree for each queue that is added to it.
	for _, c := range r.snapshot.Cohorts {
		if r.cache.AddOrUpdateCohort(c.DeepCopy()) == nil {
			r.queues.AddOrUpdateCohort(ctx, c.DeepCopy())
		}
	}
	for _, q := range r.snapshot.LocalQueues {
		if !stopped(q.Spec.StopPolicy) { // otherwise Kueue removes it from the queues
			_ = r.queues.AddLocalQueue(ctx, q.DeepCopy())
		}
	}
	r.forgetRequeues(ctx)
	for _, w := range r.snapshot.Workloads {
		r.add(w)
	}
	r.drain()
	if r.options.Requeue {
		r.requeueAll()
	}
}

// forgetRequeues forgets that queues are to be requeued because they were added. A queue
// then has Workloads that Kueue found no quota for apart, once it was asked for its head.
func (r *run) forgetRequeues(ctx context.Context) {
	r.requeuer.ProcessRequeues(ctx)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	r.queues.Heads(ended)
}

// requeueSoon plans the requeueing of the queues that Kueue asked for, in the period in
// which it batches these requests.
func (r *run) requeueSoon() {
	if r.requeueAt.IsZero() {
		r.requeueAt = r.clock.Now().Add(time.Second)
	}
}

// requeueAll lets Kueue try all Workloads again.
func (r *run) requeueAll() {
	r.requeued = true
	r.requeueSoon()
	qcache.NotifyRetryInadmissible(r.queues, sets.New(r.queues.GetClusterQueueNames()...))
}

// after plans something for a Workload.
func (r *run) after(d time.Duration, key client.ObjectKey, fire func(context.Context, *kueue.Workload) error) {
	t := timer{at: r.clock.Now().Add(d), key: key, fire: fire}
	i, _ := slices.BinarySearchFunc(r.pending, t, func(a, b timer) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.key.String(), b.key.String())
	})
	r.pending = slices.Insert(r.pending, i, t)
}

// run runs cycles until the scheduler has nothing to do, then what happens next.
func (r *run) run(ctx context.Context) error {
	horizon := r.options.Horizon
	if horizon == 0 {
		horizon = settleLimit
	}
	end := r.snapshot.Time.Add(horizon)
	for {
		if answered, err := r.cycles(ctx); err != nil || answered {
			if err == nil {
				err = r.finish()
			}
			return err
		}
		if len(r.pending) == 0 && r.requeueAt.IsZero() {
			if !r.requeued {
				r.requeueAll()
				continue
			}
			r.outcome.Settled = true
			return r.finish()
		}
		at := r.requeueAt
		requeue := !at.IsZero() && (len(r.pending) == 0 || at.Before(r.pending[0].at))
		if !requeue {
			at = r.pending[0].at
		}
		if at.After(end) {
			return r.finish()
		}
		if at.After(r.clock.Now()) {
			r.clock.SetTime(at)
		}
		if requeue {
			r.requeueAt = time.Time{}
			r.requeuer.ProcessRequeues(ctx)
			continue
		}
		for len(r.pending) > 0 && !r.pending[0].at.After(r.clock.Now()) {
			t := r.pending[0]
			r.pending = r.pending[1:]
			if w := r.objects.workloads[t.key]; w != nil {
				if err := t.fire(logr.NewContext(ctx, logr.Discard()), w.DeepCopy()); err != nil {
					return err
				}
			}
		}
		r.observe()
	}
}

// cycles runs scheduling cycles until none changes anything. A Workload at the head
// of a StrictFIFO queue, and one that waits for the end of those that it preempted,
// is tried in every cycle.
func (r *run) cycles(ctx context.Context) (answered bool, err error) {
	var last []string
	for same := 0; same < r.patience; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		requeued, idle, err := cycle(ctx, r.scheduler)
		if err != nil || idle {
			return false, err
		}
		before := len(r.outcome.Events)
		if r.observe() {
			return true, nil
		}
		if same++; len(r.outcome.Events) > before || !slices.Equal(requeued, last) {
			same = 0
		}
		last = requeued
	}
	return false, nil
}

// observe passes what the scheduler wrote to Kueue's controllers, as its watch does,
// and records it. It reports whether the run has its answer.
func (r *run) observe() (answered bool) {
	keys, before := r.objects.takeChanged()
	for _, key := range keys {
		old, w := before[key], r.objects.workloads[key]
		r.workloads.Update(event.TypedUpdateEvent[*kueue.Workload]{ObjectOld: old, ObjectNew: w})
		had, has := workload.HasQuotaReservation(old), workload.HasQuotaReservation(w)
		if had && (!has || isTrue(w, kueue.WorkloadFinished)) {
			r.requeueSoon()
		}
		switch {
		case !had && has:
			r.record(simulate.Event{Kind: simulate.Started}, w, w)
			r.schedule(w, r.options.RunTimes)
			delete(r.waiting, key.String())
			answered = answered || key.String() == r.options.Until || len(r.options.UntilAll) > 0 && len(r.waiting) == 0
		case isTrue(w, kueue.WorkloadFinished) && !isTrue(old, kueue.WorkloadFinished):
			r.record(simulate.Event{Kind: simulate.Finished}, w, old)
		case has && workloadevict.IsEvicted(w) && !workloadevict.IsEvicted(old):
			e := simulate.Event{Kind: simulate.Evicted, Reason: meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted).Reason}
			if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted); e.Reason == kueue.WorkloadEvictedByPreemption && c != nil {
				e.Kind, e.Reason, e.By = simulate.Preempted, c.Reason, r.preemptor(c)
			}
			r.record(e, w, w)
			r.after(r.terminationTime(), key, r.release)
		}
	}
	return answered
}

// preemptorUID matches the UID that Kueue writes into the message of a preemption.
var preemptorUID = regexp.MustCompile(`\(UID: ([^,)]+)`)

func (r *run) preemptor(c *metav1.Condition) string {
	found := preemptorUID.FindStringSubmatch(c.Message)
	if found == nil {
		return ""
	}
	return r.uids[found[1]]
}
