package index

import (
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Index has all tasks, ready to be filtered, sorted and counted.
type Index struct {
	Now func() time.Time

	mu           sync.Mutex
	tasks        map[tasks.Key]*tasks.Task
	parts        map[tasks.Key][]*kueue.Workload
	group        map[types.UID]tasks.Key // of each Workload
	named        map[address][]*tasks.Task
	places       map[tasks.Place]map[*tasks.Task]struct{}
	queues       map[QueueKey]*order // tasks that wait, by LocalQueue
	orders       map[Column]*order   // of all tasks, created on first use
	classes      map[classKey]*tally
	everywhere   map[string]*tally                         // the same by priority class, of all places
	admitted     *order                                    // tasks that use quota, in preemption order
	used         map[string]quota.FlavorResourceQuantities // by ClusterQueue
	growth       map[string]quota.FlavorResourceQuantities // the part of used that is growth
	elasticPods  elasticPods
	kinds        map[string]int // number of tasks
	pools        map[string]int
	started      time.Time // since when it counts
	oldestPeriod time.Time // the oldest that tallies keep

	jobs              map[tasks.Key]*job // that can be tasks without a Workload
	jobsIn            map[string]map[tasks.Key]struct{}
	facts             map[tasks.Key]jobFacts            // of jobs that exist, ended ones too
	children          map[member]map[types.UID]struct{} // jobs by the job that they belong to
	governed          map[string]bool                   // namespaces
	pods              map[types.UID]*Pod
	podsBy            map[member]map[*Pod]struct{} // by their controller
	podsIn            map[member]map[*Pod]struct{} // by their group
	terminating       map[*Pod]struct{}            // see Pod.terminating
	unscheduled       map[string]map[*Pod]struct{} // pods that wait for a node, by namespace
	nodeUsage         map[string]*nodeUsage        // by node
	requests          requestSets
	amounts           amountSets
	unready           int                // admitted tasks whose pods are not all ready
	workloadsComplete bool               // all Workloads of the start were added
	podsComplete      bool               // all pods were
	rebuilding        map[tasks.Key]bool // jobs that are rebuilt shortly
	deployments       map[member]*job    // by name
	undecided         map[tasks.Key]bool // see decidesLater; true if they existed before this process
	notify            func()             // notifies of changes by time alone; nil for none
	life              life
	loops             map[types.UID][]*loop // by preempted Workload
	recording         recording
}

type address struct{ namespace, kind, name string }

// member identifies the dependents of an object of the same namespace, by UID, or
// of a pod group, by name.
type member struct{ namespace, of string }

type QueueKey struct{ Namespace, Queue string }

// New returns an empty index. now is the clock.
func New(now func() time.Time) *Index {
	holding := newOrder(byPreemptionOrder)
	holding.takes = func(t *tasks.Task) bool { return len(t.AdmittedWorkloads) > 0 }
	return &Index{
		Now: now, admitted: holding, tasks: map[tasks.Key]*tasks.Task{}, parts: map[tasks.Key][]*kueue.Workload{}, group: map[types.UID]tasks.Key{},
		named: map[address][]*tasks.Task{}, places: map[tasks.Place]map[*tasks.Task]struct{}{}, queues: map[QueueKey]*order{},
		orders: map[Column]*order{}, classes: map[classKey]*tally{}, everywhere: map[string]*tally{}, used: map[string]quota.FlavorResourceQuantities{}, growth: map[string]quota.FlavorResourceQuantities{}, kinds: map[string]int{}, pools: map[string]int{}, started: now(),
		jobs: map[tasks.Key]*job{}, facts: map[tasks.Key]jobFacts{}, jobsIn: map[string]map[tasks.Key]struct{}{}, children: map[member]map[types.UID]struct{}{}, governed: map[string]bool{},
		pods: map[types.UID]*Pod{}, podsBy: map[member]map[*Pod]struct{}{}, podsIn: map[member]map[*Pod]struct{}{}, rebuilding: map[tasks.Key]bool{}, deployments: map[member]*job{}, undecided: map[tasks.Key]bool{}, terminating: map[*Pod]struct{}{}, unscheduled: map[string]map[*Pod]struct{}{}, nodeUsage: map[string]*nodeUsage{}, loops: map[types.UID][]*loop{},
	}
}

// Handler returns the handler of a watch of Workloads.
func (x *Index) Handler() toolscache.ResourceEventHandler {
	return handler(x.SetWorkload, x.DeleteWorkload)
}

// SetWorkload adds or replaces a Workload. first reports that it existed before this
// process.
func (x *Index) SetWorkload(w *kueue.Workload, first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.addWorkload(x.ownByDeployment(w), first)
}

// addWorkload is SetWorkload while x.mu is locked.
func (x *Index) addWorkload(w *kueue.Workload, first bool) {
	_, _, uid := tasks.OwnerOf(w)
	key := tasks.Key{Namespace: w.Namespace, UID: uid}
	if was, ok := x.group[w.UID]; ok && was != key { // its owner reference was changed
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

// orphaned reports whether the job of these Workloads is deleted, and they will be
// shortly: Kueue finished one for that reason, or only replaced slices are left of
// an elastic job. Growth alone is what is left of a task that was known, else of none.
func orphaned(parts []*kueue.Workload, known bool) bool {
	outgrown := 0
	for _, w := range parts {
		switch c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); {
		case partOfElasticJob(w) && desired.IsGrowth(w) && !known:
			outgrown++
		case c == nil || c.Status != metav1.ConditionTrue:
		case c.Reason == kueue.WorkloadFinishedReasonOwnerNotFound:
			return true
		case c.Reason == kueue.WorkloadSliceReplaced:
			outgrown++
		}
	}
	return outgrown == len(parts)
}

// withoutDeleted returns the Workloads of an owner without those of deleted Jobs of an
// ElasticJob: it has several Jobs, and gives growth back by deleting one.
func withoutDeleted(parts []*kueue.Workload) []*kueue.Workload {
	deleted := func(w *kueue.Workload) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == kueue.WorkloadFinishedReasonOwnerNotFound && partOfElasticJob(w)
	}
	if slices.ContainsFunc(parts, deleted) {
		return slices.DeleteFunc(slices.Clone(parts), deleted)
	}
	return parts
}

func partOfElasticJob(w *kueue.Workload) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	return owner != nil && owner.Kind == v1alpha1.ElasticJobKind
}

