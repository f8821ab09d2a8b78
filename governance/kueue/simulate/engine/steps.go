package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
)

// inline runs what the scheduler would run in goroutines of its own.
type inline struct{}

func (inline) Run(f func()) { f() }

var setWrapper = sync.OnceFunc(func() { routine.DefaultWrapper = inline{} })

// discard is an event recorder.
type discard struct{}

func (discard) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// cycle runs one scheduling cycle, and returns the Workloads that the scheduler
// tried without success and put back into their queues, sorted; idle reports that
// no queue had a Workload to schedule. Kueue exports no function for one cycle, but
// logs its begin and end: the context is canceled by the message at the end, and,
// before the scheduler blocks, by the one that there are no heads.
func cycle(ctx context.Context, s *scheduler.Scheduler) (requeued []string, idle bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sink := &cycleSink{cancel: cancel, done: make(chan struct{})}
	if err := s.Start(logr.NewContext(ctx, logr.New(sink))); err != nil {
		return nil, false, err
	}
	<-sink.done
	slices.Sort(sink.requeued)
	return sink.requeued, sink.idle, nil
}

// cycleSink is the logger of one scheduling cycle. The scheduler logs the messages
// that it acts on from one goroutine; done orders them before cycle reads them.
type cycleSink struct {
	cancel   context.CancelFunc
	done     chan struct{}
	idle     bool
	requeued []string
}

// cycleLevel is the level up to which the scheduler logs the messages that cycleSink
// acts on.
const cycleLevel = 3

func (s *cycleSink) Init(logr.RuntimeInfo)          {}
func (s *cycleSink) Enabled(level int) bool         { return level <= cycleLevel }
func (s *cycleSink) Error(error, string, ...any)    {}
func (s *cycleSink) WithValues(...any) logr.LogSink { return s }
func (s *cycleSink) WithName(string) logr.LogSink   { return s }

func (s *cycleSink) Info(_ int, message string, values ...any) {
	switch message {
	case "Obtained ClusterQueue heads":
		if n, ok := value(values, "count").(int); ok && n == 0 {
			s.idle = true
			s.cancel()
		}
	case "Workload re-queued":
		if ref, ok := value(values, "workload").(klog.ObjectRef); ok {
			s.requeued = append(s.requeued, ref.String())
		}
	case "Scheduling cycle complete":
		s.cancel()
		close(s.done)
	}
}

// value returns the value of a key of a log message.
func value(values []any, key string) any {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == key {
			return values[i+1]
		}
	}
	return nil
}

// schedule plans the end of a Workload that has quota, if times has how long it goes
// on.
func (r *run) schedule(w *kueue.Workload, times map[string]time.Duration) {
	left, known := times[simulate.WorkloadKey(w)]
	if !known {
		return
	}
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime
	r.after(max(0, left), client.ObjectKeyFromObject(w), func(ctx context.Context, w *kueue.Workload) error {
		now := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if !workload.HasQuotaReservation(w) || workloadevict.IsEvicted(w) || !now.LastTransitionTime.Equal(&reserved) {
			return nil // preempted meanwhile
		}
		return workloadfinish.Finish(ctx, r.objects, w, "Simulated", "its estimated run time is over", r.clock)
	})
}

func (r *run) record(e simulate.Event, w, of *kueue.Workload) {
	e.After, e.Workload = r.clock.Since(r.snapshot.Time), simulate.WorkloadKey(w)
	if a := of.Status.Admission; a != nil {
		e.ClusterQueue = string(a.ClusterQueue)
	}
	e.Usage = admitted.Usage(of)
	if e.Again = r.had[e.Workload] == (e.Kind == simulate.Started); e.Kind == simulate.Finished {
		r.ended[e.Workload] = true
	}
	r.outcome.Events = append(r.outcome.Events, e)
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
				q.Usage.Add(admitted.Usage(w))
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
