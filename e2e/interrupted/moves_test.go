package interrupted_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestMoves moves teams to another department at once while that gets another parent. Each team
// has a running task. The second time the controllers are killed at each of their writes, before
// it is sent and then once it is executed: between two writes the cluster does not change, so
// that this is between any two calls. No department ever has more below it than its quota, no
// task is evicted, and the end is the same. Each process begins with another team. make verify moves 50
// teams.
func TestMoves(t *testing.T) {
	setPolicy(t, policyOf(nil, true))
	teams := 4
	if clustertest.Verify {
		teams = 50
	}
	want := moveAll(t, teams, func(all controllers, done func(context.Context) error) { all.run(t, done) })
	got := moveAll(t, teams, func(all controllers, done func(context.Context) error) {
		order := rand.New(rand.NewPCG(1, 1))
		for kills := 0; ; kills++ {
			order.Shuffle(teams, func(i, j int) { all.teams[i], all.teams[j] = all.teams[j], all.teams[i] })
			c := controllersOn(t, &clustertest.Line{BreakAt: 1, After: kills%2 == 1, Writing: true}, noKueue, all.teams...)
			if c.run(t, done); !c.line.Broken() {
				if t.Logf("%d teams, killed %d times", teams, kills); kills < 2*teams {
					t.Errorf("got %d kills, want at least %d", kills, 2*teams)
				}
				return
			}
			if kills > 100*teams {
				t.Fatalf("killed %d times without an end", kills)
			}
		}
	})
	if got != want {
		t.Errorf("the state differs (-want +got):\n%s", diff(want, got))
	}
}

// moveAll moves teams by controllers that finish runs until done returns nil, and returns the
// state afterwards.
func moveAll(t *testing.T, n int, finish func(all controllers, done func(context.Context) error)) string {
	t.Helper()
	const g5 = "ml.g5.2xlarge"
	c := clustertest.Get(t).Client
	prefix, quota := clustertest.Name("moves"), int64(n) // of one GPU each
	from, to, above := prefix+"-from", prefix+"-to", prefix+"-above"
	departments = []string{from, to, above}
	defer func() { departments = nil }()
	save := func(name, parent string, gpus int64) {
		d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}}
		set(t, d, func() { d.Spec.Parent, d.Spec.Quota = parent, gpusOf(g5, gpus) })
	}
	var teams []string
	for i := range n {
		teams = append(teams, fmt.Sprintf("%s-%02d", prefix, i))
	}
	move := func(department string) {
		for _, team := range teams {
			a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}
			set(t, a, func() { a.Spec.Department, a.Spec.Quota = department, gpusOf(g5, 1) })
		}
	}
	all := controllersOn(t, &clustertest.Line{}, noKueue, teams...)
	save(above, "", 2*quota)
	save(from, above, quota)
	save(to, "", 1)
	move(from)
	all.run(t, inDepartment(t, from, teams...))
	for _, team := range teams {
		runTask(t, team)
	}
	running(t, teams)

	stop := clustertest.WatchTree(t, clustertest.Get(t), g5, map[string]int64{"kuota-department-" + above: 2 * quota, "kuota-department-" + from: quota, "kuota-department-" + to: quota})
	save(to, above, quota)
	move(to)
	finish(all, inDepartment(t, to, teams...))
	stop()
	running(t, teams)
	state := stateOf(t, prefix)

	for _, team := range teams {
		if err := c.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace(desired.DefaultNaming.Namespace(team)), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range departments {
		if err := c.Delete(t.Context(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	all.run(t, func(ctx context.Context) error {
		for _, team := range teams {
			if err := isDeleted(t, team)(ctx); err != nil {
				return err
			}
		}
		for _, name := range departments {
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.Department{}); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("department %s is not deleted", name), err)
			}
		}
		return nil
	})
	return state
}

// gpusOf returns a quota of GPUs.
func gpusOf(instanceType string, gpus int64) []v1alpha1.QuotaRow {
	return []v1alpha1.QuotaRow{{InstanceType: instanceType, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}
}

// runTask creates a task of a team that uses all of its quota of one GPU.
func runTask(t *testing.T, team string) {
	t.Helper()
	requests := corev1.ResourceList{catalog.GPU: resource.MustParse("1")}
	suspend := true
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: desired.DefaultNaming.Namespace(team), Labels: map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(team)}},
		Spec: batchv1.JobSpec{Suspend: &suspend, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
		}}},
	}
	if err := clustertest.Get(t).Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// running waits until the task of each team is admitted, and fails the test if one was ever
// evicted.
func running(t *testing.T, teams []string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		for _, team := range teams {
			var list kueue.WorkloadList
			if err := clustertest.Get(t).Client.List(ctx, &list, client.InNamespace(desired.DefaultNaming.Namespace(team))); err != nil {
				return err
			}
			if len(list.Items) != 1 || !meta.IsStatusConditionTrue(list.Items[0].Status.Conditions, kueue.WorkloadQuotaReserved) {
				return fmt.Errorf("the task of %s does not use quota: %d Workloads", team, len(list.Items))
			}
			if stats := list.Items[0].Status.SchedulingStats; stats != nil && slices.ContainsFunc(stats.Evictions, func(e kueue.WorkloadSchedulingStatsEviction) bool { return e.Count > 0 }) {
				t.Errorf("the task of %s was evicted: %+v", team, stats.Evictions)
			}
		}
		return nil
	})
}
