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

// The timeline, position, quota sources and sizes of tasks agree with what the real
// Kueue reported at each step.
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
			waits := evicted // or later, when its pods have ended and Kueue requeues it
			if requeued := l.when(w, kueue.WorkloadRequeued); requeued.After(waits) {
				waits = requeued
			}
			if !d.WaitingSince.Equal(waits) || d.RanBefore != total || d.Preemptions != int32(len(want)) {
				l.t.Errorf("the task waits since %s and ran for %s with %d preemptions; Kueue requeued it at %s after %s", d.WaitingSince, d.RanBefore, d.Preemptions, waits, total)
			}
			l.preempted(d, want, total)
			l.kubectl("delete", "job", other, "-n", "NAME")
			d = l.ranFor("a", total+2*time.Second)
			w = l.workload(d)
			admitted := l.when(w, kueue.WorkloadAdmitted)
			if !d.AdmittedAt.Equal(admitted) || d.LastWait != admitted.Sub(waits) || d.RanBefore != total {
				l.t.Errorf("the task was admitted at %s after %s; Kueue admitted it at %s after %s", d.AdmittedAt, d.LastWait, admitted, admitted.Sub(waits))
			}
			l.preempted(d, want, total)
		}
		// After a restart, only the last preemption, which the Workload still has.
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
			l.t.Errorf("after a restart, got the preemptions %+v, want the last one", left)
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
		var pending map[string]visibility.PendingWorkload
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if pending = l.pending("main"); len(pending) != len(names) {
				return fmt.Errorf("Kueue has %d pending workloads", len(pending))
			}
			return nil
		})
		var list queries.List
		clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
			list, err = l.tasks.List(ctx, localUser, index.Query{Text: l.name, All: true}, nil)
			if err == nil && list.Total != len(names) {
				err = fmt.Errorf("the console has %d tasks", list.Total)
			}
			return err
		})
		rule := map[string]int{}
		for _, item := range list.Items {
			rule[item.Name] = item.Position
		}
		for _, name := range names {
			d := l.byKueue(name)
			want := int(pending[name].PositionInLocalQueue) + 1
			if d.Position != want || rule[name] != want || d.ClusterQueuePosition != want || !d.OnlyLocalQueue || d.QueueLength != len(names) {
				l.t.Errorf("%s is at %d of %d, and at %d in the list; Kueue has it at %d", name, d.Position, d.QueueLength, rule[name], want)
			}
			if n := min(5, want-1); len(d.Ahead) != n || n > 0 && rule[d.Ahead[n-1].Name] != want-1 || len(d.Behind) != min(5, len(names)-want) {
				l.t.Errorf("%s has %d tasks ahead of it and %d behind it", name, len(d.Ahead), len(d.Behind))
			}
		}
		last := slices.MaxFunc(names, func(a, b string) int { return rule[a] - rule[b] })
		before := l.detail(last)
		l.kubectl("delete", "job", names[2], "-n", "NAME") // of the priority class high
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail(last); d.Position != 29 || !d.ByKueue || !d.PositionSince.After(before.PositionSince) || d.PositionEarlier {
				return fmt.Errorf("the task is at %d since %s; before, since %s", d.Position, d.PositionSince, before.PositionSince)
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
				pending := l.pending(queue)
				for _, name := range names {
					d := l.detail(name)
					if w := pending[name]; d.Position != int(w.PositionInLocalQueue)+1 || d.ClusterQueuePosition != int(w.PositionInClusterQueue)+1 || d.QueueLength != 2 || d.ClusterQueueLength != 4 || d.OnlyLocalQueue || !d.ByKueue {
						return fmt.Errorf("%s is at %d of %d, in the ClusterQueue at %d of %d; Kueue has %+v", name, d.Position, d.QueueLength, d.ClusterQueuePosition, d.ClusterQueueLength, w)
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
		isFirst := func(user governance.User, is func(d queries.Detail) bool) {
			l.t.Helper()
			clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
				d, err := l.tasks.Detail(ctx, user, l.name, "job", "a", "")
				if err == nil && (d.Position != 1 || !d.ByKueue || !is(d)) {
					err = fmt.Errorf("for %s the task is at %d, %+v", user.Name, d.Position, d.QueuePosition)
				}
				return err
			})
		}
		isFirst(ada, func(d queries.Detail) bool {
			return d.OnlyLocalQueue && !d.Shared && d.ClusterQueuePosition == 1 && d.ClusterQueueLength == 1
		})
		l.apply("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-hidden}}")
		l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "namespace", l.name+"-hidden", "--wait=false") })
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: theirs, namespace: NAME-hidden}, spec: {clusterQueue: NAME}}")
		l.apply("{apiVersion: batch/v1, kind: Job, metadata: {name: b, namespace: NAME-hidden, labels: {kueue.x-k8s.io/queue-name: theirs, kueue.x-k8s.io/priority-class: NAME-high}}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}")
		isFirst(localUser, func(d queries.Detail) bool {
			return !d.OnlyLocalQueue && !d.Shared && d.ClusterQueuePosition == 2 && d.ClusterQueueLength == 2
		})
		isFirst(ada, func(d queries.Detail) bool {
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
		l.backed("higher", localUser, want) // the quota of the cohort counts first
		want.Usage, want.Own, want.Borrowed, want.Unallocated, want.Lenders = 1, 0, 1, 0, []queries.Lender{{Team: l.name + "-other", Amount: 1}}
		l.backed("first", localUser, want)
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
				return fmt.Errorf("the notices are not sorted: %+v", notices)
			}
			return nil
		})
		l.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: only-workloads, namespace: NAME}, rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list]}]}")
		grace := l.bound("grace", "Role", "only-workloads")
		if _, err := l.tasks.Notices(l.t.Context(), grace, l.name, "job", "a", ""); governance.KindOf(err) != governance.Forbidden {
			l.t.Errorf("without the right to list events: got %v, want Forbidden", err)
		}
	},
	"grows and shrinks": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 2, "low", `kueue.x-k8s.io/elastic-job: "true"`)
		l.runs("a")
		want := []size{{0, 2, timeline.Started}}
		l.sizes("a", want)
		for _, pods := range []int64{3, 1, 4} {
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

// pre is an expected preemption.
type pre struct {
	by string
	at time.Time
}

// preempted checks the preemptions in a task's timeline, and that the runs before them
// add up to the total that Kueue counts.
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
			l.t.Errorf("the task ran for %s before it was preempted for %s", e.Ran, e.Reason)
		}
		got, ran = append(got, p), ran+e.Ran
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pre{})); diff != "" {
		l.t.Error(diff)
	}
	if ran != total || d.Omitted != 0 {
		l.t.Errorf("the task ran for %s before its preemptions, with %d omitted; Kueue counts %s", ran, d.Omitted, total)
	}
}

