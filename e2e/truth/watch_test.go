package truth_test

import (
	"context"
	"fmt"
	"maps"
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

const (
	// settle is how long nothing must change until an instance is quiet, on a machine
	// where Kueue answers at once: it requeues tasks that were inadmissible in batches, a
	// second apart.
	settle = 3 * time.Second
	// restless is how long an instance may take until it is quiet. Kueue preempts in a
	// loop in some of those that take longer.
	restless = 60 * time.Second
)

// workload is the state of a task's Workload that decides and results.
type workload struct {
	uid       types.UID
	reserved  bool   // uses quota
	evicting  bool   // uses quota that it is losing
	flavors   string // assigned
	starts    int    // how often quota was reserved
	preempted int32  // how often
	pods      int32
	class     string
	created   time.Time // in seconds, as Kueue orders by it
}

// watcher keeps the state of all Workloads.
type watcher struct {
	mu      sync.Mutex
	states  map[string]map[string]workload // by namespace and by name of the Job
	changed map[string]time.Time           // by namespace
}

// watchWorkloads starts a watcher that ends with the test.
func watchWorkloads(t testing.TB, c *clustertest.Cluster) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w := &watcher{states: map[string]map[string]workload{}, changed: map[string]time.Time{}}
	informers, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, &kueue.Workload{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.note(object.(*kueue.Workload), false) },
		UpdateFunc: func(_, object any) { w.note(object.(*kueue.Workload), false) },
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			w.note(object.(*kueue.Workload), true)
		},
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watcher) note(o *kueue.Workload, deleted bool) {
	if len(o.OwnerReferences) == 0 {
		return
	}
	name := o.OwnerReferences[0].Name
	is := func(condition string) bool { return meta.IsStatusConditionTrue(o.Status.Conditions, condition) }
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.states[o.Namespace]
	if all == nil {
		all = map[string]workload{}
		w.states[o.Namespace] = all
	}
	was := all[name]
	if deleted {
		if was.uid == o.UID {
			delete(all, name)
			w.changed[o.Namespace] = time.Now()
		}
		return
	}
	now := workload{uid: o.UID, created: o.CreationTimestamp.Time, reserved: is(kueue.WorkloadQuotaReserved)}
	for _, set := range o.Spec.PodSets {
		now.pods += set.Count
	}
	if o.Spec.PriorityClassRef != nil {
		now.class = o.Spec.PriorityClassRef.Name
	}
	now.evicting = now.reserved && is(kueue.WorkloadEvicted)
	if was.uid == o.UID {
		now.starts = was.starts
	} else {
		was = workload{}
	}
	if now.reserved && !was.reserved {
		now.starts++
	}
	if o.Status.SchedulingStats != nil {
		for _, eviction := range o.Status.SchedulingStats.Evictions {
			if eviction.Reason == kueue.WorkloadEvictedByPreemption {
				now.preempted += eviction.Count
			}
		}
	}
	if o.Status.Admission != nil {
		var flavors []string
		for _, set := range o.Status.Admission.PodSetAssignments {
			for name, flavor := range set.Flavors {
				flavors = append(flavors, fmt.Sprintf("%s=%s", name, flavor))
			}
		}
		slices.Sort(flavors)
		now.flavors = strings.Join(flavors, " ")
	}
	if now != was {
		all[name] = now
		w.changed[o.Namespace] = time.Now()
	}
}

// workloads returns the states of an instance's tasks, by name.
func (w *watcher) workloads(in *instance) map[string]workload {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]workload{}
	for i := range in.teams {
		maps.Copy(found, w.states[in.namespace(i)])
	}
	return found
}

// quiet waits until the instance has so many tasks and nothing has changed for settle, at
// least since a time, and returns the states. ok is false if that takes longer than
// restless.
func (w *watcher) quiet(ctx context.Context, in *instance, tasks int, since time.Time) (now map[string]workload, ok bool) {
	settle := settle + 4*in.lag
	for deadline := time.Now().Add(restless + 5*settle); ; time.Sleep(100 * time.Millisecond) {
		last := since
		w.mu.Lock()
		for i := range in.teams {
			if at := w.changed[in.namespace(i)]; at.After(last) {
				last = at
			}
		}
		w.mu.Unlock()
		now = w.workloads(in)
		evicting := slices.ContainsFunc(slices.Collect(maps.Values(now)), func(s workload) bool { return s.evicting })
		if len(now) == tasks && !evicting && time.Since(last) > settle {
			return now, true
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return now, false
		}
	}
}

// inOrder reports whether Kueue saw the tasks of an instance in the order of their
// submission: on a busy machine it may create two Workloads within a second.
func inOrder(in *instance, all map[string]workload) bool {
	for i, k := range in.tasks[1:] {
		if !all[k.name].created.After(all[in.tasks[i].name].created) {
			return false
		}
	}
	return true
}

func sortedNames(all map[string]workload) []string { return slices.Sorted(maps.Keys(all)) }

// signature describes which tasks use quota, and in which pools.
func signature(all map[string]workload) string {
	var parts []string
	for _, name := range sortedNames(all) {
		if s := all[name]; s.reserved {
			parts = append(parts, name+"["+s.flavors+"]")
		}
	}
	return strings.Join(parts, " ")
}

// started returns the tasks that have quota since a time between two states.
func started(before, after map[string]workload) (names []string) {
	for _, name := range sortedNames(after) {
		if after[name].reserved && reservedSince(before, after, name) {
			names = append(names, name)
		}
	}
	return names
}

// preempted returns the tasks that had quota and that Kueue preempted between two states.
func preempted(before, after map[string]workload) (names []string) {
	for _, name := range sortedNames(after) {
		if before[name].reserved && after[name].preempted > before[name].preempted && after[name].uid == before[name].uid {
			names = append(names, name)
		}
	}
	return names
}

// passing returns the tasks that had quota only for a time between two states.
func passing(before, after map[string]workload) (names []string) {
	for _, name := range sortedNames(after) {
		if !before[name].reserved && !after[name].reserved && reservedSince(before, after, name) {
			names = append(names, name)
		}
	}
	return names
}

// reservedSince reports whether quota was reserved for a task between two states.
func reservedSince(before, after map[string]workload, name string) bool {
	return after[name].starts > before[name].starts || after[name].uid != before[name].uid && after[name].starts > 0
}
