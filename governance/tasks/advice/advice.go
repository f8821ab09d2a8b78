package advice

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ties is in how many orders of ties a change is verified. A search for figures uses
// one.
const ties = 3

// triedTasks is how many tasks are tried whose end could start the task.
const triedTasks = 24

// Ask answers a question about the snapshot of an Input.
type Ask func(ctx context.Context, q *simulate.Question) (*simulate.Report, error)

// Input is a waiting task and what surrounds it.
type Input struct {
	Snapshot *simulate.Snapshot
	Workload types.NamespacedName // of the task
	Task     explain.Task
	Cluster  *explain.Cluster // with its queue
	Verdict  explain.Verdict  // its figures are tried first
	// Saved returns the quota of the team after these amounts of a pool were typed
	// into its allocation: others follow from them. ok is false if that is not valid.
	// nil for a queue that follows from no allocation.
	Saved func(pool string, amounts quota.Resources) (resolved quota.Resolved, ok bool)
	Pods  Pods
}

// Pods are the pods of Workloads.
type Pods interface {
	// OnNodes returns those that have a node.
	OnNodes(w *kueue.Workload) []explain.NodePod
	// Sets returns the pod sets.
	Sets(w *kueue.Workload) []explain.PodSet
}

// Advice is what the simulation shows of a waiting task.
type Advice struct {
	// Starts reports that the task starts without a change, and Tied that it does so
	// in some orders of ties only.
	Starts, Tied bool
	// Preempts are the effects of the simulation without a change: who is preempted
	// for the task.
	Preempts []simulate.Effect
	// Changes start the task, in the order in which they were found.
	Changes []Change
	Done    bool // the search is over
}

// Change is a change of package explain with the effects of its simulation.
type Change struct {
	explain.Change
	Question *simulate.Question
	Effects  *simulate.Report // nil until it was simulated to its end
}

// finder looks for changes.
type finder struct {
	Input
	ask      Ask
	target   string // key in reports
	workload *kueue.Workload
	queue    *kueue.ClusterQueue
	advice   Advice
	// simulated reports that the cluster as it is was simulated.
	simulated bool
	// sufficient are the highest figures that start the task, by kind and flavor; empty
	// for those that do not.
	sufficient map[string][]figure
	needsNodes []string // explain.Change.NeedsNodes of the last change that started the task
	progress   func(Advice)
}

// Find looks for the changes that start the task if it waits on in the cluster as it
// is. It calls progress with what it knows whenever that changed. Errors
// are those of ask: what is known before stays valid.
func Find(ctx context.Context, in Input, ask Ask, progress func(Advice)) error {
	f := &finder{Input: in, ask: ask, target: in.Workload.String(), sufficient: map[string][]figure{}, progress: progress}
	for _, w := range in.Snapshot.Workloads {
		if w.Namespace == in.Workload.Namespace && w.Name == in.Workload.Name {
			f.workload = w
		}
	}
	if in.Cluster.Queue != nil {
		for _, q := range in.Snapshot.ClusterQueues {
			if q.Name == in.Cluster.Queue.Name {
				f.queue = q
			}
		}
	}
	if f.workload == nil || f.queue == nil { // deleted meanwhile
		f.advice.Done = true
		f.report()
		return nil
	}
	if err := f.find(ctx); err != nil {
		return err
	}
	f.advice.Done = true
	f.report()
	return nil
}

// errStarts ends a search: the task starts without a change.
var errStarts = errors.New("the task starts without a change")

