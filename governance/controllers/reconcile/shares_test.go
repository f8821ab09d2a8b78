package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A share that gets quota gets a ClusterQueue, and its LocalQueue keeps its name. The department
// counts the quota of both queues of the team.
func TestShareWithQuota(t *testing.T) {
	c := setup(t)
	department, team := clustertest.Name("research"), clustertest.Name("team")
	naming := desired.DefaultNaming
	cohort, own := "kuota-department-"+department, naming.ShareClusterQueue(team, "batch")
	setDepartment(t, c, department, v1alpha1.DepartmentSpec{Quota: rowsOf(8)})
	reserves(t, c, department, "shared-pool", 8)
	spec := func(gpus, share int64) v1alpha1.ComputeAllocationSpec {
		batch := v1alpha1.Share{Name: "batch", Weight: 5}
		if share > 0 {
			batch.Quota, batch.QueueingStrategy = []v1alpha1.WindowQuota{{InstanceType: g5, Accelerators: &share}}, "StrictFIFO"
		}
		return v1alpha1.ComputeAllocationSpec{Department: department, Quota: rowsOf(gpus), Shares: []v1alpha1.Share{batch}}
	}
	queueOfShare := func(clusterQueue string) {
		t.Helper()
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			var queue kueue.LocalQueue
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: naming.Namespace(team), Name: naming.ShareQueue(team, "batch")}, &queue); err != nil {
				return err
			}
			if string(queue.Spec.ClusterQueue) != clusterQueue {
				return fmt.Errorf("the LocalQueue of the share is of %s, want %s", queue.Spec.ClusterQueue, clusterQueue)
			}
			return nil
		})
	}
	shareHas := func(gpus int64) {
		t.Helper()
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			var queue kueue.ClusterQueue
			err := c.Client.Get(ctx, client.ObjectKey{Name: own}, &queue)
			if gpus == 0 && apierrors.IsNotFound(err) {
				return nil
			}
			if got := clustertest.GPUs(queue.Spec.ResourceGroups, g5); err != nil || gpus == 0 || got != gpus || string(queue.Spec.CohortName) != cohort || queue.Spec.QueueingStrategy != kueue.StrictFIFO {
				return fmt.Errorf("the ClusterQueue of the share has %d GPUs in %s, %s (%v), want %d", got, queue.Spec.CohortName, queue.Spec.QueueingStrategy, err, gpus)
			}
			return nil
		})
	}
	stop := clustertest.WatchTree(t, c, g5, map[string]int64{cohort: 8})
	create(t, c, team, spec(2, 0))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	queueOfShare(naming.ClusterQueue(team))

	setQuota(t, c, team, spec(2, 3))
	shareHas(3)
	queueOfShare(own)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	reserves(t, c, department, "shared-pool", 3)

	// More than the department has left is not applied; what the team's own queue gives up is.
	setQuota(t, c, team, spec(2, 7))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "share batch: department "+department+" has not as much left: ml.g5.2xlarge: wanted 7 GPUs, left are 6 GPUs")
	shareHas(3)
	setQuota(t, c, team, spec(1, 7))
	shareHas(7)
	inCohort(t, c, team, cohort, 1)
	setQuota(t, c, team, spec(5, 2)) // the share falls before the team's queue grows
	shareHas(2)
	inCohort(t, c, team, cohort, 5)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	setQuota(t, c, team, spec(5, 0))
	queueOfShare(naming.ClusterQueue(team))
	shareHas(0)
	reserves(t, c, department, "shared-pool", 3)
	setQuota(t, c, team, spec(5, 1))
	shareHas(1)
	queueOfShare(own)
	stop()

	if err := c.Client.Delete(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, c, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	shareHas(0)
	reserves(t, c, department, "shared-pool", 8)
}
