package queries

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/advice"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Simulator answers questions about the cluster with Kueue's scheduler: see package
// simulate/live.
type Simulator interface {
	Snapshot(ctx context.Context) (*simulate.Snapshot, error)
	Answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error)
	Ask(ctx context.Context, user string, q *simulate.Question) (*simulate.Report, *simulate.Snapshot, error)
	Disagrees(constraint string, s *simulate.Snapshot, q *simulate.Question)
}

const (
	// adviceTimeout is how long the changes that start a task are looked for.
	adviceTimeout = 30 * time.Second
	// adviceAge is after which time advice is computed again if something changed
	// since; not more often than a third of the time is spent on it.
	adviceAge = 2 * time.Second
	// adviceKept is how long advice is kept for a page that is opened again.
	adviceKept = 5 * time.Minute
	// adviceForOne is for how many tasks at a time advice is computed for one user: a
	// user with many pages open does not keep those of others waiting.
	adviceForOne = 2
)

// Advice is what the simulation shows of a waiting task.
type Advice struct {
	// Computing reports that changes are still looked for, and Failed why not all of
	// them could be verified; nil if they could.
	Computing bool
	Failed    error
	At        time.Time // of the snapshot; zero until there is one
	// Starts reports that the task starts without a change; Tied, in some orders of
	// ties only; Preempts, the tasks that are preempted for it then.
	Starts, Tied bool
	Preempts     []explain.AdmittedWorkload
	Omitted      []simulate.Omission // parts of Kueue that are not simulated
	VersionNote  string              // see live.VersionNote

	verified []explain.Change
}

// advisor computes the advice of the tasks whose pages are open. Its zero value is
// ready.
type advisor struct {
	mu    sync.Mutex
	tasks map[tasks.Key]*advised
}

// advised is the advice of a task, for a reader who sees everything.
type advised struct {
	latest  Advice
	took    time.Duration
	changes uint64 // Notifier.Count before the snapshot
	running bool
	user    string // for whom it is running
	asked   time.Time
}

// mayRun reports whether another computation may start for a user. The caller locks.
func (a *advisor) mayRun(user string) bool {
	n := 0
	for _, one := range a.tasks {
		if one.running && one.user == user {
			n++
		}
	}
	return n < adviceForOne
}

// simulated reports whether the verdict is about quota, so that a simulation adds to
// it.
func simulated(t *tasks.Task, v *explain.Verdict) bool {
	if t.NoWorkload || t.State.UsesQuota() || !t.State.Waiting() {
		return false
	}
	switch v.Constraint {
	case explain.Quota, explain.ExceedsMax, explain.Preempting, explain.PendingEvaluation, explain.Behind, explain.Unknown:
		return true
	}
	return false
}

// advise returns the latest advice about a task for the viewer, and computes it in
// the background if there is none, or if it is old. nil if there is nothing to
// simulate. Its changes replace those of the verdict: see Advice.changes.
func (s *Service) advise(v viewer, t *tasks.Task, verdict *explain.Verdict) *Advice {
	if s.Simulator == nil || !simulated(t, verdict) {
		return nil
	}
	a := &s.advisor
	a.mu.Lock()
	now := s.Index.Now()
	known := a.tasks[t.Key()]
	if known == nil {
		if a.tasks == nil {
			a.tasks = map[tasks.Key]*advised{}
		}
		for key, one := range a.tasks {
			if !one.running && now.Sub(one.asked) > adviceKept {
				delete(a.tasks, key)
			}
		}
		known = &advised{latest: Advice{Computing: true}}
		a.tasks[t.Key()] = known
	}
	known.asked = now
	old := now.Sub(known.latest.At) > max(adviceAge, 2*known.took) && known.changes != s.Cluster.TaskChanges.Count()+s.Cluster.AllocationChanges.Count()
	if !known.running && (known.latest.At.IsZero() || old || now.Sub(known.latest.At) > adviceKept) && a.mayRun(v.user) { // otherwise when AdviceChanges signals the end of one
		known.running, known.user = true, v.user
		go s.compute(t, known)
	}
	latest := known.latest
	a.mu.Unlock()
	verdict.Changes = latest.changes(verdict.Changes)
	visible := explain.Verdict{Changes: verdict.Changes}
	for _, list := range visible.AdmittedWorkloads() {
		*list = v.visibleWorkloads(*list)
	}
	latest.Preempts = v.visibleWorkloads(latest.Preempts)
	return &latest
}

