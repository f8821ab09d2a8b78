package loopguard

import (
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// window and threshold: a loop is threshold preemptions of one workload within
	// window for one ClusterQueue, none of which but the latest got the preemptor
	// in. Kueue 0.19.2 loops at 0.5 to 2 preemptions a second.
	window    = 60 * time.Second
	threshold = 3
	// steady is how long a preemptor must keep its quota for a preemption to have
	// served it. In a loop of several workloads each is admitted for a moment.
	steady = 10 * time.Second
	// mostAtOnce bounds the preemptions that are counted of one change of a Workload,
	// whose status can have any number.
	mostAtOnce = 1000
	// longestRotation bounds how many workloads are followed as one loop.
	longestRotation = 8
)

// detector finds loops in the changes of Workloads. It is pure: no client, and
// the clock is handed to it. It is not safe for concurrent use.
type detector struct {
	victims    map[types.UID][]attempt
	preemptors map[types.UID]*preemptor
	swept      time.Time
}

// attempt is one preemption of a victim.
type attempt struct {
	at        time.Time // by Kueue, in whole seconds
	seen      time.Time
	preemptor types.UID
	queue     string // ClusterQueue of the preemptor; its UID where Kueue does not name it
	judged    bool
	fruitless bool // the preemptor was not admitted, or lost its quota at once
}

// preemptor is what became of a workload since another was preempted for it.
type preemptor struct {
	last     time.Time // the latest preemption for it
	admitted time.Time // when it last got quota since then; zero for not
	lost     time.Time // when it lost that quota; zero while it has it
	done     bool      // finished, or deleted
}

func newDetector() *detector {
	return &detector{victims: map[types.UID][]attempt{}, preemptors: map[types.UID]*preemptor{}}
}

// preemptions are the latest of a victim, in its order.
type preemptions struct {
	count     int32 // since the last change of the Workload
	preemptor types.UID
	queue     string
	rule      string // Kueue's reason
	at        time.Time
	loop      bool // they are a loop
	since     time.Time
	fruitless int // within the window
}

// update takes in a change of a Workload; before is nil for a new one. victim is the UID
// of its service, or its own. It returns the preemptions that the change consists of, or
// nil.
func (d *detector) update(victim types.UID, before, w *kueue.Workload, now time.Time) *preemptions {
	d.sweep(now)
	if p := d.preemptors[w.UID]; p != nil {
		p.note(w, now)
	}
	if before == nil {
		return nil
	}
	count := min(Preemptions(w)-Preemptions(before), mostAtOnce)
	if count <= 0 {
		return nil
	}
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted == nil {
		return nil
	}
	uid := Preemptor(evicted.Message)
	if uid == "" {
		return nil
	}
	found := &preemptions{count: count, preemptor: uid, queue: pathEnd(preemptorPath, evicted.Message), at: evicted.LastTransitionTime.Time, since: evicted.LastTransitionTime.Time}
	if found.queue == "" {
		found.queue = string(uid)
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted); c != nil && c.Status == metav1.ConditionTrue {
		found.rule = c.Reason
	}
	attempts := d.victims[victim]
	if victim != w.UID && len(attempts) > 0 && !reservedAt(before).After(attempts[len(attempts)-1].at) {
		return nil // Kueue preempted several replicas at once
	}
	for i := range attempts {
		d.judge(&attempts[i], now)
	}
	for range count - 1 { // one change of the Workload can contain several preemptions, without an admission in between
		attempts = append(attempts, attempt{at: found.at, seen: now, preemptor: uid, queue: found.queue, judged: true, fruitless: true})
	}
	attempts = append(attempts, attempt{at: found.at, seen: now, preemptor: uid, queue: found.queue})
	for len(attempts) > 0 && now.Sub(attempts[0].seen) > window {
		attempts = attempts[1:]
	}
	d.victims[victim] = attempts
	p := d.preemptors[uid]
	if p == nil {
		p = &preemptor{}
		d.preemptors[uid] = p
	}
	*p = preemptor{last: now}
	for _, a := range attempts {
		if a.queue == found.queue && a.fruitless {
			if found.fruitless == 0 {
				found.since = a.at
			}
			found.fruitless++
		}
	}
	found.loop = found.fruitless+1 >= threshold
	return found
}

