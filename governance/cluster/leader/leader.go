package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// LeaseName is the name of the Lease.
const LeaseName = "kuota"

const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
	// validity is how long after a renewal was sent this replica still acts as the
	// leader. Another replica can acquire the Lease leaseDuration after it.
	validity = leaseDuration - retryPeriod
	// checkInterval is how often Lead checks whether this replica leads.
	checkInterval = 100 * time.Millisecond
	// releaseTimeout bounds how long a release waits for the work of the leader. If the
	// work takes longer, the Lease expires.
	releaseTimeout = 1500 * time.Millisecond
)

// ErrLost is returned by Run once another replica leads: the process must end.
var ErrLost = errors.New("another replica leads now")

// Options configure a Leader.
type Options struct {
	Disabled  bool // this is the only replica: it always leads, without a Lease
	Namespace string
	Identity  string // of this process, unique
	Log       *slog.Logger
}

// Leader is the part of this replica in the election: it leads once, until its process
// ends. A nil *Leader always leads. It is safe for concurrent use.
type Leader struct {
	options Options
	leases  kubernetes.Interface // nil if disabled
	begin   []func(context.Context) error
	begun   []func()
	renewed atomic.Pointer[time.Time] // when the last successful renewal was sent

	mu      sync.Mutex
	elected bool               // the begin functions have returned
	leading context.Context    // ends when another replica may lead
	end     context.CancelFunc // of leading
	works   sync.WaitGroup     // what runs within
	leader  string             // identity of the replica that leads, as last observed
	trouble string             // why the Lease cannot be read or written; empty if it can
}

// New returns a Leader that takes part in no election before Run.
func New(config *rest.Config, options Options) (*Leader, error) {
	l := &Leader{options: options}
	l.leading, l.end = context.WithCancel(context.Background())
	if options.Disabled {
		return l, nil
	}
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2 // so that a lost request can be repeated within the deadline
	var err error
	if l.leases, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return l, nil
}

// OnElected registers what happens when this replica is elected: begin, which may be nil,
// is retried until it succeeds; then begun is called, when Within already runs work, and again
// after each outage during which Within skipped work. begun must not block. OnElected must be
// called before Run.
func (l *Leader) OnElected(begin func(context.Context) error, begun func()) {
	if begin != nil {
		l.begin = append(l.begin, begin)
	}
	l.begun = append(l.begun, begun)
}

// Events returns a channel that receives an event when begun of OnElected is called, by which a
// controller enqueues all of its objects. A nil Leader has none.
func (l *Leader) Events() <-chan event.GenericEvent {
	events := make(chan event.GenericEvent, 1)
	if l != nil {
		l.OnElected(nil, func() {
			select {
			case events <- event.GenericEvent{}:
			default: // an event is pending
			}
		})
	}
	return events
}

// Run takes part in the election until ctx ends, then releases the Lease. It returns ErrLost
// if this replica led and another one does.
func (l *Leader) Run(ctx context.Context) error {
	defer l.lose()
	if l.leases == nil {
		l.lead(ctx)
		<-ctx.Done()
		return nil
	}
	election, stop := context.WithCancel(klog.NewContext(ctx, logr.Discard())) // report and observe log what matters
	defer stop()
	defer context.AfterFunc(l.leading, stop)()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName, Lock: l.lock(), LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: l.lead, OnStoppedLeading: func() {}, OnNewLeader: l.observe},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	elector.Run(election)
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}

func (l *Leader) lock() resourcelock.Interface {
	return &lock{l: l, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: l.options.Namespace, Name: LeaseName}, Client: l.leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
	}}
}

// lock is the Lease. Once this replica has held it, an API server that does not answer is no
// loss: Fence stops writes meanwhile, and only another holder ends the lead. client-go calls
// it from one goroutine at a time.
type lock struct {
	resourcelock.Interface
	l      *Leader
	held   bool
	record *resourcelock.LeaderElectionRecord // as last read
	raw    []byte
	since  time.Time // since when the API server answers
}