// changes returns the verified changes, and if they could not all be looked for, those of
// the instant answer of other kinds. Until that is known, nothing else is a fact.
func (a *Advice) changes(instant []explain.Change) []explain.Change {
	list := slices.Clone(a.verified)
	if a.Failed == nil {
		return list
	}
	for _, c := range instant {
		if !slices.ContainsFunc(a.verified, func(v explain.Change) bool { return v.Kind == c.Kind }) {
			list = append(list, c)
		}
	}
	return list
}

// compute looks for the changes that start a task, and signals AdviceChanges when it
// knows more.
func (s *Service) compute(t *tasks.Task, to *advised) {
	ctx, cancel := context.WithTimeout(context.Background(), adviceTimeout)
	defer cancel()
	s.advisor.mu.Lock()
	first := to.latest.At.IsZero()
	s.advisor.mu.Unlock()
	began, changes := time.Now(), s.Cluster.TaskChanges.Count()+s.Cluster.AllocationChanges.Count()
	update := func(change func(a *Advice)) {
		defer s.AdviceChanges.Notify()
		s.advisor.mu.Lock()
		defer s.advisor.mu.Unlock() // also if it panics
		change(&to.latest)
	}
	var snapshot *simulate.Snapshot
	err := governance.Recovered(func() (err error) {
		snapshot, err = s.findChanges(ctx, t, update, first)
		return err
	})
	s.advisor.mu.Lock()
	to.running, to.took, to.changes = false, time.Since(began), changes
	s.advisor.mu.Unlock()
	update(func(a *Advice) {
		a.Computing, a.Failed = false, err
		if a.At = s.Index.Now(); snapshot != nil {
			a.At = snapshot.Time
		}
	})
}

// findChanges computes the advice of a task for a reader who sees everything. first
// reports that there is none yet, so that each part is shown at once.
func (s *Service) findChanges(ctx context.Context, t *tasks.Task, update func(func(*Advice)), first bool) (*simulate.Snapshot, error) {
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return nil, err
	}
	snapshot, err := s.Simulator.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	c, err := v.surroundings(ctx, t)
	if err != nil {
		return snapshot, err
	}
	q := explainInput(t)
	in := advice.Input{
		Snapshot: snapshot, Workload: types.NamespacedName{Namespace: t.Main.Namespace, Name: t.Main.Name},
		Task: q, Cluster: c, Verdict: explain.Why(q, c), Pods: podsOf{v},
	}
	if in.Saved, err = s.saved(ctx, v, t, c); err != nil {
		return snapshot, err
	}
	names := newWorkloadNames(snapshot, v)
	var last advice.Advice
	note := ""
	set := func() {
		update(func(a *Advice) {
			a.At, a.Omitted, a.VersionNote = snapshot.Time, snapshot.Omitted, note
			a.Starts, a.Tied, a.Preempts = last.Starts, last.Tied, names.of(last.Preempts, nil)
			a.verified = names.changes(last.Changes, in.Workload.String())
		})
	}
	err = advice.Find(ctx, in, func(ctx context.Context, q *simulate.Question) (*simulate.Report, error) {
		report, err := s.Simulator.Answer(ctx, snapshot, q)
		note = live.VersionNote(snapshot, report)
		return report, err
	}, func(known advice.Advice) {
		last = known
		if first || known.Done { // the advice of before is shown until this is complete
			set()
		}
	})
	if err != nil {
		set() // what was verified before it failed
	}
	if err == nil && last.Done {
		s.compare(snapshot, in, last)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = worker.ErrTimeout
	}
	return snapshot, err
}

