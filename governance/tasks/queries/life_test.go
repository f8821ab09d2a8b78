package queries_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// Lives of tasks on the real Kueue: what is told of them agrees with what Kueue
// told at each step.
func TestLife(t *testing.T) {
	for name, life := range lives {
		t.Run(name, func(t *testing.T) { life(newLab(t)) })
	}
}

var lives = map[string]func(*lab){
	"preempted twice": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 4, "low")
		l.ranFor("a", 2*time.Second)
		var want []pre
		for _, other := range []string{"b", "c"} {
			l.job(other, 2, "high")
			want = append(want, pre{by: other})
			d := l.becomes("a", tasks.Preempted)
			w := l.workload(d)
			evicted := l.when(w, kueue.WorkloadEvicted)
			want[len(want)-1].at = evicted
			total := time.Duration(*w.Status.AccumulatedPastExecutionTimeSeconds) * time.Second
			waits := evicted // and until its pods are gone, when Kueue puts it back
			if requeued := l.when(w, kueue.WorkloadRequeued); requeued.After(waits) {
				waits = requeued
			}
			if !d.WaitingSince.Equal(waits) || d.RanBefore != total || d.Preemptions != int32(len(want)) {
				l.t.Errorf("it waits since %s and ran for %s in %d preemptions; Kueue put it back at %s after %s", d.WaitingSince, d.RanBefore, d.Preemptions, waits, total)
			}
			l.preempted(d, want, total)
			l.kubectl("delete", "job", other, "-n", "NAME")
			d = l.ranFor("a", total+2*time.Second)
			w = l.workload(d)
			admitted := l.when(w, kueue.WorkloadAdmitted)
			if !d.AdmittedAt.Equal(admitted) || d.LastWait != admitted.Sub(waits) || d.RanBefore != total {
				l.t.Errorf("it was admitted at %s after %s; Kueue says %s after %s", d.AdmittedAt, d.LastWait, admitted, admitted.Sub(waits))
			}
			l.preempted(d, want, total)
		}
		// After a restart, what Kueue still tells.
		w := l.workload(l.detail("a"))
		x := index.New(time.Now)
		x.Handler().OnAdd(w, true)
		var left []timeline.Event
		for _, e := range x.Timeline(x.Find(l.name, "job", "a", "")) {
			if e.Type == timeline.Preempted {
				left = append(left, e)
			}
		}
		if len(left) != 1 || !left[0].AtOrBefore || left[0].Reason != "InClusterQueue" {
			l.t.Errorf("after a restart its preemptions are %+v", left)
		}
	},
	"thirty in a queue": func(l *lab) {
		l.queue("", 0, "0")
		var names []string
		var jobs strings.Builder
		for i := range 30 {
			name := fmt.Sprintf("t%02d", i)
			names = append(names, name)
			class := ""
			if i%3 > 0 {
				class = ", kueue.x-k8s.io/priority-class: NAME-" + []string{"", "low", "high"}[i%3]
			}
			fmt.Fprintf(&jobs, "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main%s}}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}\n", name, class)
		}
		l.apply(jobs.String())
		var told map[string]visibility.PendingWorkload
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if told = l.told("main"); len(told) != len(names) {
				return fmt.Errorf("Kueue has %d", len(told))
			}
			return nil
		})
		var list queries.List
		clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
			list, err = l.tasks.List(ctx, anybody, index.Query{Namespaces: []string{l.name}, Text: l.name, All: true}, nil)
			if err == nil && list.Total != len(names) {
				err = fmt.Errorf("the console has %d", list.Total)
			}
			return err
		})
		rule := map[string]int{}
		for _, item := range list.Items {
			rule[item.Name] = item.Position
		}
		for _, name := range names {
			d := l.byKueue(name)
			want := int(told[name].PositionInLocalQueue) + 1
			if d.Position != want || rule[name] != want || d.ClusterQueuePosition != want || !d.OnlyLocalQueue || d.QueueLength != len(names) {
				l.t.Errorf("%s is at %d of %d, and %d by the rule; Kueue says %d", name, d.Position, d.QueueLength, rule[name], want)
			}
			if n := min(5, want-1); len(d.Ahead) != n || n > 0 && rule[d.Ahead[n-1].Name] != want-1 || len(d.Behind) != min(5, len(names)-want) {
				l.t.Errorf("before %s are %d, and behind it %d", name, len(d.Ahead), len(d.Behind))
			}
		}
		last := slices.MaxFunc(names, func(a, b string) int { return rule[a] - rule[b] })
		before := l.detail(last)
		l.kubectl("delete", "job", names[2], "-n", "NAME") // of the high class
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail(last); d.Position != 29 || !d.ByKueue || !d.PositionSince.After(before.PositionSince) || d.PositionEarlier {
				return fmt.Errorf("it is at %d since %s; it was since %s", d.Position, d.PositionSince, before.PositionSince)
			}
			return nil
		})
	},
	"two queues of one cluster queue": func(l *lab) {
		l.queue("", 0, "0")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: second, namespace: NAME}, spec: {clusterQueue: NAME}}")
		l.job("a", 1, "low")
		l.jobIn("second", "b", 1, "high", "")
		l.jobIn("second", "c", 1, "low", "")
		l.job("d", 1, "high")
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			for queue, names := range map[string][]string{"main": {"a", "d"}, "second": {"b", "c"}} {
				told := l.told(queue)
				for _, name := range names {
					d := l.detail(name)
					if w := told[name]; d.Position != int(w.PositionInLocalQueue)+1 || d.ClusterQueuePosition != int(w.PositionInClusterQueue)+1 || d.QueueLength != 2 || d.ClusterQueueLength != 4 || d.OnlyLocalQueue || !d.ByKueue {
						return fmt.Errorf("%s is at %d of %d, in all at %d of %d; Kueue says %+v", name, d.Position, d.QueueLength, d.ClusterQueuePosition, d.ClusterQueueLength, w)
					}
				}
			}
			return nil
		})
	},
	"a cluster queue that another team shares": func(l *lab) {
		l.queue("", 0, "0")
		l.job("a", 1, "low")
		ada := l.member("kuota-team-member")
		stands := func(user governance.User, is func(d queries.Detail) bool) {
			l.t.Helper()
			clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
				d, err := l.tasks.Detail(ctx, user, l.name, "job", "a", "")
				if err == nil && (d.Position != 1 || !d.ByKueue || !is(d)) {
					err = fmt.Errorf("for %s it is at %d, %+v", user.Name, d.Position, d.QueuePosition)
				}
				return err
			})
		}
		stands(ada, func(d queries.Detail) bool {
			return d.OnlyLocalQueue && !d.Shared && d.ClusterQueuePosition == 1 && d.ClusterQueueLength == 1
		})
		l.apply("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-hidden}}")
		l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "namespace", l.name+"-hidden", "--wait=false") })
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: theirs, namespace: NAME-hidden}, spec: {clusterQueue: NAME}}")
		l.apply("{apiVersion: batch/v1, kind: Job, metadata: {name: b, namespace: NAME-hidden, labels: {kueue.x-k8s.io/queue-name: theirs, kueue.x-k8s.io/priority-class: NAME-high}}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}")
		stands(anybody, func(d queries.Detail) bool {
			return !d.OnlyLocalQueue && !d.Shared && d.ClusterQueuePosition == 2 && d.ClusterQueueLength == 2
		})
		stands(ada, func(d queries.Detail) bool {
			return !d.OnlyLocalQueue && d.Shared && d.ClusterQueuePosition == 0 && d.ClusterQueueLength == 0
		})
	},
	"borrows": func(l *lab) {
		l.queue("", 2, "")
		l.queue("-other", 4, "")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: NAME}, spec: {resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]}]}}")
		l.t.Cleanup(func() { l.kubectl("delete", "cohort", "NAME", "--wait=false") })
		l.job("first", 1, "low")
		l.runs("first")
		l.job("higher", 3, "high")
		l.runs("higher")
		want := queries.QuotaSource{Usage: 3, Own: 2, Borrowed: 1, Unallocated: 1}
		want.Flavor, want.Resource = l.name, "nvidia.com/gpu"
		l.backed("higher", anybody, want) // the cohort lends first, half of it to each
		want.Usage, want.Own, want.Borrowed, want.Unallocated, want.Lenders = 1, 0, 1, 0, []queries.Lender{{Team: l.name + "-other", Amount: 1}}
		l.backed("first", anybody, want)
		want.Lenders = []queries.Lender{{Amount: 1}}
		l.backed("first", l.member("kuota-team-member"), want)
	},
	"events": func(l *lab) {
		l.queue("", 2, "")
		l.job("a", 1, "low")
		l.runs("a")
		ada := l.member("kuota-team-member")
		clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
			notices, err := l.tasks.Notices(ctx, ada, l.name, "job", "a", "")
			if err != nil {
				return err
			}
			for about, reason := range map[string]string{"Workload": "Admitted", "Job": "Started"} {
				if !slices.ContainsFunc(notices, func(n queries.Notice) bool {
					return n.About == about && n.Reason == reason && n.Count > 0 && n.Text != ""
				}) {
					return fmt.Errorf("no %s of the %s is among %+v", reason, about, notices)
				}
			}
			if !slices.IsSortedFunc(notices, func(a, b queries.Notice) int { return b.At.Compare(a.At) }) {
				return fmt.Errorf("they are in no order: %+v", notices)
			}
			return nil
		})
		l.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: only-workloads, namespace: NAME}, rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list]}]}")
		grace := l.bound("grace", "Role", "only-workloads")
		if _, err := l.tasks.Notices(l.t.Context(), grace, l.name, "job", "a", ""); governance.KindOf(err) != governance.Forbidden {
			l.t.Errorf("who may not list events is told %v", err)
		}
	},
	"grows and shrinks": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 2, "low", `kueue.x-k8s.io/elastic-job: "true"`)
		l.runs("a")
		want := []size{{0, 2, timeline.Started}}
		l.sizes("a", want)
		for _, pods := range []int32{3, 1, 4} {
			l.patch("job", "a", fmt.Sprintf(`{"spec":{"parallelism":%d}}`, pods))
			want = append(want, size{want[len(want)-1].to, pods, timeline.Scaled})
			l.sizes("a", want)
		}
		l.job("b", 1, "high")
		want = append(want, size{4, 0, timeline.LostTo})
		l.sizes("a", want)
		l.kubectl("delete", "job", "b", "-n", "NAME")
		l.sizes("a", append(want, size{0, 4, timeline.Started}))
	},
	"starts with a part": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 6, "low", `kueue.x-k8s.io/job-min-parallelism: "2"`)
		l.sizes("a", []size{{0, 4, timeline.StartedPart}})
	},
}