// remove takes in the deletion of a Workload.
func (d *detector) remove(uid types.UID) {
	delete(d.victims, uid)
	if p := d.preemptors[uid]; p != nil {
		p.done = true
	}
}

// served reports whether a workload has quota, or needs none any more, since
// another was last preempted for it.
func (d *detector) served(uid types.UID) bool {
	p := d.preemptors[uid]
	return p != nil && (p.done || !p.admitted.IsZero() && p.lost.IsZero())
}

// ended reports whether a workload finished or was deleted since another was
// last preempted for it.
func (d *detector) ended(uid types.UID) bool {
	p := d.preemptors[uid]
	return p != nil && p.done
}

// rotation returns the other members of a loop in which each workload is
// preempted for the next one, and a victim for its last; nil where there is none.
// The preemptor of such a loop is admitted each time, for a moment.
func (d *detector) rotation(victim types.UID, now time.Time) (members []types.UID) {
	for uid := victim; len(members) < longestRotation; {
		attempts := d.victims[uid]
		if len(attempts) == 0 || now.Sub(attempts[len(attempts)-1].seen) > window {
			return nil
		}
		if uid = attempts[len(attempts)-1].preemptor; uid == victim {
			return members
		}
		members = append(members, uid)
	}
	return nil
}

// judge decides whether an earlier preemption was fruitless.
func (d *detector) judge(a *attempt, now time.Time) {
	if a.judged {
		return
	}
	a.judged = true
	p := d.preemptors[a.preemptor]
	switch {
	case p == nil || p.done:
	case p.admitted.IsZero():
		a.fruitless = true
	case !p.lost.IsZero():
		a.fruitless = p.lost.Sub(p.admitted) < steady
	}
}

// note records the state of a preemptor.
func (p *preemptor) note(w *kueue.Workload, now time.Time) {
	switch reserved := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved); {
	case meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished):
		p.done = true
	case reserved && (p.admitted.IsZero() || !p.lost.IsZero()):
		p.admitted, p.lost = now, time.Time{}
	case !reserved && !p.admitted.IsZero() && p.lost.IsZero():
		p.lost = now
	}
}

// sweep forgets, once a window, what is too old to be part of a loop.
func (d *detector) sweep(now time.Time) {
	if now.Sub(d.swept) < window {
		return
	}
	d.swept = now
	for uid, attempts := range d.victims {
		if now.Sub(attempts[len(attempts)-1].seen) > window {
			delete(d.victims, uid)
		}
	}
	for uid, p := range d.preemptors {
		if now.Sub(p.last) > remembered {
			delete(d.preemptors, uid)
		}
	}
}

// reservedAt returns since when w has quota; zero if it has none.
func reservedAt(w *kueue.Workload) time.Time {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// Preemptions returns how often Kueue has preempted w.
func Preemptions(w *kueue.Workload) (n int32) {
	if w.Status.SchedulingStats == nil {
		return 0
	}
	for _, e := range w.Status.SchedulingStats.Evictions {
		if e.Reason == kueue.WorkloadEvictedByPreemption {
			n += e.Count
		}
	}
	return n
}

// What Kueue's messages (0.16 to 0.19) say of a preemption: nothing else names
// the preemptor.
var (
	preemptorUID  = regexp.MustCompile(`\(UID: ([0-9a-fA-F-]+)`)
	preemptorPath = regexp.MustCompile(`preemptor path: ([^;]+)`)
	preempteePath = regexp.MustCompile(`preemptee path: ([^;]+)`)
)

// Preemptor returns the UID of the Workload that another was preempted for, of
// the message of its Evicted or Preempted condition; empty where it has none.
func Preemptor(message string) types.UID {
	if found := preemptorUID.FindStringSubmatch(message); found != nil {
		return types.UID(found[1])
	}
	return ""
}

// pathEnd returns the ClusterQueue of a path in a message, which leads there from
// the root of its cohorts; empty where there is none.
func pathEnd(path *regexp.Regexp, message string) string {
	found := path.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(found[1][strings.LastIndexByte(found[1], '/')+1:])
}
