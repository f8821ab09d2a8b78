package truth_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// verdict is the answer to a question that may have none.
type verdict string

const (
	unknown verdict = "" // not asked, or not answered
	yes     verdict = "yes"
	no      verdict = "no"
)

func is(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// outcome is what one seed showed.
type outcome struct {
	seed    uint64
	cohort  *cohort
	picked  task
	before  string // signature of the instance on which the page was read
	page    page
	chosen  change
	after   string // signature after the change
	skipped string // why the seed says nothing

	started verdict
	exact   verdict // exactly the named tasks were preempted
	also    verdict // exactly the named tasks started too
	minimal verdict
	found   string // what brute force found where the page offers nothing; empty for nothing
	brute   bool   // brute force was tried
	passing int    // tasks that had quota only until they were preempted, because of the change
	causes  []string
}

// print prints all of a seed, so that a miss can be understood.
func (o *outcome) print() {
	fmt.Printf("seed %d: %s\n  admitted: %s\n  picked %s: %s %s\n", o.seed, o.cohort, o.before, o.picked, o.page.headline, o.page.checked)
	for _, c := range o.page.changes {
		fmt.Printf("  offers %s, preempts %s, also starts %s, tied %t\n", c, c.preempts, c.starts, c.tied)
	}
	fmt.Printf("  chosen %s: started %q, exact %q, minimal %q, also started %q; skipped %q; brute force %t, found %q; after it %s\n", o.chosen, o.started, o.exact, o.minimal, o.also, o.skipped, o.brute, o.found, o.after)
	for _, cause := range o.causes {
		fmt.Printf("  miss: %s\n", cause)
	}
}

func (o *outcome) miss(format string, args ...any) {
	o.causes = append(o.causes, fmt.Sprintf(format, args...))
}

// seedLimit bounds a seed: brute force takes up to twenty instances of half a minute.
const seedLimit = 20 * time.Minute

// lab is what all seeds share.
type lab struct {
	client  client.Client
	watcher *watcher
	browser *http.Client
	console string
	readers chan struct{} // bounds how many pages are read at a time: each is simulated

	instances, nudged atomic.Int64 // begun, and changed by a nudge
}

// begin creates an instance and submits its tasks. It returns their states once they
// are quiet. ok is false if they are not, or if Kueue saw the tasks in another order.
func (l *lab) begin(ctx context.Context, s *cohort, slot string) (in *instance, now map[string]workload, ok bool, err error) {
	l.instances.Add(1)
	in = newInstance(s, slot, l.client)
	all := make([]int, len(in.teams))
	for i := range all {
		all[i] = i
	}
	if err := in.apply(ctx, all...); err != nil {
		return in, nil, false, err
	}
	if err := until(ctx, func() error {
		for i := range in.teams {
			if err := l.observed(ctx, in.queue(i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return in, nil, false, err
	}
	if err := in.submit(ctx, l.watcher); err != nil {
		return in, nil, false, err
	}
	if now, ok = l.watcher.quiet(ctx, in, len(in.tasks), time.Now()); !ok || !inOrder(in, now) {
		return in, now, false, nil
	}
	if err := in.nudge(ctx); err != nil {
		return in, nil, false, err
	}
	quiet := signature(now)
	if now, ok = l.watcher.quiet(ctx, in, len(in.tasks), time.Now()); signature(now) != quiet {
		l.nudged.Add(1)
	}
	return in, now, ok, nil
}

// again begins an instance that is in the same state as the first one was. A seed in
// which chance decides may need several; ok is false after three.
func (l *lab) again(ctx context.Context, o *outcome, slot string) (in *instance, now map[string]workload, ok bool, err error) {
	for range 3 {
		if in, now, ok, err = l.begin(ctx, o.cohort, slot); err != nil || ok && signature(now) == o.before {
			return in, now, ok, err
		}
		if err := in.remove(ctx, l.watcher); err != nil {
			return in, nil, false, err
		}
	}
	return in, nil, false, nil
}

// run judges one change that the page of one waiting task offers.
func (l *lab) run(ctx context.Context, seed uint64, slot string) (o outcome, err error) {
	o = outcome{seed: seed, cohort: randomCohort(seed)}
	random := rand.New(rand.NewPCG(seed, 21))
	ctx, cancel := context.WithTimeout(ctx, seedLimit)
	defer cancel()
	in, before, ok, err := l.begin(ctx, o.cohort, slot)
	defer func() { // also after an error: the next seed uses the same namespaces
		if in == nil {
			return
		}
		if e := in.remove(context.WithoutCancel(ctx), l.watcher); err == nil {
			err = e
		}
	}()
	if err != nil {
		return o, err
	}
	o.before = signature(before)
	var waiting []task
	for _, k := range in.tasks {
		if !before[k.name].reserved {
			waiting = append(waiting, k)
		}
	}
	switch {
	case !ok && !inOrder(in, before):
		o.skipped = "submitted in another order"
		return o, nil
	case !ok:
		o.skipped = "restless"
		return o, nil
	case len(waiting) == 0:
		o.skipped = "nothing waits"
		return o, nil
	}
	o.picked = waiting[random.IntN(len(waiting))]
	if o.page, err = l.readPage(ctx, in, o.picked); err != nil {
		return o, err
	}
	if o.page.failed {
		o.skipped = "not verified"
		return o, nil
	}
	if len(o.page.changes) == 0 {
		in, err = l.bruteForce(ctx, &o, in, before, slot)
		return o, err
	}
	o.chosen = o.page.changes[random.IntN(len(o.page.changes))]
	now := in.current(o.picked.team, o.chosen)
	after, err := l.try(ctx, in, o.picked, o.chosen)
	if err != nil && ctx.Err() == nil {
		o.started = no
		o.miss("cannot be made: %v", err)
		return o, nil
	} else if err != nil {
		return o, err
	}
	o.judge(before, after)
	if len(o.causes) > 0 && len(started(before, after)) == 0 { // does Kueue not try?
		if err := in.nudge(ctx); err != nil {
			return o, err
		}
		if later, _ := l.watcher.quiet(ctx, in, len(after), time.Now()); slices.Contains(started(before, later), o.picked.name) {
			o.miss("starts once Kueue tries all tasks again")
		}
	}
	if len(o.causes) > 0 { // does chance decide?
		if err = in.remove(ctx, l.watcher); err != nil {
			return o, err
		}
		if in, before, ok, err = l.again(ctx, &o, slot); err != nil {
			return o, err
		} else if !ok {
			in = nil
			o.miss("not reproduced: three instances are in another state")
			return o, nil
		}
		if after, err = l.try(ctx, in, o.picked, o.chosen); err != nil {
			return o, err
		}
		second := outcome{cohort: o.cohort, picked: o.picked, chosen: o.chosen}
		if second.judge(before, after); !slices.Equal(o.causes, second.causes) {
			o.miss("differs in a second instance: %s", strings.Join(second.causes, "; "))
		}
	}
	if o.started != yes || o.chosen.kind != moreQuota && o.chosen.kind != borrowLimit {
		return o, nil
	}
	less, ok := smaller(o.chosen, now, random.IntN)
	if !ok {
		o.minimal = yes
		return o, nil
	}
	if err = in.remove(ctx, l.watcher); err != nil {
		in = nil
		return o, err
	}
	if in, before, ok, err = l.again(ctx, &o, slot); err != nil || !ok {
		if !ok {
			in = nil
		}
		return o, err
	}
	if after, err = l.try(ctx, in, o.picked, less); err != nil {
		return o, err
	}
	if o.minimal = is(!slices.Contains(started(before, after), o.picked.name)); o.minimal == no {
		o.miss("not minimal: %s starts it too, preempting %s", less, others(preempted(before, after), o))
	}
	return o, nil
}

// try makes a change and returns the states once they are quiet.
func (l *lab) try(ctx context.Context, in *instance, k task, c change) (map[string]workload, error) {
	if err := l.make(ctx, in, k, c); err != nil {
		return nil, fmt.Errorf("make %s: %w", c, err)
	}
	if err := until(ctx, func() error { return l.reached(ctx, in, k, c) }); err != nil {
		return nil, fmt.Errorf("make %s: %w", c, err)
	}
	tasks := len(in.tasks)
	if c.kind == tasksEnd {
		tasks -= len(c.tasks)
	}
	after, _ := l.watcher.quiet(ctx, in, tasks, time.Now())
	return after, nil
}

// reached returns nil once a change has reached Kueue's objects. It is not part of what
// is measured: Kueue copies the pods and the class of a Job.
func (l *lab) reached(ctx context.Context, in *instance, k task, c change) error {
	now := l.watcher.workloads(in)
	switch c.kind {
	case fewerPods:
		if got := now[k.name].pods; got != c.pods {
			return fmt.Errorf("the Workload of %s has %d pods", k.name, got)
		}
	case higherClass:
		if got := now[k.name].class; got != c.class {
			return fmt.Errorf("the Workload of %s has class %q", k.name, got)
		}
	case tasksEnd:
		for _, name := range c.tasks {
			if _, ok := now[name]; ok {
				return fmt.Errorf("the Workload of %s still exists", name)
			}
		}
	default:
		return l.observed(ctx, in.queue(k.team))
	}
	return nil
}

// observed returns nil once Kueue has observed a ClusterQueue as it is now.
func (l *lab) observed(ctx context.Context, name string) error {
	var queue kueue.ClusterQueue
	if err := l.client.Get(ctx, client.ObjectKey{Name: name}, &queue); err != nil {
		return err
	}
	if active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive); active == nil || active.Status != metav1.ConditionTrue || active.ObservedGeneration != queue.Generation {
		return fmt.Errorf("ClusterQueue %s: condition %+v at generation %d", name, active, queue.Generation)
	}
	return nil
}

// judge compares what happened after the change with what the page says.
func (o *outcome) judge(before, after map[string]workload) {
	starts, stops := started(before, after), preempted(before, after)
	o.after, o.passing = signature(after), len(passing(before, after))
	o.started = is(slices.Contains(starts, o.picked.name))
	if o.started == no {
		instead := "a task of another team starts instead"
		for _, k := range o.cohort.tasks {
			if k.team == o.picked.team && slices.Contains(starts, k.name) {
				instead = "a task of its team starts instead"
			}
		}
		switch {
		case len(starts) == 0 && len(stops) == 0 && o.cohort.teams[o.picked.team].Spec.QueueingStrategy == "StrictFIFO":
			instead = "nothing happens in a StrictFIFO queue"
		case len(starts) == 0:
			instead = "nothing starts"
		}
		o.miss("does not start, %s: %s, preempting %s", instead, others(starts, *o), others(stops, *o))
		return
	}
	also := slices.DeleteFunc(starts, func(name string) bool { return name == o.picked.name })
	if o.exact = is(o.chosen.preempts.equals(stops)); o.exact == no {
		o.miss("preempts others: %s, and not %s", others(stops, *o), o.chosen.preempts)
	}
	o.also = is(o.chosen.starts.equals(also))
}

// others describes tasks by their relation to the picked one, for a cause.
func others(names []string, o outcome) string {
	if len(names) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range names {
		i := slices.IndexFunc(o.cohort.tasks, func(k task) bool { return k.name == name })
		whose, rank := "of another team", "equal"
		if k := o.cohort.tasks[i]; k.team == o.picked.team {
			whose = "of its team"
			if k.class > o.picked.class {
				rank = "higher"
			}
		}
		k := o.cohort.tasks[i]
		switch {
		case k.class > o.picked.class:
			rank = "higher"
		case k.class < o.picked.class:
			rank = "lower"
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %s class)", name, whose, rank))
	}
	return strings.Join(parts, ", ")
}

// bruteForce looks for a single change that starts a task for which the page offers
// none. It tries one after the other on one instance, and takes a new one once a
// change had an effect. It returns the instance that is left, or nil.
func (l *lab) bruteForce(ctx context.Context, o *outcome, in *instance, before map[string]workload, slot string) (*instance, error) {
	o.brute = true
	for _, c := range o.singleChanges(in, before) {
		if in == nil {
			var ok bool
			var err error
			if in, before, ok, err = l.again(ctx, o, slot); err != nil {
				return in, err
			} else if !ok {
				o.brute = false
				return nil, nil
			}
		}
		after, err := l.try(ctx, in, o.picked, c)
		if err != nil {
			o.miss("brute force: %v", err)
		} else if slices.Contains(started(before, after), o.picked.name) {
			o.found = c.String()
			o.miss("offers nothing: %s starts it; the page says %q and %q", c, o.page.headline, o.page.checked)
			return in, nil
		}
		if err := in.remove(ctx, l.watcher); err != nil {
			return nil, err
		}
		in = nil
	}
	return in, nil
}

// singleChanges returns each change that could start a task: each higher class, the end
// of each admitted task of its team, fewer pods, and in each pool so much more quota or
// so high a limit as it requests.
func (o *outcome) singleChanges(in *instance, before map[string]workload) (all []change) {
	for _, pool := range in.resolved(o.picked.team).Pools {
		if o.picked.pool != "" && o.picked.pool != pool.Name {
			continue
		}
		more, limit := quota.Resources{}, quota.Resources{}
		for name, each := range o.picked.each {
			more[name] = pool.Nominal[name] + each.Times(int64(o.picked.pods))
			limit[name] = pool.BorrowingLimit[name] + each.Times(int64(o.picked.pods))
		}
		all = append(all, change{kind: moreQuota, pool: pool.Name, amounts: more})
		if pool.BorrowingLimit != nil {
			all = append(all, change{kind: borrowLimit, pool: pool.Name, amounts: limit})
		}
	}
	for i := o.picked.class + 1; i < len(classes); i++ {
		all = append(all, change{kind: higherClass, class: classes[i]})
	}
	for _, k := range in.tasks {
		if k.team == o.picked.team && before[k.name].reserved {
			all = append(all, change{kind: tasksEnd, tasks: []string{k.name}})
		}
	}
	if o.picked.pods > 1 {
		all = append(all, change{kind: fewerPods, pods: 1})
	}
	return all
}
