package interrupted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// set creates an object, or changes it.
func set(t *testing.T, object client.Object, change func()) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		_, err := controllerutil.CreateOrUpdate(ctx, clustertest.Get(t).Client, object, func() error { change(); return nil })
		return err
	})
}

// inDepartment returns a check that returns nil once teams are ready in a department, and all
// departments are.
func inDepartment(t *testing.T, department string, teams ...string) func(context.Context) error {
	c := clustertest.Get(t).Client
	return func(ctx context.Context) error {
		for _, team := range teams {
			if err := allocationReady(t, team)(ctx); err != nil {
				return fmt.Errorf("team %s: %w", team, err)
			}
			var queue kueue.ClusterQueue
			if err := c.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
				return err
			}
			if want := "kuota-department-" + department; string(queue.Spec.CohortName) != want {
				return fmt.Errorf("the queue of %s is in %s, want %s", team, queue.Spec.CohortName, want)
			}
		}
		for _, name := range departments {
			var d v1alpha1.Department
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &d); err != nil {
				return err
			}
			if err := conditionTrue(d.Status.Conditions, v1alpha1.ConditionReady, d.Generation); err != nil {
				return fmt.Errorf("department %s: %w", name, err)
			}
		}
		return nil
	}
}

// TestMove moves a team to another department while that gets another parent and quota. At no
// resourceVersion a department has more below it than its quota.
func TestMove(t *testing.T) {
	const g5 = "ml.g5.2xlarge"
	setPolicy(t, policyOf(nil, true))
	interruptEveryCall(t, func(t *testing.T, breakAt int64, after bool) (string, int64) {
		team := clustertest.Name("moved")
		from, to, above := team+"-from", team+"-to", team+"-above"
		departments = []string{from, to, above}
		defer func() { departments = nil }()
		save := func(name, parent string, gpus int64) {
			d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}}
			set(t, d, func() { d.Spec.Parent, d.Spec.Quota = parent, gpusOf(g5, gpus) })
		}
		move := func(department string, gpus int64) {
			a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}
			set(t, a, func() { a.Spec.Department, a.Spec.Quota = department, gpusOf(g5, gpus) })
		}
		done := func(department, parent string) func(context.Context) error {
			return func(ctx context.Context) error {
				if err := inDepartment(t, department, team)(ctx); err != nil {
					return err
				}
				var d v1alpha1.Department
				if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: to}, &d); err != nil {
					return err
				}
				if d.Status.Parent != parent {
					return fmt.Errorf("department %s is below %q, want %q", to, d.Status.Parent, parent)
				}
				return nil
			}
		}
		save(above, "", 6)
		save(from, above, 4)
		save(to, "", 2)
		move(from, 2)
		newControllers(t, team, 0, false, noKueue).run(t, done(from, ""))

		stop := clustertest.WatchTree(t, clustertest.Get(t), g5, map[string]int64{"kuota-department-" + above: 6, "kuota-department-" + from: 4, "kuota-department-" + to: 3})
		save(from, above, 3)
		save(to, above, 3)
		move(to, 3)
		calls := runInterrupted(t, team, breakAt, after, noKueue, done(to, above))
		stop()
		state := stateOf(t, team)

		deleteTeam(t, team)
		for _, name := range departments {
			if err := clustertest.Get(t).Client.Delete(t.Context(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		newControllers(t, team, 0, false, noKueue).run(t, func(ctx context.Context) error {
			for _, name := range departments {
				if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.Department{}); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("department %s is not deleted", name), err)
				}
			}
			return nil
		})
		return state, calls
	})
}
