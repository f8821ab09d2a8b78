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
	// checkInterval is how often the validity of a term is checked.
	checkInterval = 100 * time.Millisecond
	// releaseTimeout bounds how long a release waits for the work of the term. If the
	// work takes longer, the Lease expires.
	releaseTimeout = 1500 * time.Millisecond
)

// Options configure a Leader.
type Options struct {
	Disabled  bool // this is the only replica: it always leads, without a Lease
	Namespace string
	Identity  string // of this process, unique
	Log       *slog.Logger
}

// Leader is the part of this replica in the election. A nil *Leader always leads.
// It is safe for concurrent use.
type Leader struct {
	options Options
	leases  kubernetes.Interface // nil if disabled
	begin   []func(context.Context) error
	begun   []func()
	renewed atomic.Pointer[time.Time] // when the last successful renewal was sent

	mu      sync.Mutex
	stop    context.CancelFunc // ends the current election
	term    *term              // the last one; nil before the first
	leader  string             // identity of the replica that leads, as last observed
	trouble string             // why the Lease cannot be read or written; empty if it can
}

// term is one period in which this replica leads.
type term struct {
	ctx    context.Context // ends with the term
	cancel context.CancelFunc
	open   bool           // the begin functions have returned
	works  sync.WaitGroup // what runs within the term
}

// New returns a Leader that takes part in no election before Run.
func New(config *rest.Config, options Options) (*Leader, error) {
	l := &Leader{options: options}
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

// OnTerm registers what prepares each term: begin, which may be nil, is retried
// until it succeeds; then begun is called, when Within already runs work. It must be
// called before Run.
func (l *Leader) OnTerm(begin func(context.Context) error, begun func()) {
	if begin != nil {
		l.begin = append(l.begin, begin)
	}
	l.begun = append(l.begun, begun)
}

// Run takes part in the election until ctx ends, then releases the Lease.
func (l *Leader) Run(ctx context.Context) error {
	if l.leases == nil {
		l.lead(ctx)
		<-ctx.Done()
		l.endTerm()
		return nil
	}
	ctx = klog.NewContext(ctx, logr.Discard()) // report and observe log what matters
	for ctx.Err() == nil {
		election, stop := context.WithCancel(ctx)
		l.mu.Lock()
		l.stop = stop
		l.mu.Unlock()
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Name: LeaseName, Lock: l.lock(stop), LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: l.lead, OnStoppedLeading: func() { l.endTerm() }, OnNewLeader: l.observe},
		})
		if err != nil {
			stop()
			return fmt.Errorf("set up leader election: %w", err)
		}
		elector.Run(election)
		stop()
		if ended := l.endTerm(); ended != nil {
			ended.works.Wait() // the next term must not begin before
		}
	}
	return nil
}

func (l *Leader) lock(stop context.CancelFunc) resourcelock.Interface {
	return &lock{l: l, stop: stop, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: l.options.Namespace, Name: LeaseName}, Client: l.leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
	}}
}

// lock notes when the Lease is renewed, and ends the term before it is released.
type lock struct {
	resourcelock.Interface
	l       *Leader
	stop    context.CancelFunc // ends this election
	leader  string             // in the Lease as it was last read
	renewed time.Time          // when the last successful renewal of this election was sent
}

// Get implements resourcelock.Interface.
func (k *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.Interface.Get(ctx)
	if err == nil {
		k.leader = record.HolderIdentity
	}
	if !apierrors.IsNotFound(err) {
		k.l.report(err)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (k *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.renew(func() error { return k.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (k *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		return k.release(ctx, record)
	}
	return k.renew(func() error { return k.Interface.Update(ctx, record) })
}

// release releases the Lease after the work of the term ended. It does not release
// that of another replica: client-go 0.36 tries to after a pause, because it compares
// with the leader that it last observed.
func (k *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	t := k.l.endTerm()
	switch {
	case k.leader != k.Identity():
		return fmt.Errorf("the Lease belongs to %s", k.leader)
	case t != nil && !t.wait(releaseTimeout):
		k.l.options.Log.Warn("the Lease is not released, because the work of the leader did not end; it expires", "waited", releaseTimeout)
		return fmt.Errorf("the work of the leader did not end within %s", releaseTimeout)
	}
	return k.Interface.Update(ctx, record)
}

func (k *lock) renew(write func() error) error {
	sent := time.Now()
	err := write()
	switch {
	case err != nil:
	case !k.renewed.IsZero() && !isWithin(sent, k.renewed, validity):
		// Another replica may have led in between, which client-go does not tell.
		k.l.endTerm()
		k.stop()
		return errors.New("the Lease was renewed too late")
	default:
		k.renewed = sent
		k.l.renewed.Store(&sent)
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // otherwise another replica was faster
		k.l.report(err)
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

// lead begins a term, and ends it when ctx ends or the Lease was not renewed.
func (l *Leader) lead(ctx context.Context) {
	t := &term{}
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.works.Add(1)
	l.mu.Lock()
	if ctx.Err() != nil { // the election ended before this goroutine ran
		l.mu.Unlock()
		return
	}
	l.term = t
	l.mu.Unlock()
	if l.leases != nil {
		go l.check(t)
	}
	defer t.works.Done()
	for _, begin := range l.begin {
		for err := begin(t.ctx); err != nil; err = begin(t.ctx) {
			if t.ctx.Err() != nil {
				return
			}
			l.options.Log.Warn("the term of the leader cannot begin; retrying", "error", err)
			select {
			case <-t.ctx.Done():
			case <-time.After(retryPeriod):
			}
		}
	}
	l.mu.Lock()
	t.open = t.ctx.Err() == nil
	l.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	l.options.Log.Info("this replica leads")
	for _, begun := range l.begun {
		begun()
	}
}

// check ends a term once its last renewal is too old. The election itself may
// notice it later: it waits for a request that the API server does not answer.
func (l *Leader) check(t *term) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-ticker.C:
			if !l.valid() {
				l.endTerm()
				l.mu.Lock()
				stop := l.stop
				l.mu.Unlock()
				stop() // client-go could acquire the Lease again as if it had not lost it
				return
			}
		}
	}
}

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

// endTerm cancels the work of the term, and returns the term; nil if there is none.
func (l *Leader) endTerm() *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.term
	if t == nil {
		return nil
	}
	if t.open {
		l.options.Log.Info("this replica no longer leads")
	}
	t.open = false
	t.cancel()
	return t
}

// wait reports whether the work of a term that was canceled ends within d.
func (t *term) wait(d time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		t.works.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(d):
		return false
	}
}

// current returns the term if work can begin in it, and nil otherwise. The caller
// calls works.Done.
func (l *Leader) current() *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || !l.term.open || !l.valid() {
		return nil
	}
	l.term.works.Add(1)
	return l.term
}

// Within runs do if this replica leads, with a context that also ends with the
// term, and reports whether it ran.
func (l *Leader) Within(ctx context.Context, do func(context.Context)) bool {
	if l == nil {
		do(ctx)
		return true
	}
	t := l.current()
	if t == nil {
		return false
	}
	defer t.works.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	do(ctx)
	return true
}

// EachTerm runs do in each term, until ctx ends.
func (l *Leader) EachTerm(ctx context.Context, do func(context.Context)) {
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
		Leads: l.term != nil && l.term.open && l.valid(), Elects: l.leases != nil, Identity: l.options.Identity, Leader: l.leader, Trouble: l.trouble,
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
