// Package engine runs Kueue's scheduler, caches and queues on a snapshot, in
// virtual time and with a client in memory.
//
// It sets feature gates and other state of its whole process. Only a process whose
// crash costs nothing else may import it: see package simulate.
package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/simulate"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"
)

// Options bound a run.
type Options struct {
	// Tie selects how ties between queues are broken: Workloads that the scheduler
	// orders by their time of creation may have been created in the same second.
	Tie uint64
	// Until ends the run when this Workload, by its key, starts; empty for none.
	Until string
	// UntilAll ends the run when all of these have started once; empty for none.
	UntilAll []string
	// Arrivals lets Workloads that were created after the time of the snapshot arrive
	// when they were created. Otherwise all wait from the beginning.
	Arrivals bool
	// Horizon, RunTimes and Remaining are those of simulate.Question.
	Horizon             time.Duration
	RunTimes, Remaining map[string]time.Duration
}

// settleLimit is how long preemptions that lead to further ones are followed, each a
// second after the one before. What does not end by then is a preemption loop.
const settleLimit = time.Minute

// terminationTime is how long the pods of an evicted Workload take to end. All take
// equally long.
const terminationTime = time.Second

// Run schedules a snapshot until nothing changes any more, or ctx ends.
func Run(ctx context.Context, s *simulate.Snapshot, o Options) (*simulate.Outcome, error) {
	r, err := newRun(s, o)
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
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

func newRun(s *simulate.Snapshot, o Options) (*run, error) {
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
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// load adds the objects to Kueue's caches, as its controllers do after a restart.
func (r *run) load(ctx context.Context) error {
	log := logr.Discard()
	for _, f := range r.snapshot.Flavors {
		r.cache.AddOrUpdateResourceFlavor(log, f.DeepCopy())
	}
	for _, c := range r.snapshot.AdmissionChecks {
		r.cache.AddOrUpdateAdmissionCheck(log, c.DeepCopy())
	}
	for _, c := range r.snapshot.Cohorts {
		if err := r.cache.AddOrUpdateCohort(c.DeepCopy()); err != nil {
			return fmt.Errorf("add cohort %s: %w", c.Name, err)
		}
		r.queues.AddOrUpdateCohort(ctx, c.DeepCopy())
	}
	for _, q := range r.snapshot.ClusterQueues {
		if err := r.cache.AddClusterQueue(ctx, q.DeepCopy()); err != nil {
			return fmt.Errorf("add ClusterQueue %s: %w", q.Name, err)
		}
		if err := r.queues.AddClusterQueue(ctx, q.DeepCopy()); err != nil {
			return fmt.Errorf("add ClusterQueue %s: %w", q.Name, err)
		}
		if !q.DeletionTimestamp.IsZero() {
			r.cache.TerminateClusterQueue(kueue.ClusterQueueReference(q.Name))
		}
	}
	for _, q := range r.snapshot.LocalQueues {
		if stopped(q.Spec.StopPolicy) {
			continue // Kueue removes it from the queues
		}
		if err := r.queues.AddLocalQueue(ctx, q.DeepCopy()); err != nil {
			return fmt.Errorf("add LocalQueue %s/%s: %w", q.Namespace, q.Name, err)
		}
	}
	for _, w := range r.snapshot.Workloads {
		r.add(w)
	}
	r.drain()
	return nil
}

func stopped(p *kueue.StopPolicy) bool { return p != nil && *p != kueue.None }

// add adds a Workload of the snapshot.
func (r *run) add(w *kueue.Workload) {
	if isTrue(w, kueue.WorkloadFinished) {
		return
	}
	copied := *w // shares what it points to, which is read only
	w = &copied
	w.CreationTimestamp.Time = w.CreationTimestamp.Add(r.nudge(w))
	key := client.ObjectKeyFromObject(w)
	if !workload.HasQuotaReservation(w) {
		r.requeue(w)
	}
	r.objects.workloads[key] = w
	r.uids[string(w.UID)] = key.String()
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil && !workload.HasQuotaReservation(w) {
		at := state.RequeueAt.Time
		w.Status.RequeueState = &kueue.RequeueState{Count: state.Count} // Kueue compares the time with the wall clock
		if at.After(r.snapshot.Time) {
			r.after(at.Sub(r.snapshot.Time), key, func(_ context.Context, w *kueue.Workload) error {
				r.requeue(w)
				r.objects.workloads[key] = w
				r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
				return nil
			})
			return
		}
	}
	if r.options.Arrivals && w.CreationTimestamp.After(r.snapshot.Time) {
		r.after(w.CreationTimestamp.Sub(r.snapshot.Time), key, func(_ context.Context, w *kueue.Workload) error {
			r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
			return nil
		})
		return
	}
	r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: w})
	switch {
	case !workload.HasQuotaReservation(w):
	case workloadevict.IsEvicted(w):
		r.had[key.String()] = true
		r.after(terminationTime, key, r.release)
	default:
		r.had[key.String()] = true
		r.schedule(w, r.options.Remaining)
	}
}

