package index

import (
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"

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
	Now func() time.Time

	mu           sync.Mutex
	tasks        map[tasks.Key]*tasks.Task
	parts        map[tasks.Key][]*kueue.Workload
	group        map[types.UID]tasks.Key // of each Workload
	named        map[address][]*tasks.Task
	spaces       map[string]map[*tasks.Task]struct{} // by namespace
	queues       map[QueueKey]*order                 // tasks that wait, by LocalQueue
	orders       map[Column]*order                   // of all tasks, once somebody asked for them
	classes      map[classKey]*tally
	admitted     *order                                    // tasks that hold quota, in the order in which Kueue stops them
	used         map[string]quota.FlavorResourceQuantities // by ClusterQueue
	kinds        map[string]int                            // how many tasks are of each
	pools        map[string]int
	started      time.Time // since when it counts
	oldestPeriod time.Time // period that tallies tell apart

	jobs              map[tasks.Key]*job // that can be tasks without a Workload
	jobsIn            map[string]map[tasks.Key]struct{}
	children          map[member]map[types.UID]struct{} // jobs by the job that they are part of
	governed          map[string]bool                   // namespaces
	pods              map[types.UID]*Pod
	podsBy            map[member]map[*Pod]struct{} // by their controller
	podsIn            map[member]map[*Pod]struct{} // by their group
	nodeUsage         map[string]*nodeUsage        // by node
	requests          requestSets
	amounts           amountSets
	unready           int                // tasks that were admitted and whose pods are not all ready
	workloadsComplete bool               // all Workloads of the start were told of
	podsComplete      bool               // all pods were
	rebuilding        map[tasks.Key]bool // jobs that are looked at again in a moment
	notify            func()             // tells that something changed by time alone; nil tells nobody
	life              life
	loops             map[types.UID][]*loop // preemption loops, by the Workload that is preempted
	recording         recording
}

type address struct{ namespace, kind, name string }

// member is what belongs to something of the same namespace: to the object with a
// UID, or to the group with a name.
type member struct{ namespace, of string }

type QueueKey struct{ Namespace, Queue string }

// NewIndex is an empty index. now is the time.
func New(now func() time.Time) *Index {
	holding := newOrder(byPreemptionOrder)
	holding.takes = func(t *tasks.Task) bool { return len(t.AdmittedWorkloads) > 0 }
	return &Index{
		Now: now, admitted: holding, tasks: map[tasks.Key]*tasks.Task{}, parts: map[tasks.Key][]*kueue.Workload{}, group: map[types.UID]tasks.Key{},
		named: map[address][]*tasks.Task{}, spaces: map[string]map[*tasks.Task]struct{}{}, queues: map[QueueKey]*order{},
		orders: map[Column]*order{}, classes: map[classKey]*tally{}, used: map[string]quota.FlavorResourceQuantities{}, kinds: map[string]int{}, pools: map[string]int{}, started: now(),
		jobs: map[tasks.Key]*job{}, jobsIn: map[string]map[tasks.Key]struct{}{}, children: map[member]map[types.UID]struct{}{}, governed: map[string]bool{},
		pods: map[types.UID]*Pod{}, podsBy: map[member]map[*Pod]struct{}{}, podsIn: map[member]map[*Pod]struct{}{}, rebuilding: map[tasks.Key]bool{}, nodeUsage: map[string]*nodeUsage{}, loops: map[types.UID][]*loop{},
	}
}

// Handler takes in what a watch of Workloads tells.
func (x *Index) Handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if w, ok := object.(*kueue.Workload); ok {
				x.SetWorkload(w, first)
			}
		},
		UpdateFunc: func(_, object any) {
			if w, ok := object.(*kueue.Workload); ok {
				x.SetWorkload(w, false)
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if w, ok := object.(*kueue.Workload); ok {
				x.DeleteWorkload(w)
			}
		},
	}
}