// saved returns what the quota of a task's team would be with other amounts: see
// advice.Input. nil if its queue follows from no allocation.
func (s *Service) saved(ctx context.Context, v viewer, t *tasks.Task, c *explain.Cluster) (func(string, quota.Resources) (quota.Resolved, bool), error) {
	var allocation v1alpha1.ComputeAllocation
	team := v.team(t.Place())
	if team == "" || c.Queue == nil {
		return nil, nil
	}
	switch err := v.reader.Get(ctx, client.ObjectKey{Name: team}, &allocation); {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read allocation", err)
	case err != nil || allocation.Spec.Observed() || allocation.Status.ClusterQueue != c.Queue.Name:
		return nil, nil
	}
	types, err := clusterstate.Catalog(ctx, v.reader, cmp.Or(s.InstanceTypeLabel, catalog.InstanceTypeLabel))
	return func(pool string, amounts quota.Resources) (quota.Resolved, bool) {
		return quota.Typed(&allocation.Spec, types, pool, amounts)
	}, err
}

// compare keeps a replay where the simulation contradicts the constraint of the task.
func (s *Service) compare(snapshot *simulate.Snapshot, in advice.Input, a advice.Advice) {
	if a.Tied || slices.ContainsFunc(a.Changes, func(c advice.Change) bool { return c.Tied }) {
		return // both can be right
	}
	constraint := in.Verdict.Constraint
	startsSoon := constraint == explain.Preempting || constraint == explain.PendingEvaluation
	if constraint != explain.Unknown && startsSoon != a.Starts {
		s.Simulator.Disagrees(string(constraint), snapshot, &simulate.Question{Target: in.Workload.String()})
	}
}

// workloadNames finds the tasks of Workloads in reports.
type workloadNames struct {
	viewer
	workloads map[string]*kueue.Workload // by key
}

func newWorkloadNames(s *simulate.Snapshot, v viewer) workloadNames {
	n := workloadNames{viewer: v, workloads: make(map[string]*kueue.Workload, len(s.Workloads))}
	for _, w := range s.Workloads {
		n.workloads[simulate.WorkloadKey(w)] = w
	}
	return n
}

// of returns the tasks of effects that pass; nil is all.
func (n workloadNames) of(effects []simulate.Effect, pass func(simulate.Effect) bool) (list []explain.AdmittedWorkload) {
	for _, e := range effects {
		w := n.workloads[e.Workload]
		if w == nil || pass != nil && !pass(e) {
			continue
		}
		a := explain.AdmittedWorkload{Name: w.Name, Kind: "Workload", Namespace: w.Namespace, UID: string(w.UID), Queue: e.ClusterQueue, Priority: ptr.Deref(w.Spec.Priority, 0), WorkloadUID: string(w.UID), Usage: e.Usage}
		if t := n.index.ByWorkload(w.UID); t != nil {
			a.Name, a.Kind, a.UID = t.Name, t.Kind, t.UID
		}
		list = append(list, a)
	}
	return list
}

// changes returns the changes with the tasks that they affect, besides target.
func (n workloadNames) changes(list []advice.Change, target string) []explain.Change {
	found := make([]explain.Change, 0, len(list))
	for _, c := range list {
		change := c.Change
		if r := c.Effects; r != nil {
			because := func(e simulate.Effect) bool { return !e.Anyway }
			change.Preempted = n.of(r.Preempted, because)
			change.Started = n.of(r.Started, func(e simulate.Effect) bool { return !e.Anyway && e.Workload != target })
			change.Missed = n.of(r.Missed, nil)
		}
		found = append(found, change)
	}
	return found
}