// pre is a preemption as it should be told.
type pre struct {
	by string
	at time.Time
}

// preempted checks what a task's timeline says of its preemptions, and that the
// times that it ran before them add up to what Kueue counts.
func (l *lab) preempted(d queries.Detail, want []pre, total time.Duration) {
	l.t.Helper()
	var got []pre
	var ran time.Duration
	for _, e := range d.Timeline {
		if e.Type != timeline.Preempted {
			continue
		}
		p := pre{at: e.At}
		if e.Preemptor != nil {
			p.by = e.Preemptor.Name
		}
		if e.Reason != "InClusterQueue" || e.Ran < 0 {
			l.t.Errorf("it ran for %s before it was preempted for %s", e.Ran, e.Reason)
		}
		got, ran = append(got, p), ran+e.Ran
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pre{})); diff != "" {
		l.t.Error(diff)
	}
	if ran != total || d.Omitted != 0 {
		l.t.Errorf("it ran for %s before its preemptions, of which %d are forgotten; Kueue counts %s", ran, d.Omitted, total)
	}
}

// workload is the Workload of a task as the API server has it.
func (l *lab) workload(d queries.Detail) *kueue.Workload {
	l.t.Helper()
	var w kueue.Workload
	if err := l.c.Client.Get(l.t.Context(), client.ObjectKeyFromObject(d.Main), &w); err != nil {
		l.t.Fatal(err)
	}
	return &w
}