func (x *Index) DeleteWorkload(w *kueue.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key, ok := x.group[w.UID]; ok {
		x.removeWorkload(key, w.UID)
		x.rebuildPodGroup(w)
	}
}

// rebuildPodGroup rebuilds the task of a pod group, which is a task of its own only
// while it has no Workload.
func (x *Index) rebuildPodGroup(w *kueue.Workload) {
	if kind, name, _ := tasks.OwnerOf(w); kind == tasks.PodGroup {
		x.rebuild(tasks.Key{Namespace: w.Namespace, UID: groupUID(name)}, false)
	}
}

func (x *Index) removeWorkload(key tasks.Key, uid types.UID) {
	delete(x.group, uid)
	if removeAt(x.parts, key, partOf(x.parts[key], uid)); len(x.parts[key]) == 0 {
		delete(x.undecided, key)
	}
	x.rebuild(key, false)
	delete(x.loops, uid)
}

// partOf returns the index of a Workload in parts; -1 for none.
func partOf(parts []*kueue.Workload, uid types.UID) int {
	return slices.IndexFunc(parts, func(w *kueue.Workload) bool { return w.UID == uid })
}

// rebuild replaces a task by what its Workloads, or a job without one, are now.
func (x *Index) rebuild(key tasks.Key, first bool) {
	before := x.tasks[key]
	if was, waits := x.undecided[key]; waits {
		first = was
	}
	var t *tasks.Task
	parts := withoutDeleted(x.parts[key])
	if len(parts) > 0 {
		parts = x.current(parts)
	}
	if len(parts) > 0 && orphaned(parts, before != nil) {
		// Its job is deleted, and so is the task.
	} else if len(parts) > 0 && x.decidesLater(key, parts, first) {
		// It may be a part of another task.
	} else if len(parts) > 0 {
		t = tasks.FromWorkloads(parts, before)
		t.Usage, t.Requests = x.requests.of(t.Usage), x.requests.of(t.Requests)
		for i := range t.AdmittedWorkloads {
			t.AdmittedWorkloads[i].Usage = x.amounts.of(t.AdmittedWorkloads[i].Usage)
		}
		if j := x.jobs[key]; j != nil && t.IsServing() {
			x.serving(t, j)
		}
		if x.unplaced(t) {
			t.State, t.Unplaced = tasks.Starting, true
		}
	} else if j := x.jobWithoutWorkload(key); j != nil {
		t = x.fromJob(j)
	}
	if t != nil && before != nil {
		t.Keep(before, x.Now())
	}
	if t != nil {
		facts := x.facts[key]
		t.SubmittedBy, t.Labels, t.Completed = facts.by, facts.labels, facts.completed
	}
	if t != nil && t.SubmittedBy == "" && t.Labels == "" && t.Completed == (tasks.Completions{}) && before != nil { // its job was deleted before its Workload
		t.SubmittedBy, t.Labels, t.Completed = before.SubmittedBy, before.Labels, before.Completed
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
	if first && t != nil { // before is nil, without a Workload, or lacks this one
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
	if unready(t) {
		x.unready++
	}
	x.named[addressOf(t)] = append(x.named[addressOf(t)], t)
	addTo(x.places, t.Place(), t)
	x.kinds[t.Kind]++
	for _, pool := range t.Pools {
		x.pools[pool]++
	}
	for _, o := range x.orders {
		o.put(t)
	}
	for _, h := range t.AdmittedWorkloads {
		addUsed(x.used, h.Queue, h.Usage, 1)
	}
	x.addGrowth(t, 1)
	x.admitted.put(t)
	if t.Queued() {
		q := QueueKey{t.Namespace, t.Queue}
		if x.queues[q] == nil {
			x.queues[q] = newOrder(InQueue)
		}
		x.queues[q].put(t)
	}
}

func (x *Index) removeFromOrders(t *tasks.Task) {
	if unready(t) {
		x.unready--
	}
	removeAt(x.named, addressOf(t), slices.Index(x.named[addressOf(t)], t))
	removeFrom(x.places, t.Place(), t)
	decrement(x.kinds, t.Kind)
	for _, pool := range t.Pools {
		decrement(x.pools, pool)
	}
	for _, o := range x.orders {
		o.remove(t)
	}
	for _, h := range t.AdmittedWorkloads {
		addUsed(x.used, h.Queue, h.Usage, -1)
	}
	x.addGrowth(t, -1)
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

// removeAt removes an element of a short list; at is -1 for none.
func removeAt[K comparable, V any](from map[K][]V, key K, at int) {
	switch few := from[key]; {
	case at < 0:
	case len(few) == 1:
		delete(from, key)
	default:
		from[key] = slices.Delete(few, at, at+1)
	}
}

// addUsed adds the usage of a ClusterQueue to all; sign is -1 to remove it.
func addUsed(all map[string]quota.FlavorResourceQuantities, queue string, amounts quota.FlavorResourceQuantities, sign int64) {
	used := all[queue]
	if used == nil {
		used = quota.FlavorResourceQuantities{}
		all[queue] = used
	}
	for fr, amount := range amounts {
		if used[fr] = used[fr].Plus(amount.Times(sign)); used[fr] == 0 {
			delete(used, fr)
		}
	}
	if len(used) == 0 {
		delete(all, queue)
	}
}

func decrement(counts map[string]int, name string) {
	if counts[name]--; counts[name] <= 0 {
		delete(counts, name)
	}
}

// all returns every task in an order that does not change by time alone: read only.
func (x *Index) all(column Column) []*tasks.Task { return x.ordered(column, nil, column) }

// ordered returns the tasks that takes accepts, sorted by a column. The order is
// kept under a name: read only.
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

// Find returns the task at an address: with a UID that task, else the newest of the
// name; nil for none. The kind is case-insensitive.
func (x *Index) Find(namespace, kind, name, uid string) *tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.find(namespace, kind, name, uid)
}

func (x *Index) find(namespace, kind, name, uid string) *tasks.Task {
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

// Each calls do with each task, in no order. The index is locked meanwhile.
func (x *Index) Each(do func(t *tasks.Task)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.tasks {
		do(t)
	}
}

// Len returns the number of tasks.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.tasks)
}
