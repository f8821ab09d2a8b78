package elastic_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var pages = struct {
	sync.Once
	service *queries.Service
	err     error
}{}

// pages returns the queries of the pages of tasks.
func (l *lab) pages() *queries.Service {
	l.Helper()
	pages.Do(func() {
		c, err := cluster.New(l.Console, cluster.Options{Log: slog.New(slog.DiscardHandler), NoSessions: true})
		if pages.err = err; err != nil {
			return
		}
		pages.service = queries.New(c, &access.Service{Cluster: c})
		go func() { _ = c.Run(context.Background()) }()
	})
	if pages.err != nil {
		l.Fatal(pages.err)
	}
	return pages.service
}

// member returns a member of a team and of no other.
func (l *lab) member(team string) governance.User {
	l.Helper()
	user := governance.User{Name: team + "@example.com"}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(team), Name: "page-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuota-team-member"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name}},
	}
	if err := l.Client.Create(l.Context(), binding); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = l.Client.Delete(context.Background(), binding) })
	return user
}

// page waits until a task's page is as wanted.
func (l *lab) page(user governance.User, team, kind, name string, limit time.Duration, want func(queries.Detail) error) (d queries.Detail) {
	l.Helper()
	clustertest.Eventually(l, limit, func(ctx context.Context) (err error) {
		if d, err = l.pages().Detail(ctx, user, namespace(team), kind, name, ""); err != nil {
			return err
		}
		return want(d)
	})
	return d
}

func is(state tasks.State, pods int64) func(queries.Detail) error {
	return func(d queries.Detail) error {
		if d.State != state || d.Size.Admitted != pods {
			return fmt.Errorf("%s is %s with %d pods, want %s with %d", d.Name, d.State, d.Size.Admitted, state, pods)
		}
		return nil
	}
}

// A task that has its quota, while preempted growth still runs on its nodes, says so: until
// when, and to those who may see it, whose pods these are.
func TestWaitsForNodesOfPreemptedGrowth(t *testing.T) {
	clustertest.OnlyVerify(t)
	const grace = 25
	l := newLab(t, 4)
	training, other := l.team("training", 8, nil), l.team("other", 24, nil)
	e := l.elastic(training, "train", "", steps(grace))
	l.size(e, 32, soon)
	l.running(e, 32, soon)
	member, trainer := l.member(other), l.member(training)
	l.page(trainer, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, is(tasks.Running, 32))
	task := l.submit(other, "inference", "", 8)
	l.admitted(task, soon)
	began := time.Now()
	waits := func(name string) func(queries.Detail) error {
		return func(d queries.Detail) error {
			v := d.Verdict
			if v == nil || v.Constraint != explain.PodsTerminating || v.Unscheduled < 1 || v.Unscheduled > 8 || len(v.Terminating) != int(v.Unscheduled) || v.EndWithin > grace*time.Second || v.EndWithin < time.Second {
				return fmt.Errorf("the verdict of %s (%s) is %+v", d.Name, d.State, v)
			}
			for _, p := range v.Terminating {
				if p.Name != name || name == "" && p.Namespace+p.Node+p.UID != "" {
					return fmt.Errorf("the page names %+v, want %q", p, name)
				}
			}
			return nil
		}
	}
	l.page(member, other, "Job", "inference", 15*time.Second, waits(""))
	l.page(governance.User{Local: true}, other, "Job", "inference", 10*time.Second, waits("train"))
	clustertest.Eventually(l, (grace+10)*time.Second-time.Since(began), func(ctx context.Context) error {
		var pods corev1.PodList
		if err := l.Client.List(ctx, &pods, client.InNamespace(namespace(other))); err != nil {
			return err
		}
		if n := len(slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })); n != 8 {
			return fmt.Errorf("%d of 8 pods run", n)
		}
		return nil
	})
	l.page(member, other, "Job", "inference", clustertest.Patience, func(d queries.Detail) error {
		if d.Verdict != nil {
			return fmt.Errorf("the verdict is %+v", d.Verdict)
		}
		return nil
	})
}

// An ElasticJob that waits is one task, with a position, a reason and changes that would
// start it. A hold of the loop guard is shown, and the controller leaves it alone; a preemption
// of growth is no preemption of the task.
func TestElasticJobOnPages(t *testing.T) {
	l := newLab(t, 2)
	training, other := l.team("training", 8, nil), l.team("other", 8, nil)
	user := l.member(training)
	blocker := l.submit(training, "blocker", l.class(50), 16)
	l.admitted(blocker, soon)
	e := l.elastic(training, "train", l.class(10), v1alpha1.ElasticPolicy{MinReplicas: 4, MaxReplicas: 12, ReplicaIncrementStep: new(int32(4)), ScalingTimeoutInSeconds: 1, MinStablePeriodSeconds: 1, BackoffMaxSeconds: 600})
	d := l.page(user, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, func(d queries.Detail) error {
		if d.NoWorkload || d.State != tasks.Pending || d.Position != 1 || d.Verdict == nil || d.Verdict.Constraint != explain.Quota {
			return fmt.Errorf("it is %s at position %d, with the verdict %+v", d.State, d.Position, d.Verdict)
		}
		return nil
	})
	if d.Requests["nvidia.com/gpu"] != 4 || d.Size.Wanted != 4 || len(d.Verdict.Changes) == 0 || d.Verdict.Shortage.Needed != 4 {
		t.Errorf("it requests %v, and the verdict is %+v", d.Requests, d.Verdict)
	}
	l.remove(blocker)
	l.size(e, 12, soon)
	l.page(user, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, is(tasks.Running, 12))

	task := l.submit(other, "inference", "", 8)
	l.admitted(task, soon)
	d = l.page(user, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, is(tasks.Running, 8))
	if d.Preemptions != 0 || d.Evictions != 0 {
		t.Errorf("it was preempted %d times, want that only its growth was", d.Preemptions)
	}
	list, err := l.pages().List(t.Context(), user, index.Query{}, nil)
	if err != nil || len(list.Items) != 1 || list.Items[0].Kind != v1alpha1.ElasticJobKind {
		t.Errorf("the list is %+v (%v), want one ElasticJob", list.Items, err)
	}

	base := d.Main
	mark := loopguard.Mark{Identity: "test", Preemptor: "p", Since: time.Now(), Until: time.Now().Add(time.Hour)}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}, "spec": {"active": false}}`, loopguard.MarkAnnotation, mark)
	if err := l.Client.Patch(t.Context(), base.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	held := func(d queries.Detail) error {
		if _, held := d.Hold(); !held || d.State != tasks.Preempted || d.Verdict == nil || d.Verdict.Constraint != explain.LoopHeld {
			return fmt.Errorf("it is %s, with the verdict %+v", d.State, d.Verdict)
		}
		return nil
	}
	l.page(user, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, held)
	l.size(e, 0, soon)
	for range 20 { // the controller does not activate it
		time.Sleep(100 * time.Millisecond)
		if d := l.page(user, training, v1alpha1.ElasticJobKind, "train", time.Second, held); len(d.Pods) > 4 {
			t.Errorf("%d pods run during a hold", len(d.Pods))
		}
	}
	release := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: null}}, "spec": {"active": true}}`, loopguard.MarkAnnotation)
	if err := l.Client.Patch(t.Context(), base.DeepCopy(), client.RawPatch("application/merge-patch+json", release)); err != nil {
		t.Fatal(err)
	}
	l.page(user, training, v1alpha1.ElasticJobKind, "train", clustertest.Patience, is(tasks.Running, 8))
}