// set takes in a Workload as it is now. first says that it was there before this
// process.
func (x *Index) SetWorkload(w *kueue.Workload, first bool) {
	_, _, uid := tasks.OwnerOf(w)
	key := tasks.Key{Namespace: w.Namespace, UID: uid}
	x.mu.Lock()
	defer x.mu.Unlock()
	if was, ok := x.group[w.UID]; ok && was != key { // somebody gave it another owner
		x.removeWorkload(was, w.UID)
	}
	x.group[w.UID] = key
	if at := partOf(x.parts[key], w.UID); at < 0 {
		x.parts[key] = append(x.parts[key], w)
	} else {
		x.parts[key][at] = w
	}
	x.rebuild(key, first)
	x.rebuildPodGroup(w)
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

func (x *Index) DeleteWorkload(w *kueue.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key, ok := x.group[w.UID]; ok {
		x.removeWorkload(key, w.UID)
		x.rebuildPodGroup(w)
	}
}

// regroup looks again at the pods of a group, which are a task by themselves only
// while they have no Workload.
func (x *Index) rebuildPodGroup(w *kueue.Workload) {
	if kind, name, _ := tasks.OwnerOf(w); kind == tasks.PodGroup {
		x.rebuild(tasks.Key{Namespace: w.Namespace, UID: groupUID(name)}, false)
	}
}

func (x *Index) removeWorkload(key tasks.Key, uid types.UID) {
	delete(x.group, uid)
	removeAt(x.parts, key, partOf(x.parts[key], uid))
	x.rebuild(key, false)
	delete(x.loops, uid)
}

// partOf is where a Workload stands among those of a task; -1 for nowhere.
func partOf(parts []*kueue.Workload, uid types.UID) int {
	return slices.IndexFunc(parts, func(w *kueue.Workload) bool { return w.UID == uid })
}

// make makes a task anew of its Workloads, or of a job that has none.
func (x *Index) rebuild(key tasks.Key, first bool) {
	before := x.tasks[key]
	var t *tasks.Task
	if parts := x.parts[key]; len(parts) > 0 && orphaned(parts) {
		// It is gone, as if they were.
	} else if len(parts) > 0 {
		t = tasks.FromWorkloads(parts, before)
		t.Usage, t.Requests = x.requests.of(t.Usage), x.requests.of(t.Requests)
		for i := range t.AdmittedWorkloads {
			t.AdmittedWorkloads[i].Usage = x.amounts.of(t.AdmittedWorkloads[i].Usage)
		}
	} else if j := x.jobWithoutWorkload(key); j != nil {
		t = x.fromJob(j)
	}
	if before != nil {
		x.removeFromOrders(before)
		delete(x.tasks, key)
	}
	if t != nil {
		x.tasks[key] = t
		x.addToOrders(t)
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

func addressOf(t *tasks.Task) address {
	return address{t.Namespace, strings.ToLower(t.Kind), t.Name}
}

func (x *Index) addToOrders(t *tasks.Task) {
	x.unready += b2i(unready(t))
	x.named[addressOf(t)] = append(x.named[addressOf(t)], t)
	addTo(x.spaces, t.Namespace, t)
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
	x.admitted.put(t)
	if t.Queued() {
		q := QueueKey{t.Namespace, t.Queue}
		if x.queues[q] == nil {
			x.queues[q] = newOrder(inQueue)
		}
		x.queues[q].put(t)
	}
}

func (x *Index) removeFromOrders(t *tasks.Task) {
	x.unready -= b2i(unready(t))
	removeAt(x.named, addressOf(t), slices.Index(x.named[addressOf(t)], t))
	removeFrom(x.spaces, t.Namespace, t)
	decrement(x.kinds, t.Kind)
	for _, pool := range t.Pools {
		decrement(x.pools, pool)
	}
	for _, o := range x.orders {
		o.remove(t)
	}
	for _, h := range t.AdmittedWorkloads {
		x.addUsed(h.Queue, h.Usage, -1)
	}
	x.admitted.remove(t)
	if t.Queued() {
		q := QueueKey{t.Namespace, t.Queue}
		if x.queues[q].remove(t); x.queues[q].empty() {
			delete(x.queues, q)
		}
	}
}

func addTo[K, V comparable](in map[K]map[V]struct{}, key K, value V) {
	set := in[key]
	if set == nil {
		set = make(map[V]struct{}, 1)
		in[key] = set
	}
	set[value] = struct{}{}
}

func removeFrom[K, V comparable](from map[K]map[V]struct{}, key K, value V) {
	delete(from[key], value)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// unlink takes one out of a short list; at is -1 for none.
func removeAt[K comparable, V any](from map[K][]V, key K, at int) {
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

func decrement(counts map[string]int, name string) {
	if counts[name]--; counts[name] <= 0 {
		delete(counts, name)
	}
}

// all is every task in an order that time alone does not change: read only.
func (x *Index) all(column Column) []*tasks.Task { return x.ordered(column, nil, column) }

// ordered is a list by a column, of the tasks that it takes, kept under a name:
// read only.
func (x *Index) ordered(name Column, takes func(t *tasks.Task) bool, column Column) []*tasks.Task {
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
func (x *Index) Find(namespace, kind, name, uid string) *tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found *tasks.Task
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
