package tasks

import (
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Index holds all tasks, ready to be filtered, sorted and counted. It is filled
// by a watch of Workloads; a change costs what its own task costs, and a question
// what its answer costs.
type Index struct {
	now func() time.Time

	mu      sync.Mutex
	tasks   map[groupKey]*Task
	parts   map[groupKey][]*kueue.Workload
	group   map[types.UID]groupKey // of each Workload
	named   map[address][]*Task
	spaces  map[string]map[*Task]struct{} // by namespace
	queues  map[queueKey]*order           // tasks that wait, by LocalQueue
	orders  map[Column]*order             // of all tasks, once somebody asked for them
	classes map[classKey]*tally
	holding *order                                    // tasks that hold quota, in the order in which Kueue stops them
	used    map[string]quota.FlavorResourceQuantities // by ClusterQueue
	kinds   map[string]int                            // how many tasks are of each
	pools   map[string]int
	started time.Time // since when it counts
	oldest  time.Time // period that tallies tell apart

	jobs      map[groupKey]*job // that can be tasks without a Workload
	jobsIn    map[string]map[groupKey]struct{}
	children  map[member]map[types.UID]struct{} // jobs by the job that they are part of
	governed  map[string]bool                   // namespaces
	pods      map[types.UID]*Pod
	podsBy    map[member]map[*Pod]struct{} // by their controller
	podsIn    map[member]map[*Pod]struct{} // by their group
	loads     map[string]*load             // by node
	requests  requestSets
	amounts   amountSets
	unready   int               // tasks that were admitted and whose pods are not all ready
	complete  bool              // all Workloads of the start were told of
	podsKnown bool              // all pods were
	waits     map[groupKey]bool // jobs that are looked at again in a moment
	notify    func()            // tells that something changed by time alone; nil tells nobody
	life      life
	loops     map[types.UID][]*loop // preemption loops, by the Workload that is preempted
	recording recording
}

type groupKey struct{ namespace, uid string }

type address struct{ namespace, kind, name string }

// member is what belongs to something of the same namespace: to the object with a
// UID, or to the group with a name.
type member struct{ namespace, of string }

type queueKey struct{ namespace, queue string }

// NewIndex is an empty index. now is the time.
func NewIndex(now func() time.Time) *Index {
	holding := newOrder(inLine)
	holding.takes = func(t *Task) bool { return len(t.AdmittedWorkloads) > 0 }
	return &Index{
		now: now, holding: holding, tasks: map[groupKey]*Task{}, parts: map[groupKey][]*kueue.Workload{}, group: map[types.UID]groupKey{},
		named: map[address][]*Task{}, spaces: map[string]map[*Task]struct{}{}, queues: map[queueKey]*order{},
		orders: map[Column]*order{}, classes: map[classKey]*tally{}, used: map[string]quota.FlavorResourceQuantities{}, kinds: map[string]int{}, pools: map[string]int{}, started: now(),
		jobs: map[groupKey]*job{}, jobsIn: map[string]map[groupKey]struct{}{}, children: map[member]map[types.UID]struct{}{}, governed: map[string]bool{},
		pods: map[types.UID]*Pod{}, podsBy: map[member]map[*Pod]struct{}{}, podsIn: map[member]map[*Pod]struct{}{}, waits: map[groupKey]bool{}, loads: map[string]*load{}, loops: map[types.UID][]*loop{},
	}
}

// Handler takes in what a watch of Workloads tells.
func (x *Index) Handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if w, ok := object.(*kueue.Workload); ok {
				x.set(w, first)
			}
		},
		UpdateFunc: func(_, object any) {
			if w, ok := object.(*kueue.Workload); ok {
				x.set(w, false)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if w, ok := object.(*kueue.Workload); ok {
				x.drop(w)
			}
		},
	}
}

// set takes in a Workload as it is now. first says that it was there before this
// process.
func (x *Index) set(w *kueue.Workload, first bool) {
	_, _, uid := owner(w)
	key := groupKey{w.Namespace, uid}
	x.mu.Lock()
	defer x.mu.Unlock()
	if was, ok := x.group[w.UID]; ok && was != key { // somebody gave it another owner
		x.without(was, w.UID)
	}
	x.group[w.UID] = key
	if at := partOf(x.parts[key], w.UID); at < 0 {
		x.parts[key] = append(x.parts[key], w)
	} else {
		x.parts[key][at] = w
	}
	x.make(key, first)
	x.regroup(w)
}

// orphaned tells whether the job of these Workloads was deleted, and they will be
// some moments later: Kueue ended one for that, or of the slices of an elastic job
// only those are left that others took the place of.
func orphaned(parts []*kueue.Workload) bool {
	outgrown := 0
	for _, w := range parts {
		switch c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); {
		case c == nil || c.Status != metav1.ConditionTrue:
		case c.Reason == kueue.WorkloadFinishedReasonOwnerNotFound:
			return true
		case c.Reason == kueue.WorkloadSliceReplaced:
			outgrown++
		}
	}
	return outgrown == len(parts)
}

func (x *Index) drop(w *kueue.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key, ok := x.group[w.UID]; ok {
		x.without(key, w.UID)
		x.regroup(w)
	}
}

// regroup looks again at the pods of a group, which are a task by themselves only
// while they have no Workload.
func (x *Index) regroup(w *kueue.Workload) {
	if kind, name, _ := owner(w); kind == podGroup {
		x.make(groupKey{w.Namespace, groupUID(name)}, false)
	}
}