// requeue sets the condition without which Kueue's queues do not offer an evicted
// Workload again, as Kueue's controller does when the reason of its eviction is over.
// It replaces the conditions, which are shared.
func (r *run) requeue(w *kueue.Workload) {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	if c == nil || c.Status != metav1.ConditionFalse || !r.evictionOver(w, c.Reason) {
		return
	}
	w.Status.Conditions = slices.Clone(w.Status.Conditions)
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadRequeued, Status: metav1.ConditionTrue, Reason: c.Reason, LastTransitionTime: metav1.NewTime(r.clock.Now())})
}

// evictionOver reports whether what a Workload was evicted for has ended.
func (r *run) evictionOver(w *kueue.Workload, reason string) bool {
	local := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]
	switch reason {
	case kueue.WorkloadDeactivated:
		return workload.IsActive(w)
	case kueue.WorkloadEvictedByLocalQueueStopped:
		return local != nil && !stopped(local.Spec.StopPolicy)
	case kueue.WorkloadEvictedByClusterQueueStopped:
		if local == nil {
			return false
		}
		queue := r.objects.clusterQueues[string(local.Spec.ClusterQueue)]
		return queue != nil && !stopped(queue.Spec.StopPolicy)
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck:
		state := w.Status.RequeueState
		return state == nil || state.RequeueAt == nil || !state.RequeueAt.After(r.clock.Now())
	}
	return false
}

// nudge returns less than a second by which the creation of all Workloads of a
// ClusterQueue is moved. Within a queue, Kueue breaks ties itself.
func (r *run) nudge(w *kueue.Workload) time.Duration {
	queue := ""
	if local := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; local != nil {
		queue = string(local.Spec.ClusterQueue)
		if q := r.objects.clusterQueues[queue]; q != nil && q.UID != "" {
			queue = string(q.UID) // which stays when names are replaced
		}
	}
	h := fnv.New64a()
	h.Write([]byte(queue))
	return time.Duration(rand.New(rand.NewPCG(r.options.Tie, h.Sum64())).Int64N(int64(time.Second)))
}

// drain evicts the Workloads that Kueue's controllers evict: inactive ones, and
// those of queues that are stopped and drained.
func (r *run) drain() {
	for _, w := range r.snapshot.Workloads {
		key := client.ObjectKeyFromObject(w)
		current := r.objects.workloads[key]
		if current == nil || !workload.HasQuotaReservation(current) || workloadevict.IsEvicted(current) {
			continue
		}
		reason := ""
		if q := r.objects.clusterQueues[string(current.Status.Admission.ClusterQueue)]; q != nil && q.Spec.StopPolicy != nil && *q.Spec.StopPolicy == kueue.HoldAndDrain {
			reason = kueue.WorkloadEvictedByClusterQueueStopped
		}
		if q := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; q != nil && q.Spec.StopPolicy != nil && *q.Spec.StopPolicy == kueue.HoldAndDrain {
			reason = kueue.WorkloadEvictedByLocalQueueStopped
		}
		if !workload.IsActive(current) {
			reason = kueue.WorkloadDeactivated
		}
		if reason != "" {
			r.after(0, key, func(ctx context.Context, w *kueue.Workload) error {
				return workloadevict.Evict(ctx, r.objects, discard{}, w, reason, reason, "", r.clock, false, nil, nil, workloadevict.WithLooseOnApply())
			})
		}
	}
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
		if r.requeuer.ProcessRequeues(ctx) > 0 {
			r.clock.Step(time.Second) // the period in which Kueue batches requests to requeue
			continue
		}
		if len(r.pending) == 0 {
			r.outcome.Settled = true
			return r.finish()
		}
		at := r.pending[0].at
		if at.After(end) {
			return r.finish()
		}
		if at.After(r.clock.Now()) {
			r.clock.SetTime(at)
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
		r.outcome.Cycles++
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
			r.after(terminationTime, key, r.release)
		}
	}
	return answered
}

