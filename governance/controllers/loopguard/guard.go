package loopguard

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Name is under which name the guard acts: its field manager, its user agent in
// the API server's audit log, and its user in Kuota's audit.
const Name = "kuota-loop-guard"

const (
	// recheckInterval is how often the guard checks a held Workload again: the policy may
	// have changed.
	recheckInterval = 2 * time.Second
	// tryAgain is after how long a write that failed is tried again.
	tryAgain = time.Second
	// strangers is how long after its limit a mark of another process is left to it.
	strangers = 5 * time.Second
	// respect is how long the guard leaves a Workload alone that a person stopped or
	// resumed while it was held.
	respect = 10 * time.Minute
)

// Watcher takes in what the guard sees and does. Its methods return at once.
type Watcher interface {
	// Loop is called when a loop is detected, and again whenever it changes.
	Loop(l Loop)
	// Step is called for each step that belongs into the life of a task.
	Step(s Step)
}

// Step is one thing that the guard saw or did.
type Step struct {
	What  What
	At    time.Time
	Of    Party // whose life it belongs to
	Other Party // the other Workload of the loop
	// Reason is how a hold ended, as in the metric kuota_preemption_loop_holds_total.
	Reason string
}

// What is what happened in a Step.
type What string

// The steps.
const (
	Detected     What = "Detected"
	WasHeld      What = "Held"
	WasReleased  What = "Released"
	WasTakenOver What = "TakenOver" // a person stopped or resumed it during a hold
)

// Audit records what the guard writes.
type Audit interface{ Record(change audit.Change) }

// Guard detects preemption loops and breaks them if the policy does. Its fields
// are set before it runs and not changed any more.
type Guard struct {
	Client   client.Client // reads from a cache of Workloads, queues and the policy; writes as Name
	Live     client.Reader // reads from the API server
	Events   events.EventRecorder
	Audit    Audit
	Watcher  Watcher
	Log      *slog.Logger
	Identity string           // of this process, in marks
	Now      func() time.Time // the clock
	// Find returns a Workload by its UID, nil for one that is not known: read only. The
	// controller of a pod of a Deployment is the Deployment.
	Find func(types.UID) *kueue.Workload
	// Leader elects the replica that acts; nil means that there is only one.
	Leader *leader.Leader
	// Paused reports whether Kuota writes nothing now; nil is never.
	Paused func() bool

	mu       sync.Mutex
	detector *detector
	loops    map[types.UID]*loop     // by victim, see victim
	found    map[types.UID]bool      // marked when the guard began, by another process
	services map[types.UID]types.UID // of replicas, by Workload
}

// Start readies a guard that has seen nothing yet.
func (g *Guard) Start() {
	g.detector, g.loops, g.found, g.services = newDetector(), map[types.UID]*loop{}, map[types.UID]bool{}, map[types.UID]types.UID{}
}

// Loops returns the loops of the last minutes, those that go on first and the
// newest before older ones.
func (g *Guard) Loops() []Loop {
	now := g.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	loops := make([]Loop, 0, len(g.loops))
	for _, l := range g.loops {
		l.expire(now)
		loops = append(loops, l.Loop)
	}
	return byAge(loops)
}

// Observe records a change of a Workload: before is nil for a new one, after is
// nil for one that was deleted. initial reports that it existed when the watch
// began. It returns the Workloads to reconcile.
func (g *Guard) Observe(before, after *kueue.Workload, initial bool) []types.NamespacedName {
	now := g.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(now)
	if after == nil {
		g.detector.remove(before.UID)
		delete(g.loops, before.UID)
		delete(g.found, before.UID)
		delete(g.services, before.UID)
		return g.heldFor(before.UID)
	}
	var due []types.NamespacedName
	_, marked := MarkOf(after)
	switch {
	case !marked:
		delete(g.found, after.UID)
	case initial:
		g.found[after.UID] = true
	}
	if l := g.loops[after.UID]; l != nil && marked {
		l.markSeen = true
	}
	if _, was := MarkOf(before); marked || was {
		due = append(due, client.ObjectKeyFromObject(after))
	}
	if p := g.detector.update(g.victim(after), before, after, now); p != nil && g.preempted(after, p, now) {
		due = append(due, client.ObjectKeyFromObject(after))
	}
	return append(due, g.heldFor(after.UID)...)
}