// find looks for changes of each kind, first for one that is found at once. Most tasks wait on without one, and a reader
// waits for the first change: the cluster as it is is simulated after that one is
// shown, unless the task is about to start.
func (f *finder) find(ctx context.Context) error {
	searches := []func(context.Context) error{f.enoughQuota, f.higherClass, f.tasksEnd, f.quotas(explain.RaiseBorrowingLimit), f.quotas(explain.RaiseNominalQuota), f.fewerPods}
	if c := f.Verdict.Constraint; c == explain.Preempting || c == explain.PendingEvaluation {
		searches = slices.Insert(searches, 0, f.unchanged)
	} else {
		searches = append(searches, f.unchanged)
	}
	if f.Verdict.Fit != nil { // no node would hold its pods, whatever quota it gets
		searches = []func(context.Context) error{f.unchanged}
	}
	for _, search := range searches {
		if err := search(ctx); errors.Is(err, errStarts) {
			f.advice.Changes = nil
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// unchanged finds whether the task starts without a change, once. The error is
// errStarts if it does in each order of ties.
func (f *finder) unchanged(ctx context.Context) error {
	if f.simulated {
		return nil
	}
	f.simulated = true
	if r, err := f.ask(ctx, &simulate.Question{Target: f.target, OnlyTarget: true}); err != nil || r.Target == nil {
		return err
	}
	now, err := f.ask(ctx, &simulate.Question{Target: f.target, Ties: ties})
	if err != nil {
		return err
	}
	f.advice.Starts, f.advice.Tied = now.Target != nil, now.TargetTied
	for _, e := range now.Preempted {
		if e.By == f.target {
			f.advice.Preempts = append(f.advice.Preempts, e)
		}
	}
	if f.advice.Starts && !f.advice.Tied {
		return errStarts
	}
	f.report()
	return nil
}

// shown are the kinds of changes in the order in which they are shown.
var shown = []explain.ChangeKind{explain.HigherPriorityClass, explain.TasksEnd, explain.RaiseBorrowingLimit, explain.RaiseNominalQuota, explain.FewerPods}

// report passes a copy of what is known on.
func (f *finder) report() {
	a := f.advice
	a.Changes = slices.Clone(a.Changes)
	slices.SortFunc(a.Changes, func(a, b Change) int {
		return cmp.Compare(slices.Index(shown, a.Kind), slices.Index(shown, b.Kind))
	})
	f.progress(a)
}

// offer adds a change that was simulated until the task started, or replaces the
// one of its kind. The error is that of unchanged, which it calls.
func (f *finder) offer(ctx context.Context, c Change) error {
	c.Verified = len(c.NeedsNodes) == 0
	if i := f.offered(c.Kind); i >= 0 {
		f.advice.Changes[i] = c
	} else {
		f.advice.Changes = append(f.advice.Changes, c)
	}
	f.report()
	return f.unchanged(ctx)
}

func (f *finder) offered(kind explain.ChangeKind) int {
	return slices.IndexFunc(f.advice.Changes, func(c Change) bool { return c.Kind == kind })
}

// starts reports whether a change starts the task, and its pods find nodes.
func (f *finder) starts(ctx context.Context, c simulate.Change, target string) (bool, error) {
	r, err := f.ask(ctx, &simulate.Question{Change: c, Target: target, OnlyTarget: true})
	if err != nil || r.Target == nil {
		return false, err
	}
	fits, needs := f.place(c, r)
	if fits {
		f.needsNodes = needs
	}
	return fits, nil
}

// place reports whether the pods of the target find nodes once Kueue has started it,
// wherever those of the tasks are that start before it, and which flavors have no nodes.
func (f *finder) place(c simulate.Change, r *simulate.Report) (fits bool, needs []string) {
	if f.Cluster.Nodes == nil {
		return true, nil
	}
	space := explain.NewSpace(f.Cluster)
	for _, w := range f.Snapshot.Workloads {
		key := simulate.WorkloadKey(w)
		lost := func(e simulate.Effect) bool { return e.Workload == key }
		if slices.Contains(c.Removed.Workloads, types.NamespacedName{Namespace: w.Namespace, Name: w.Name}) || slices.ContainsFunc(r.Preempted, lost) || slices.ContainsFunc(r.Evicted, lost) ||
			w == f.workload && f.Task.ReplacedUsage != nil {
			space.End(f.Pods.OnNodes(w))
		}
	}
	target := explain.Start{Sets: f.Task.PodSets, Usage: r.Target.Usage}
	var before []explain.Start
	for _, e := range r.Started {
		i := slices.IndexFunc(f.Snapshot.Workloads, func(w *kueue.Workload) bool { return simulate.WorkloadKey(w) == e.Workload })
		if i >= 0 && e.Workload != r.Target.Workload && e.After <= r.Target.After {
			before = append(before, explain.Start{Sets: f.Pods.Sets(f.Snapshot.Workloads[i]), Usage: e.Usage})
		}
	}
	if needs = space.WithoutNodes(target); len(needs) > 0 {
		return true, needs
	}
	return space.Certain(target, before), nil
}

// verify offers a change that starts the task, and simulates it to its end, in
// several orders of ties.
func (f *finder) verify(ctx context.Context, change explain.Change, c simulate.Change, target string) error {
	q := &simulate.Question{Change: c, Target: target, Ties: ties}
	change.NeedsNodes = f.needsNodes
	if err := f.offer(ctx, Change{Change: change, Question: q}); err != nil {
		return err
	}
	r, err := f.ask(ctx, q)
	if err != nil {
		return err
	}
	fits := false
	if r.Target != nil {
		fits, change.NeedsNodes = f.place(c, r)
	}
	if !fits { // it starts, and is preempted again, or others take its nodes
		f.advice.Changes = slices.Delete(f.advice.Changes, f.offered(change.Kind), f.offered(change.Kind)+1)
		f.report()
		return nil
	}
	change.Tied, change.Borrowed = r.TargetTied, f.borrowed(c, r)
	return f.offer(ctx, Change{Change: change, Question: q, Effects: r})
}

// borrowed returns how much the task's queue borrows at the end.
func (f *finder) borrowed(c simulate.Change, r *simulate.Report) quota.FlavorResourceQuantities {
	queue := f.queue
	for _, q := range c.ClusterQueues {
		if q.Name == queue.Name {
			queue = q
		}
	}
	sum := quota.FlavorResourceQuantities{}
	for fr, used := range r.Queues[queue.Name].After.Usage {
		if own := nominal(queue, fr); used > own {
			sum[fr] = used.Minus(own)
		}
	}
	return sum
}

// higherClass finds the lowest priority class that starts the task.
func (f *finder) higherClass(ctx context.Context) error {
	classes := slices.DeleteFunc(slices.Clone(f.Cluster.PriorityClasses), func(c explain.PriorityClass) bool { return c.Priority <= f.Task.Priority })
	slices.SortFunc(classes, func(a, b explain.PriorityClass) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	classes = slices.CompactFunc(classes, func(a, b explain.PriorityClass) bool { return a.Priority == b.Priority })
	change := func(class explain.PriorityClass) simulate.Change {
		w := f.workload.DeepCopy()
		w.Spec.Priority = &class.Priority
		return simulate.Change{Workloads: []*kueue.Workload{w}}
	}
	var failed error
	lowest := sort.Search(len(classes), func(i int) bool { // they can be a hundred, and a higher one starts what a lower one does
		ok, err := f.starts(ctx, change(classes[i]), f.target)
		if err != nil {
			failed = err
		}
		return ok || failed != nil
	})
	if failed != nil || lowest == len(classes) {
		return failed
	}
	class := classes[lowest]
	return f.verify(ctx, explain.Change{Kind: explain.HigherPriorityClass, PriorityClass: class.Name, Priority: class.Priority, Minimal: true}, change(class), f.target)
}

// tasksEnd finds the smallest task of the queue whose end starts the task; otherwise
// it tries the tasks that explain found.
func (f *finder) tasksEnd(ctx context.Context) error {
	var own []explain.AdmittedWorkload
	for _, a := range f.Cluster.Admitted {
		if a.Queue == f.queue.Name {
			own = append(own, *a)
		}
	}
	needs := f.needs()
	slices.SortStableFunc(own, func(a, b explain.AdmittedWorkload) int {
		return cmp.Or(cmp.Compare(size(a.Usage, needs), size(b.Usage, needs)), cmp.Compare(a.Priority, b.Priority), strings.Compare(a.WorkloadUID, b.WorkloadUID))
	})
	var candidates [][]explain.AdmittedWorkload
	instant := slices.IndexFunc(f.Verdict.Changes, func(c explain.Change) bool { return c.Kind == explain.TasksEnd })
	if instant >= 0 && len(f.Verdict.Changes[instant].Tasks) == 1 {
		candidates = append(candidates, f.Verdict.Changes[instant].Tasks)
	}
	own = slices.CompactFunc(own, func(a, b explain.AdmittedWorkload) bool { // the end of one does what that of the other does
		return a.Priority == b.Priority && maps.Equal(a.Usage, b.Usage)
	})
	for i := range own[:min(len(own), triedTasks)] {
		candidates = append(candidates, own[i:i+1])
	}
	if instant >= 0 && len(f.Verdict.Changes[instant].Tasks) > 1 {
		candidates = append(candidates, f.Verdict.Changes[instant].Tasks)
	}
	for _, ending := range candidates {
		c := simulate.Change{Removed: simulate.Removed{Workloads: f.workloadsOf(ending)}}
		if len(c.Removed.Workloads) == 0 {
			continue
		}
		if ok, err := f.starts(ctx, c, f.target); err != nil {
			return err
		} else if ok {
			return f.verify(ctx, explain.Change{Kind: explain.TasksEnd, Tasks: slices.Clone(ending), Minimal: true}, c, f.target)
		}
	}
	return nil
}

// workloadsOf returns the Workloads of tasks; nil if one is no longer there.
func (f *finder) workloadsOf(list []explain.AdmittedWorkload) (names []types.NamespacedName) {
	for _, a := range list {
		i := slices.IndexFunc(f.Snapshot.Workloads, func(w *kueue.Workload) bool { return string(w.UID) == a.WorkloadUID })
		if i < 0 {
			return nil
		}
		w := f.Snapshot.Workloads[i]
		names = append(names, types.NamespacedName{Namespace: w.Namespace, Name: w.Name})
	}
	return names
}

// fewerPods finds the most pods with which the task starts, submitted again.
func (f *finder) fewerPods(ctx context.Context) error {
	if len(f.workload.Spec.PodSets) != 1 || f.workload.Spec.PodSets[0].Count < 2 {
		return nil
	}
	again := types.NamespacedName{Namespace: f.Workload.Namespace, Name: f.Workload.Name + "-again"}
	with := func(pods int32) simulate.Change {
		w := f.workload.DeepCopy()
		w.Name, w.UID, w.CreationTimestamp.Time = again.Name, types.UID(string(w.UID)+"-again"), f.Snapshot.Time
		w.Spec.PodSets[0].Count, w.Spec.PodSets[0].MinCount = pods, nil
		w.Status = kueue.WorkloadStatus{}
		return simulate.Change{Workloads: []*kueue.Workload{w}, Removed: simulate.Removed{Workloads: []types.NamespacedName{f.Workload}}}
	}
	low, high := int32(0), f.workload.Spec.PodSets[0].Count // low starts, high does not
	for probe := high - 1; high-low > 1; probe = (low + high) / 2 {
		ok, err := f.starts(ctx, with(probe), again.String())
		if err != nil {
			return err
		}
		if ok {
			low = probe
		} else {
			high = probe
		}
	}
	if low == 0 {
		return nil
	}
	return f.verify(ctx, explain.Change{Kind: explain.FewerPods, Pods: low, Minimal: true}, with(low), again.String())
}

// needs returns what the task requests, by resource.
func (f *finder) needs() quota.Resources {
	sum := quota.Resources{}
	for i := range f.Task.PodSets {
		set := &f.Task.PodSets[i]
		for name, each := range set.Counted() {
			sum[name] = sum[name].Plus(each.Times(int64(set.Count)))
		}
	}
	return sum
}

// size orders tasks by how much of what is needed they use: accelerators before
// all else.
func size(used quota.FlavorResourceQuantities, needs quota.Resources) (sum resources.Amount) {
	for fr, amount := range used {
		if strings.Contains(fr.Resource, "/") && needs[fr.Resource] > 0 {
			sum = sum.Plus(amount)
		}
	}
	return sum
}
