package preemptionloops_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// What a loop is to the oracle: a Workload that is preempted loopCount times
// within loopWindow. A loop lasts until no preemption follows for loopWindow.
const (
	loopCount  = 5
	loopWindow = time.Minute
)

// preemption is one growth of a Workload's count of preemptions.
type preemption struct {
	at        time.Time
	n         int32     // how many; a watch may skip versions of an object
	preemptor types.UID // of the last of them; empty where no condition names it
	reason    string
	fruitless bool // the preemptor of the previous one has had no quota since
}

// history is what the oracle records of one Workload.
type history struct {
	uid           types.UID
	namespace     string
	name          string // of its Job
	count         int32  // preemptions so far
	preemptions   []preemption
	usesQuota     bool      // whether quota is reserved for it now
	lastUsedQuota time.Time // when quota was last reserved for it
	reservations  int       // how often quota was reserved for it
	inactive      bool      // spec.active is false
	deactivated   int       // how often spec.active became false
	done          bool      // finished or deleted
}

// oracle counts the preemptions of all Workloads by their status alone.
type oracle struct {
	mu   sync.Mutex
	seen map[types.UID]*history
}

// watchWorkloads starts an oracle that ends with the test.
func watchWorkloads(t testing.TB, c *clustertest.Cluster) *oracle {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o := &oracle{seen: map[types.UID]*history{}}
	informers, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, &kueue.Workload{})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.observe(object, false) },
		UpdateFunc: func(_, object any) { o.observe(object, false) },
		DeleteFunc: func(object any) { o.observe(object, true) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for !handle.HasSynced() {
		time.Sleep(10 * time.Millisecond)
	}
	return o
}

func (o *oracle) observe(object any, deleted bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if w, ok := object.(*kueue.Workload); ok {
		o.note(w, deleted, time.Now())
	}
}

