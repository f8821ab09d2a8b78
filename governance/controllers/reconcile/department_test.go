package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const g5 = "ml.g5.2xlarge"

func rowsOf(gpus int64) []v1alpha1.QuotaRow {
	if gpus == 0 {
		return nil
	}
	return []v1alpha1.QuotaRow{{InstanceType: g5, Quantities: accelerators(gpus)}}
}

// setDepartment creates a department, or changes its spec, and deletes it when the test ends.
func setDepartment(t *testing.T, c *clustertest.Cluster, name string, spec v1alpha1.DepartmentSpec) {
	t.Helper()
	d := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	err := c.Client.Create(t.Context(), d)
	if err == nil {
		t.Cleanup(func() {
			_ = c.Client.Delete(context.Background(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
		return
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		d.Spec = spec
		return c.Client.Update(t.Context(), d)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// departmentIs waits until Ready of a department has this status and reason at its generation, and
// its message contains text.
func departmentIs(t *testing.T, c *clustertest.Cluster, name string, status metav1.ConditionStatus, reason, text string) (d v1alpha1.Department) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &d); err != nil {
			return err
		}
		got := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if got == nil || got.ObservedGeneration != d.Generation || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, text) {
			return fmt.Errorf("Ready of department %s is %+v, want %s %s with %q", name, got, status, reason, text)
		}
		return nil
	})
	return d
}

// reserves waits until the Cohort of a department has these GPUs and this parent.
func reserves(t *testing.T, c *clustertest.Cluster, name, parent string, gpus int64) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var cohort kueue.Cohort
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "kuota-department-" + name}, &cohort); err != nil {
			return err
		}
		if got := clustertest.GPUs(cohort.Spec.ResourceGroups, g5); got != gpus || string(cohort.Spec.ParentName) != parent {
			return fmt.Errorf("Cohort of %s has %d GPUs below %s, want %d below %s", name, got, cohort.Spec.ParentName, gpus, parent)
		}
		return nil
	})
}

// inCohort waits until the ClusterQueue of a team is in a cohort with this quota.
func inCohort(t *testing.T, c *clustertest.Cluster, team, cohort string, gpus int64) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
			return err
		}
		if got := clustertest.GPUs(queue.Spec.ResourceGroups, g5); string(queue.Spec.CohortName) != cohort || got != gpus {
			return fmt.Errorf("the queue of %s has %d GPUs in %s, want %d in %s", team, got, queue.Spec.CohortName, gpus, cohort)
		}
		return nil
	})
}