func (l *lab) when(w *kueue.Workload, name string) time.Time {
	l.t.Helper()
	c := meta.FindStatusCondition(w.Status.Conditions, name)
	if c == nil || c.Status != "True" {
		l.t.Fatalf("%s is not so: %+v", name, w.Status.Conditions)
	}
	return c.LastTransitionTime.Time
}

// becomes waits until a task is in a state.
func (l *lab) becomes(name string, state tasks.State) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if d = l.detail(name); d.State != state {
			return fmt.Errorf("%s is %s", name, d.State)
		}
		return nil
	})
	return d
}

// ranFor waits until a task has run for so long.
func (l *lab) ranFor(name string, least time.Duration) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if d = l.detail(name); d.State != tasks.Running || d.Ran(time.Now()) < least {
			return fmt.Errorf("%s is %s after %s", name, d.State, d.Ran(time.Now()))
		}
		return nil
	})
	return d
}

// told is the order of a queue as Kueue itself tells it, by the names of jobs.
func (l *lab) told(queue string) map[string]visibility.PendingWorkload {
	l.t.Helper()
	out, err := l.c.TryKubectl("", "get", "--raw", fmt.Sprintf("/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/%s/localqueues/%s/pendingworkloads", l.name, queue))
	var summary visibility.PendingWorkloadsSummary
	if err != nil || json.Unmarshal([]byte(out), &summary) != nil {
		l.t.Fatalf("Kueue does not tell the order of %s: %v\n%s", queue, err, out)
	}
	found := map[string]visibility.PendingWorkload{}
	for _, w := range summary.Items {
		found[w.OwnerReferences[0].Name] = w
	}
	return found
}