// heldFor returns the victims that wait for the admission of a preemptor.
func (g *Guard) heldFor(preemptor types.UID) (due []types.NamespacedName) {
	if g.detector.preemptors[preemptor] == nil {
		return nil
	}
	for _, l := range g.loops {
		if l.State == Held && l.mark.Preemptor == preemptor && g.detector.served(preemptor) {
			due = append(due, types.NamespacedName{Namespace: l.Victim.Namespace, Name: l.Victim.Name})
		}
	}
	return due
}

// preempted takes in preemptions of a Workload and reports whether they belong to
// a loop.
func (g *Guard) preempted(w *kueue.Workload, p *preemptions, now time.Time) bool {
	if desired.IsGrowth(w) {
		return false // each preemption of growth is meant to be, and the controller of ElasticJobs backs off
	}
	victim := g.victim(w)
	l := g.loops[victim]
	if l != nil {
		l.expire(now)
	}
	goesOn := l != nil && l.State != Over
	switch {
	case p.loop || goesOn && (l.State == Looping || l.holds[p.preemptor] > 0):
	default:
		return false
	}
	if !goesOn {
		next := &loop{holds: map[types.UID]int{}, Loop: Loop{
			Victim: partyOf(w, pathEnd(preempteePath, evictedMessage(w))), Since: p.since, Detected: now, Changed: now, Preemptions: int32(p.fruitless) - (p.count - 1),
		}}
		if l != nil { // the next hold is longer
			next.holds, next.Holds, next.overruled = l.holds, l.Holds, l.overruled
		}
		l = next
		g.loops[victim] = l
		detected.Inc()
	}
	if victim != w.UID { // a replica is replaced by another one
		l.Victim = partyOf(w, l.Victim.ClusterQueue)
		l.Victim.Service, l.NotHeld = victim, NotHoldable
	}
	if l.Preemptor.UID != p.preemptor {
		l.Preemptor = Party{UID: p.preemptor, ClusterQueue: p.queue}
		if w := g.find(p.preemptor); w != nil {
			l.Preemptor = partyOf(w, p.queue)
		}
	}
	l.Rule, l.Last, l.wanted = p.rule, p.at, true
	l.Preemptions += p.count
	l.enter(Looping, now)
	return true
}

// victim identifies what Kueue preempts: the Deployment that a Workload is a replica of, or
// else the Workload. A replica's Workload is deleted with its pod when it is preempted.
func (g *Guard) victim(w *kueue.Workload) types.UID {
	if o := metav1.GetControllerOfNoCopy(w); o == nil || o.Kind != "Pod" {
		return w.UID
	}
	if o := metav1.GetControllerOfNoCopy(g.known(w)); o.Kind != "Pod" {
		g.services[w.UID] = o.UID
	}
	return cmp.Or(g.services[w.UID], w.UID)
}

// known returns a Workload as Find does, or as it is.
func (g *Guard) known(w *kueue.Workload) *kueue.Workload { return cmp.Or(g.find(w.UID), w) }

// ofService returns the loop whose victim is a replica with this name; nil for none.
func (g *Guard) ofService(replica types.NamespacedName) *loop {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.loops {
		if l.Victim.Service != "" && l.Victim.Namespace == replica.Namespace && l.Victim.Name == replica.Name {
			return l
		}
	}
	return nil
}

func (g *Guard) find(uid types.UID) *kueue.Workload {
	if g.Find == nil {
		return nil
	}
	return g.Find(uid)
}

// expire ends a loop in which nothing happened for a while, by Kueue's times and
// by the clock.
func (l *loop) expire(now time.Time) {
	if (l.State == Released || l.State == Looping) && now.Sub(l.Changed) > over && now.Sub(l.Last) > over {
		l.enter(Over, now)
		l.wanted, l.NotHeld = false, NoReason
	}
}

func (l *loop) enter(state State, now time.Time) {
	if l.State != state {
		l.State, l.Changed = state, now
	}
}

func evictedMessage(w *kueue.Workload) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted); c != nil {
		return c.Message
	}
	return ""
}

// forget drops the loops that are over for long.
func (g *Guard) forget(now time.Time) {
	for uid, l := range g.loops {
		if l.expire(now); l.State == Over && now.Sub(l.Changed) > remembered {
			delete(g.loops, uid)
		}
	}
}