func (x *Index) without(key groupKey, uid types.UID) {
	delete(x.group, uid)
	unlink(x.parts, key, partOf(x.parts[key], uid))
	x.make(key, false)
	delete(x.loops, uid)
}

// partOf is where a Workload stands among those of a task; -1 for nowhere.
func partOf(parts []*kueue.Workload, uid types.UID) int {
	return slices.IndexFunc(parts, func(w *kueue.Workload) bool { return w.UID == uid })
}

// make makes a task anew of its Workloads, or of a job that has none.
func (x *Index) make(key groupKey, first bool) {
	before := x.tasks[key]
	var t *Task
	if parts := x.parts[key]; len(parts) > 0 && orphaned(parts) {
		// It is gone, as if they were.
	} else if len(parts) > 0 {
		t = FromWorkloads(parts, before)
		t.Usage, t.Requests = x.requests.of(t.Usage), x.requests.of(t.Requests)
		for i := range t.AdmittedWorkloads {
			t.AdmittedWorkloads[i].Usage = x.amounts.of(t.AdmittedWorkloads[i].Usage)
		}
	} else if j := x.bare(key); j != nil {
		t = x.fromJob(j)
	}
	if before != nil {
		x.unlist(before)
		delete(x.tasks, key)
	}
	if t != nil {
		x.tasks[key] = t
		x.list(t)
	}
	x.note(before, t, first)
	if first && (before == nil || before.NoWorkload) && t != nil {
		if before != nil {
			x.count(before, nil)
		}
		x.countOnly(t)
	} else {
		x.count(before, t)
	}
}

func (t *Task) address() address {
	return address{t.Namespace, strings.ToLower(t.Kind), t.Name}
}

func (x *Index) list(t *Task) {
	x.unready += b2i(t.unready())
	x.named[t.address()] = append(x.named[t.address()], t)
	put(x.spaces, t.Namespace, t)
	x.kinds[t.Kind]++
	for _, pool := range t.Pools {
		x.pools[pool]++
	}
	for _, o := range x.orders {
		o.put(t)
	}
	for _, h := range t.AdmittedWorkloads {
		x.addUsed(h.Queue, h.Usage, 1)
	}
	x.holding.put(t)
	if t.queued() {
		q := queueKey{t.Namespace, t.Queue}
		if x.queues[q] == nil {
			x.queues[q] = newOrder(inQueue)
		}
		x.queues[q].put(t)
	}
}

func (x *Index) unlist(t *Task) {
	x.unready -= b2i(t.unready())
	unlink(x.named, t.address(), slices.Index(x.named[t.address()], t))
	take(x.spaces, t.Namespace, t)
	less(x.kinds, t.Kind)
	for _, pool := range t.Pools {
		less(x.pools, pool)
	}
	for _, o := range x.orders {
		o.remove(t)
	}
	for _, h := range t.AdmittedWorkloads {
		x.addUsed(h.Queue, h.Usage, -1)
	}
	x.holding.remove(t)
	if t.queued() {
		q := queueKey{t.Namespace, t.Queue}
		if x.queues[q].remove(t); x.queues[q].empty() {
			delete(x.queues, q)
		}
	}
}

func put[K, V comparable](in map[K]map[V]struct{}, key K, value V) {
	set := in[key]
	if set == nil {
		set = make(map[V]struct{}, 1)
		in[key] = set
	}
	set[value] = struct{}{}
}

func take[K, V comparable](from map[K]map[V]struct{}, key K, value V) {
	delete(from[key], value)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// unlink takes one out of a short list; at is -1 for none.
func unlink[K comparable, V any](from map[K][]V, key K, at int) {
	switch few := from[key]; {
	case at < 0:
	case len(few) == 1:
		delete(from, key)
	default:
		from[key] = slices.Delete(few, at, at+1)
	}
}

func (x *Index) addUsed(queue string, amounts quota.FlavorResourceQuantities, sign int64) {
	used := x.used[queue]
	if used == nil {
		used = quota.FlavorResourceQuantities{}
		x.used[queue] = used
	}
	for cell, amount := range amounts {
		if used[cell] += sign * amount; used[cell] == 0 {
			delete(used, cell)
		}
	}
	if len(used) == 0 {
		delete(x.used, queue)
	}
}

func less(counts map[string]int, name string) {
	if counts[name]--; counts[name] <= 0 {
		delete(counts, name)
	}
}

// all is every task in an order that time alone does not change: read only.
func (x *Index) all(column Column) []*Task { return x.ordered(column, nil, column) }

// ordered is a list by a column, of the tasks that it takes, kept under a name:
// read only.
func (x *Index) ordered(name Column, takes func(t *Task) bool, column Column) []*Task {
	o := x.orders[name]
	if o == nil {
		o = newOrder(compare(column, time.Unix(0, 0)))
		o.takes = takes
		for _, t := range x.tasks {
			o.put(t)
		}
		x.orders[name] = o
	}
	return o.list()
}

// Find is the task at an address; the newest, where there are several, or the
// one with the UID. nil for none. The kind counts in any case.
func (x *Index) Find(namespace, kind, name, uid string) *Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found *Task
	for _, t := range x.named[address{namespace, strings.ToLower(kind), name}] {
		if uid != "" && t.UID != uid {
			continue
		}
		if found == nil || t.Submitted.After(found.Submitted) {
			found = t
		}
	}
	return found
}

// Len is how many tasks there are.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.tasks)
}