// byKueue waits until Kueue tells the place of a task.
func (l *lab) byKueue(name string) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if d = l.detail(name); !d.ByKueue {
			return fmt.Errorf("Kueue does not tell the place of %s", name)
		}
		return nil
	})
	return d
}

func (l *lab) backed(name string, user governance.User, want queries.QuotaSource) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
		d, err := l.tasks.Detail(ctx, user, l.name, "job", name, "")
		if err != nil {
			return err
		}
		if d.QuotaSources == nil {
			return fmt.Errorf("%s runs on nothing", name)
		}
		if diff := cmp.Diff([]queries.QuotaSource{want}, d.QuotaSources.Sources); diff != "" {
			return fmt.Errorf("%s runs on something else: %s", name, diff)
		}
		return nil
	})
}

// member is somebody with a ClusterRole in the lab's namespace and nowhere else.
func (l *lab) member(role string) governance.User {
	l.t.Helper()
	return l.bound("ada", "ClusterRole", role)
}

func (l *lab) bound(name, kind, role string) governance.User {
	l.t.Helper()
	l.apply(fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s, namespace: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}, subjects: [{kind: User, name: NAME-%s}]}", name, kind, role, name))
	user := governance.User{Name: l.name + "-" + name}
	clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
		_, err := l.tasks.List(ctx, user, index.Query{}, nil)
		return err
	})
	return user
}

type size struct {
	from, to int32
	cause    timeline.Cause
}

// sizes waits until a task has had these sizes.
func (l *lab) sizes(name string, want []size) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		var got []size
		d := l.detail(name)
		for i, r := range d.Sizes {
			got = append(got, size{r.From, r.To, r.Cause})
			if i > 0 && r.At.Before(d.Sizes[i-1].At) {
				return fmt.Errorf("they are in no order: %+v", d.Sizes)
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(size{})); diff != "" {
			return fmt.Errorf("it has had other sizes: %s", diff)
		}
		return nil
	})
}

// As soon as the console has a new job, its page is found: the request waits for
// the Workload, or until the job is a task without one.
func TestNewJobIsFound(t *testing.T) {
	l := newLab(t)
	l.queue("", 4, "")
	for name, class := range map[string]string{"good": "low", "unknown-class": "bogus"} {
		l.job(name, 1, class)
		at := tasks.Address{Namespace: l.name, Kind: "job", Name: name}
		for created := time.Now(); !l.tasks.Index.IsNew(at) && l.tasks.Index.Find(at.Namespace, at.Kind, at.Name, "") == nil; {
			if time.Since(created) > soon {
				t.Fatalf("the console has no job %s after %s", name, soon)
			}
			time.Sleep(10 * time.Millisecond)
		}
		d, err := l.tasks.Detail(t.Context(), anybody, l.name, "job", name, "")
		if err != nil || d.NoWorkload != (class == "bogus") {
			t.Errorf("%s is %+v, %v", name, d.Item, err)
		}
	}
}

// What a console knows of jobs and pods that it has seen made, another one knows
// that starts later and finds them there.
func TestFoundAtTheStart(t *testing.T) {
	l := newLab(t)
	l.queue("", 4, "")
	l.job("unknown-class", 1, "bogus")
	l.job("waits", 8, "low")
	l.job("runs", 2, "high")
	same := func(l *lab) {
		t.Helper()
		l.is("unknown-class", tasks.Pending, explain.NoPriorityClass, index.NoWorkload)
		l.is("waits", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		l.until("runs", func(d queries.Detail) bool { return d.State == tasks.Running && len(d.Pods) == 2 })
	}
	same(l)
	service, err := watch(t.Context(), l.c)
	if err != nil {
		t.Fatal(err)
	}
	later := *l
	later.tasks = service
	same(&later)
}