func (r *run) record(e simulate.Event, w, of *kueue.Workload) {
	e.After, e.Workload = r.clock.Since(r.snapshot.Time), simulate.WorkloadKey(w)
	if a := of.Status.Admission; a != nil {
		e.ClusterQueue = string(a.ClusterQueue)
	}
	e.Usage = usage(of)
	if e.Again = r.had[e.Workload] == (e.Kind == simulate.Started); e.Kind == simulate.Finished {
		r.ended[e.Workload] = true
	}
	r.outcome.Events = append(r.outcome.Events, e)
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

// release takes quota from an evicted Workload whose pods ended, as Kueue's
// controller of its job does.
func (r *run) release(ctx context.Context, w *kueue.Workload) error {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if !workload.HasQuotaReservation(w) || evicted == nil || evicted.Status != metav1.ConditionTrue {
		return nil
	}
	return workloadpatching.PatchAdmissionStatus(ctx, r.objects, w, r.clock, func(w *kueue.Workload) (bool, error) {
		workload.SetRequeuedCondition(w, evicted.Reason, evicted.Message, evicted.Reason == kueue.WorkloadEvictedByPreemption || r.evictionOver(w, evicted.Reason))
		workload.UnsetQuotaReservationWithCondition(w, kueue.WorkloadQuotaReservedReasonPendingEvaluation, evicted.Message, r.clock.Now())
		return true, nil
	}, workloadpatching.WithLooseOnApply())
}

// usage returns what an admitted Workload uses.
func usage(w *kueue.Workload) quota.FlavorResourceQuantities {
	sum := quota.FlavorResourceQuantities{}
	for set := range admitted.PodSets(w) {
		for name, amount := range set.Usage {
			sum[quota.FlavorResource{Flavor: set.Flavors[name], Resource: name}] += amount
		}
	}
	return sum
}

// finish records the state at the end.
func (r *run) finish() error {
	for i := range r.outcome.Events {
		if e := &r.outcome.Events[i]; e.Kind == simulate.Started && !r.ended[e.Workload] {
			w := r.objects.workloads[r.key(e.Workload)]
			e.Lost = !workload.HasQuotaReservation(w) || workloadevict.IsEvicted(w)
		}
	}
	r.outcome.Queues, r.outcome.Exceeding, r.outcome.Untried = map[string]simulate.Queue{}, map[string]bool{}, map[string]bool{}
	for name := range r.objects.clusterQueues {
		r.outcome.Queues[name] = simulate.Queue{Usage: quota.FlavorResourceQuantities{}}
	}
	for _, w := range r.objects.workloads {
		name := ""
		switch {
		case isTrue(w, kueue.WorkloadFinished):
		case w.Status.Admission != nil && workload.HasQuotaReservation(w):
			name = string(w.Status.Admission.ClusterQueue)
			if q, ok := r.outcome.Queues[name]; ok {
				for fr, amount := range usage(w) {
					q.Usage[fr] += amount
				}
			}
		default:
			if q := r.objects.localQueues[client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; q != nil && workload.IsActive(w) {
				name = string(q.Spec.ClusterQueue)
				if q, ok := r.outcome.Queues[name]; ok {
					q.Pending++
					r.outcome.Queues[name] = q
					if !r.cache.ClusterQueueActive(kueue.ClusterQueueReference(name)) {
						r.outcome.Untried[simulate.WorkloadKey(w)] = true
					} else if r.exceeds(w) {
						r.outcome.Exceeding[simulate.WorkloadKey(w)] = true
					}
				}
			}
		}
	}
	return nil
}

// exceeds reports whether a pending Workload requests more than its queue can ever
// have. Equal Workloads are tried once, so that only their queue knows the reason.
func (r *run) exceeds(w *kueue.Workload) bool {
	reason, ok := r.queues.GetNoFitReason(w)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); !ok && c != nil {
		reason = c.Reason
	}
	return reason == kueue.WorkloadQuotaReservedReasonExceedsMaxQuota
}

func (r *run) key(of string) client.ObjectKey {
	namespace, name, _ := strings.Cut(of, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}
