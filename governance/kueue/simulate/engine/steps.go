package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/routine"
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