// note adds one version of a Workload to its history.
func (o *oracle) note(w *kueue.Workload, deleted bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.seen[w.UID]
	if h == nil {
		h = &history{uid: w.UID, namespace: w.Namespace, name: w.Name}
		if len(w.OwnerReferences) > 0 {
			h.name = w.OwnerReferences[0].Name
		}
		o.seen[w.UID] = h
	}
	if count := preempted(w); count > h.count {
		preemptor, reason := preemptorOf(w)
		p := preemption{at: now, n: count - h.count, preemptor: preemptor, reason: reason}
		if len(h.preemptions) > 0 {
			last := h.preemptions[len(h.preemptions)-1]
			by := o.seen[last.preemptor]
			p.fruitless = by != nil && !by.done && !by.usesQuota && by.lastUsedQuota.Before(last.at)
		}
		h.preemptions = append(h.preemptions, p)
		h.count = count
	}
	usesQuota := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if usesQuota && !h.usesQuota {
		h.reservations++
	}
	if usesQuota || h.usesQuota {
		h.lastUsedQuota = now
	}
	inactive := w.Spec.Active != nil && !*w.Spec.Active
	if inactive && !h.inactive {
		h.deactivated++
	}
	h.usesQuota, h.inactive = usesQuota, inactive
	h.done = h.done || deleted || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

// preempted returns how often Kueue has preempted a Workload.
func preempted(w *kueue.Workload) (count int32) {
	if w.Status.SchedulingStats == nil {
		return 0
	}
	for _, eviction := range w.Status.SchedulingStats.Evictions {
		if eviction.Reason == kueue.WorkloadEvictedByPreemption {
			count += eviction.Count
		}
	}
	return count
}

var preemptorUID = regexp.MustCompile(`\(UID: ([-0-9a-f]+)`)

// preemptorOf returns for which Workload, and why, one was preempted last. The
// condition keeps its message when it turns False, and loses its reason.
func preemptorOf(w *kueue.Workload) (uid types.UID, reason string) {
	condition := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
	if condition == nil {
		return "", ""
	}
	if found := preemptorUID.FindStringSubmatch(condition.Message); found != nil {
		uid = types.UID(found[1])
	}
	return uid, condition.Reason
}

// loop is a series of preemptions of one Workload.
type loop struct {
	namespace, victim string
	preemptors        []string // the names of their Jobs, in the order of their first preemption
	count             int32
	first, last       time.Time
}

func (l loop) lasts() time.Duration { return l.last.Sub(l.first) }

func (l loop) String() string {
	return fmt.Sprintf("%s/%s by %s: %d in %.1f s", l.namespace, l.victim, strings.Join(l.preemptors, ","), l.count, l.lasts().Seconds())
}

// loops returns the loops of the Workloads in namespaces with a prefix.
func (o *oracle) loops(prefix string) []loop {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []loop
	for _, h := range o.seen {
		if strings.HasPrefix(h.namespace, prefix) {
			found = append(found, o.loopsOf(h)...)
		}
	}
	slices.SortFunc(found, func(a, b loop) int { return a.first.Compare(b.first) })
	return found
}

// loopsOf returns the chains of a Workload's preemptions, with gaps below
// loopWindow, that are dense enough somewhere to be a loop.
func (o *oracle) loopsOf(h *history) []loop {
	var found []loop
	for chain := range chains(h.preemptions) {
		if !dense(chain) {
			continue
		}
		l := loop{namespace: h.namespace, victim: h.name, first: chain[0].at, last: chain[len(chain)-1].at}
		for _, p := range chain {
			l.count += p.n
			name := string(p.preemptor)
			if by := o.seen[p.preemptor]; by != nil {
				name = by.name
			}
			if !slices.Contains(l.preemptors, name) {
				l.preemptors = append(l.preemptors, name)
			}
		}
		found = append(found, l)
	}
	return found
}

// chains cuts preemptions where none happens for loopWindow.
func chains(all []preemption) func(yield func([]preemption) bool) {
	return func(yield func([]preemption) bool) {
		start := 0
		for i := range all {
			if i+1 == len(all) || all[i+1].at.Sub(all[i].at) >= loopWindow {
				if !yield(all[start : i+1]) {
					return
				}
				start = i + 1
			}
		}
	}
}

// dense reports whether loopCount preemptions of a chain are within loopWindow.
func dense(chain []preemption) bool {
	start, count := 0, int32(0)
	for _, p := range chain {
		count += p.n
		for p.at.Sub(chain[start].at) > loopWindow {
			count -= chain[start].n
			start++
		}
		if count >= loopCount {
			return true
		}
	}
	return false
}

// pairs returns how often, at most within loopWindow, one preemptor preempted
// the Workload.
func (h history) pairs() (most int32) {
	for i, p := range h.preemptions {
		count := int32(0)
		for _, q := range h.preemptions[i:] {
			if q.preemptor == p.preemptor && q.at.Sub(p.at) <= loopWindow {
				count += q.n
			}
		}
		most = max(most, count)
	}
	return most
}

// fruitless returns how many preemptions of the Workload were fruitless.
func (h history) fruitless() (count int32) {
	for _, p := range h.preemptions {
		if p.fruitless {
			count += p.n
		}
	}
	return count
}

// of returns copies of the histories in namespaces with a prefix, by the names
// of their Jobs.
func (o *oracle) of(prefix string) map[string]history {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := map[string]history{}
	for _, h := range o.seen {
		if strings.HasPrefix(h.namespace, prefix) {
			found[h.name] = *h
		}
	}
	return found
}

// describe returns one line about the Workloads in namespaces with a prefix.
func (o *oracle) describe(prefix string) string {
	seen := o.of(prefix)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		h := seen[name]
		parts = append(parts, fmt.Sprintf("%s: preempted %d, reserved %d, uses quota %t, inactive %t", name, h.count, h.reservations, h.usesQuota, h.inactive))
	}
	return strings.Join(parts, "; ")
}