// workload reads the Workload of a task from the API server.
func (l *lab) workload(d queries.Detail) *kueue.Workload {
	l.t.Helper()
	var w kueue.Workload
	if err := l.c.Client.Get(l.t.Context(), client.ObjectKeyFromObject(d.Main), &w); err != nil {
		l.t.Fatal(err)
	}
	return &w
}

// when returns the time since which a condition is true.
func (l *lab) when(w *kueue.Workload, name string) time.Time {
	l.t.Helper()
	c := meta.FindStatusCondition(w.Status.Conditions, name)
	if c == nil || c.Status != "True" {
		l.t.Fatalf("%s is not true: %+v", name, w.Status.Conditions)
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

// ranFor waits until a task has run for at least this long.
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

// pending returns the pending workloads of a LocalQueue from Kueue's visibility API, by
// the names of jobs.
func (l *lab) pending(queue string) map[string]visibility.PendingWorkload {
	l.t.Helper()
	var summary visibility.PendingWorkloadsSummary
	clustertest.Eventually(l.t, soon, func(context.Context) error { // Kueue may not have the queue yet
		out, err := l.c.TryKubectl("", "get", "--raw", fmt.Sprintf("/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/%s/localqueues/%s/pendingworkloads", l.name, queue))
		if err != nil {
			return fmt.Errorf("read the pending workloads of %s: %w\n%s", queue, err, out)
		}
		return json.Unmarshal([]byte(out), &summary)
	})
	found := map[string]visibility.PendingWorkload{}
	for _, w := range summary.Items {
		found[w.OwnerReferences[0].Name] = w
	}
	return found
}

// byKueue waits until the position of a task is from Kueue.
func (l *lab) byKueue(name string) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if d = l.detail(name); !d.ByKueue {
			return fmt.Errorf("the position of %s is not from Kueue", name)
		}
		return nil
	})
	return d
}

// backed waits until a task has this one quota source for a user.
func (l *lab) backed(name string, user governance.User, want queries.QuotaSource) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
		d, err := l.tasks.Detail(ctx, user, l.name, "job", name, "")
		if err != nil {
			return err
		}
		if d.QuotaSources == nil {
			return fmt.Errorf("%s has no quota sources", name)
		}
		if diff := cmp.Diff([]queries.QuotaSource{want}, d.QuotaSources.Sources); diff != "" {
			return fmt.Errorf("quota sources of %s (-want +got):\n%s", name, diff)
		}
		return nil
	})
}

// member returns a user with a ClusterRole in the lab's namespace and no other right.
func (l *lab) member(role string) governance.User {
	l.t.Helper()
	return l.bound("ada", "ClusterRole", role)
}

// bound binds a role to a new user in the lab's namespace, and returns the user.
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
	from, to int64
	cause    timeline.Cause
}

// sizes waits until a task has these resizes.
func (l *lab) sizes(name string, want []size) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		var got []size
		d := l.detail(name)
		for i, r := range d.Sizes {
			got = append(got, size{r.From, r.To, r.Cause})
			if i > 0 && r.At.Before(d.Sizes[i-1].At) {
				return fmt.Errorf("the sizes are not sorted: %+v", d.Sizes)
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(size{})); diff != "" {
			return fmt.Errorf("sizes (-want +got):\n%s", diff)
		}
		return nil
	})
}

// The page of a job is found as soon as the console has the job: the request waits
// for the Workload, or until the job is a task without one.
func TestNewJobIsFound(t *testing.T) {
	l := newLab(t)
	l.queue("", 4, "")
	for name, class := range map[string]string{"good": "low", "unknown-class": "bogus"} {
		l.job(name, 1, class)
		at := tasks.Address{Namespace: l.name, Kind: "job", Name: name}
		for created := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if found, isNew := l.tasks.Index.FindOrNew(at); found != nil || isNew {
				break
			}
			if time.Since(created) > soon {
				t.Fatalf("the console has no job %s after %s", name, soon)
			}
		}
		if _, err := l.tasks.Detail(t.Context(), localUser, l.name, "job", name, ""); err != nil {
			t.Errorf("%s is not found: %v", name, err)
		}
		l.until(name, func(d queries.Detail) bool { return d.NoWorkload == (class == "bogus") }) // Kueue can take longer than a request
	}
}

// A console that starts after jobs and pods were created shows them as one that
// watched their creation does.
func TestConsoleThatStartsLater(t *testing.T) {
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