// A department is a Cohort whose quota is its reserve. What it has not left is not applied, for
// teams and for departments below it, and says by how much; a team that moves takes its quota along.
func TestDepartment(t *testing.T) {
	c := setup(t)
	research, vision, sales := clustertest.Name("research"), clustertest.Name("vision"), clustertest.Name("sales")
	team, other := clustertest.Name("team"), clustertest.Name("other")
	admins := []v1alpha1.DepartmentMember{{Member: v1alpha1.Member{Kind: "User", Name: "head@example.com"}, Role: v1alpha1.DepartmentAdmin}}
	teamSpec := func(department string, gpus int64) v1alpha1.ComputeAllocationSpec {
		return v1alpha1.ComputeAllocationSpec{Department: department, Quota: rowsOf(gpus)}
	}
	limit := int32(50)
	setDepartment(t, c, research, v1alpha1.DepartmentSpec{Quota: rowsOf(8), Members: admins, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: &limit}})
	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Parent: research, Quota: rowsOf(5)})
	reserves(t, c, vision, "kuota-department-"+research, 5)
	reserves(t, c, research, "shared-pool", 3)
	stop := clustertest.WatchTree(t, c, g5, map[string]int64{"kuota-department-" + research: 8, "kuota-department-" + vision: 5, "kuota-department-" + sales: 4})

	create(t, c, team, teamSpec(vision, 2))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	inCohort(t, c, team, "kuota-department-"+vision, 2)
	reserves(t, c, vision, "kuota-department-"+research, 3)
	var cohort kueue.Cohort
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "kuota-department-" + research}, &cohort); err != nil {
		t.Fatal(err)
	}
	for _, r := range cohort.Spec.ResourceGroups[0].Flavors[slices.IndexFunc(cohort.Spec.ResourceGroups[0].Flavors, func(f kueue.FlavorQuotas) bool { return f.Name == g5 })].Resources {
		if r.Name == "nvidia.com/gpu" && (r.BorrowingLimit == nil || r.BorrowingLimit.Value() != 4 || r.LendingLimit != nil) {
			t.Errorf("the border of %s: got %v and %v, want to borrow 4 and to lend all", research, r.BorrowingLimit, r.LendingLimit)
		}
	}

	create(t, c, other, teamSpec(vision, 4))
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionFalse, "wanted 4 GPUs, left are 3 GPUs")
	setQuota(t, c, other, teamSpec(vision, 3))
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	setQuota(t, c, team, teamSpec(vision, 3))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "left are 2 GPUs; the quota stays as it is")
	inCohort(t, c, team, "kuota-department-"+vision, 2)

	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Parent: research, Quota: rowsOf(4)})
	departmentIs(t, c, vision, metav1.ConditionFalse, v1alpha1.ReasonBelowTeams, "they have 5 GPUs, the quota would be 4 GPUs")
	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Parent: research, Quota: rowsOf(9)})
	departmentIs(t, c, vision, metav1.ConditionFalse, v1alpha1.ReasonOverParent, "wanted 9 GPUs, left are 8 GPUs")
	setDepartment(t, c, research, v1alpha1.DepartmentSpec{Parent: vision, Quota: rowsOf(8), Members: admins})
	departmentIs(t, c, research, metav1.ConditionFalse, v1alpha1.ReasonParentInvalid, "is below this one")
	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Parent: research, Quota: rowsOf(5)})
	departmentIs(t, c, vision, metav1.ConditionTrue, "Ready", "")

	// Room for the team: it is applied by itself.
	setQuota(t, c, other, teamSpec(vision, 1))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	inCohort(t, c, team, "kuota-department-"+vision, 3)

	// Moves: of a team, of a department, and out of all.
	setDepartment(t, c, sales, v1alpha1.DepartmentSpec{Quota: rowsOf(4)})
	setQuota(t, c, team, teamSpec(sales, 3))
	inCohort(t, c, team, "kuota-department-"+sales, 3)
	reserves(t, c, sales, "shared-pool", 1)
	reserves(t, c, vision, "kuota-department-"+research, 4)
	setDepartment(t, c, research, v1alpha1.DepartmentSpec{Quota: rowsOf(8), Members: admins})
	departmentIs(t, c, research, metav1.ConditionTrue, "Ready", "")
	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Quota: rowsOf(5)})
	reserves(t, c, vision, "shared-pool", 4)
	reserves(t, c, research, "shared-pool", 8)
	setQuota(t, c, team, teamSpec("", 3))
	inCohort(t, c, team, "shared-pool", 3)
	stop()

	// Who governs it: the admins of the chain in its namespace, all members in those of its teams.
	setDepartment(t, c, vision, v1alpha1.DepartmentSpec{Parent: research, Quota: rowsOf(5), Members: []v1alpha1.DepartmentMember{{Member: v1alpha1.Member{Kind: "Group", Name: "lookers"}, Role: v1alpha1.DepartmentViewer}}})
	subjects := func(namespace string, want ...string) {
		t.Helper()
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			var binding rbacv1.RoleBinding
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: desired.DepartmentName}, &binding); err != nil {
				return err
			}
			got := []string{binding.RoleRef.Name}
			for _, s := range binding.Subjects {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%s: got %v, want %v", namespace, got, want)
			}
			return nil
		})
	}
	subjects("kuota-department-"+vision, "kuota-department-admin", "head@example.com")
	subjects("hyperpod-ns-"+other, "kuota-department-viewer", "lookers", "head@example.com")

	// A hold holds all teams below; a deletion waits until nothing is below, and
	// until then the admins keep their role.
	setDepartment(t, c, research, v1alpha1.DepartmentSpec{Quota: rowsOf(8), Members: admins, Activation: v1alpha1.Hold})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(other)}, &queue); err != nil || *queue.Spec.StopPolicy != kueue.Hold {
			return fmt.Errorf("the queue of %s has stop policy %v (%v)", other, queue.Spec.StopPolicy, err)
		}
		return nil
	})
	if err := c.Client.Delete(t.Context(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: vision}}); err != nil {
		t.Fatal(err)
	}
	departmentIs(t, c, vision, metav1.ConditionFalse, "Deleting", "team "+other)
	setDepartment(t, c, research, v1alpha1.DepartmentSpec{Quota: rowsOf(8), Members: append(admins, v1alpha1.DepartmentMember{Member: v1alpha1.Member{Kind: "User", Name: "second@example.com"}, Role: v1alpha1.DepartmentAdmin})})
	subjects("kuota-department-"+vision, "kuota-department-admin", "head@example.com", "second@example.com") // who can move the team out
	setQuota(t, c, other, teamSpec("", 1))
	waitDeleted(t, c, &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: vision}})
	waitDeleted(t, c, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kuota-department-" + vision, Name: desired.DepartmentName}})
	reserves(t, c, research, "shared-pool", 8)
}

// Twenty teams that are created at once get what their department has, and no more.
func TestTwentyAtOnce(t *testing.T) {
	c := setup(t)
	const most = 7
	department := clustertest.Name("crowd")
	setDepartment(t, c, department, v1alpha1.DepartmentSpec{Quota: rowsOf(most)})
	departmentIs(t, c, department, metav1.ConditionTrue, "Ready", "")
	stop := clustertest.WatchTree(t, c, g5, map[string]int64{"kuota-department-" + department: most})
	var teams []string
	var wg sync.WaitGroup
	for range 20 {
		team := clustertest.Name("crowd")
		teams = append(teams, team)
		wg.Go(func() {
			create(t, c, team, v1alpha1.ComputeAllocationSpec{Department: department, Quota: rowsOf(1)})
		})
	}
	wg.Wait()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		ready, refused := 0, 0
		for _, team := range teams {
			var a v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
				return err
			}
			switch is := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); {
			case is == nil:
			case is.Status == metav1.ConditionTrue:
				ready++
			case is.Reason == v1alpha1.ReasonDepartment && strings.Contains(is.Message, "wanted 1 GPU, left are 0 GPUs"):
				refused++
			}
		}
		if ready != most || refused != len(teams)-most {
			return fmt.Errorf("%d teams are ready and %d refused, want %d and %d", ready, refused, most, len(teams)-most)
		}
		return nil
	})
	stop()
}