// Get implements resourcelock.Interface.
func (k *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.Interface.Get(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		k.since = time.Time{}
		if k.l.report(err); k.held {
			return k.record, k.raw, nil
		}
		return nil, nil, err
	}
	if k.l.report(nil); k.since.IsZero() {
		k.since = time.Now()
	}
	if err == nil {
		if k.record, k.raw = record, raw; k.held && record.HolderIdentity != k.Identity() {
			k.l.lose()
		}
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (k *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(record, func() error { return k.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (k *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	switch {
	case record.HolderIdentity == "":
		return k.release(ctx, record)
	case !k.held && k.record.HolderIdentity != "" && time.Since(k.since) < leaseDuration:
		return errors.New("the leader may renew the Lease first, after an outage that it survived")
	}
	return k.write(record, func() error { return k.Interface.Update(ctx, record) })
}

// release releases the Lease after the work of the leader has ended, so that the next leader
// can begin at once.
func (k *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	k.l.lose()
	ended := make(chan struct{})
	go func() {
		k.l.works.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(releaseTimeout):
		k.l.options.Log.Warn("the Lease is not released, because the work of the leader did not end; it expires", "waited", releaseTimeout)
		return fmt.Errorf("the work of the leader did not end within %s", releaseTimeout)
	}
	return k.Interface.Update(ctx, record)
}

// write writes the Lease. A write that another one came before is tried again after a Get,
// which shows the holder.
func (k *lock) write(record resourcelock.LeaderElectionRecord, write func() error) error {
	sent := time.Now()
	err := write()
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return err
	case err == nil:
		lapsed := k.held && !k.l.valid()
		k.held, k.record = true, &record
		if k.l.renewed.Store(&sent); lapsed && k.l.State().Leads {
			k.l.begins() // work that came due during the outage was skipped
		}
	}
	if k.l.report(err); k.held {
		return nil
	}
	return err
}

// report notes whether the Lease can be read and written, and logs a change.
func (l *Leader) report(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if (trouble == "") != (l.trouble == "") {
		if err != nil {
			l.options.Log.Warn("the Lease of the leader cannot be read or written; retrying", "namespace", l.options.Namespace, "lease", LeaseName, "error", err)
		} else {
			l.options.Log.Info("the Lease of the leader can be read and written again")
		}
	}
	l.trouble = trouble
}

// observe notes which replica leads.
func (l *Leader) observe(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader = identity; identity != "" {
		l.options.Log.Info("leader elected", "leader", identity, "self", identity == l.options.Identity)
	}
}

// lead prepares this replica, and then lets it lead.
func (l *Leader) lead(ctx context.Context) {
	for _, begin := range l.begin {
		for err := begin(ctx); err != nil; err = begin(ctx) {
			if ctx.Err() != nil {
				return
			}
			l.options.Log.Warn("this replica cannot lead yet; retrying", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryPeriod):
			}
		}
	}
	l.mu.Lock()
	l.elected = true
	l.mu.Unlock()
	l.options.Log.Info("this replica leads")
	l.begins()
}

// begins calls what is registered for when Within runs work, or runs it again.
func (l *Leader) begins() {
	for _, begun := range l.begun {
		begun()
	}
}

// lose ends the lead for ever.
func (l *Leader) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.elected && l.leading.Err() == nil {
		l.options.Log.Info("this replica no longer leads")
	}
	l.end()
}

// leads reports whether this replica leads. The caller locks.
func (l *Leader) leads() bool { return l.elected && l.leading.Err() == nil && l.valid() }

// valid reports whether no other replica can have acquired the Lease. It compares
// both the monotonic and the wall clock, because the first one does not advance
// while a machine is suspended.
func (l *Leader) valid() bool {
	if l.leases == nil {
		return true
	}
	sent := l.renewed.Load()
	if sent == nil {
		return false
	}
	return isWithin(time.Now(), *sent, validity)
}

// isWithin reports whether less than d passed since a time, by both clocks.
func isWithin(now, since time.Time, d time.Duration) bool {
	return now.Sub(since) < d && now.Round(0).Sub(since.Round(0)) < d
}

// Within runs do, if this replica leads now. Its context ends when another replica may
// lead. It returns false if it did not run.
func (l *Leader) Within(ctx context.Context, do func(context.Context)) bool {
	if l == nil {
		do(ctx)
		return true
	}
	l.mu.Lock()
	leads := l.leads()
	if leads {
		l.works.Add(1)
	}
	l.mu.Unlock()
	if !leads {
		return false
	}
	defer l.works.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.leading, cancel)()
	do(ctx)
	return true
}

// pauseInterval is how often a request is tried again while Kuota writes nothing.
const pauseInterval = 5 * time.Second

// Reconciler wraps a reconciler so that it drops its requests unless this replica leads, and
// requeues them while paused, which may be nil, reports that Kuota writes nothing. All objects
// are enqueued when a replica is elected: see Events. The controllers of all replicas watch,
// so that a new leader has current caches.
func (l *Leader) Reconciler(of reconcile.Reconciler, paused func() bool) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
		l.Within(ctx, func(ctx context.Context) {
			if paused != nil && paused() {
				result.RequeueAfter = pauseInterval
				return
			}
			result, err = of.Reconcile(ctx, request)
		})
		return result, err
	})
}

// Lead runs do once this replica leads, and again if it returns, until ctx ends or another
// replica may lead. An API server that does not answer does not end it.
func (l *Leader) Lead(ctx context.Context, do func(context.Context)) {
	if l == nil {
		do(ctx)
		return
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		l.Within(ctx, do)
		select {
		case <-ctx.Done():
			return
		case <-l.leading.Done():
			return
		case <-ticker.C:
		}
	}
}

// State is what this replica knows about the election.
type State struct {
	Leads    bool   // this replica leads
	Elects   bool   // there is an election
	Identity string // of this replica
	Leader   string // identity of the replica that leads; empty if none is known
	Trouble  string // why the Lease cannot be read or written; empty if it can
}

// State returns the current state.
func (l *Leader) State() State {
	if l == nil {
		return State{Leads: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{
		Leads: l.leads(), Elects: l.leases != nil, Identity: l.options.Identity, Leader: l.leader, Trouble: l.trouble,
	}
}

var leaderDesc = prometheus.NewDesc("kuota_leader", "1 while this replica leads: it runs the controllers, the loop guard and the recorder.", nil, nil)

// Describe implements prometheus.Collector.
func (l *Leader) Describe(to chan<- *prometheus.Desc) { to <- leaderDesc }

// Collect implements prometheus.Collector.
func (l *Leader) Collect(to chan<- prometheus.Metric) {
	value := 0.0
	if l.State().Leads {
		value = 1
	}
	to <- prometheus.MustNewConstMetric(leaderDesc, prometheus.GaugeValue, value)
}
