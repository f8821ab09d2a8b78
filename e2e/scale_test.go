package e2e_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A thousand teams made at once are all ready soon, and the page still opens.
// make bench runs it.
func TestThousandAllocations(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	console(t)
	began := time.Now()
	manyTeams(t, 1000)
	fmt.Printf("figure thousand_allocations %.1f s\n", time.Since(began).Seconds())
	for _, path := range []string{"/policies", "/policies/allocations/new"} {
		asked := time.Now()
		if status, _ := fetch(t, person(t, console(t), "admin"), console(t)+path); status != 200 {
			t.Errorf("%s answers %d", path, status)
		}
		t.Logf("%s took %s", path, time.Since(asked).Round(time.Millisecond))
	}
}

// manyTeams makes teams with queues of their own, and returns what their names
// begin with: a hyphen and the numbers from 0 on follow.
func manyTeams(t *testing.T, teams int) string {
	t.Helper()
	c := clustertest.Get(t)
	start := clustertest.Name("m")
	began := time.Now()
	var making sync.WaitGroup
	for worker := range 16 {
		making.Go(func() {
			for i := worker; i < teams; i += 16 {
				four := int64(4)
				allocation := &v1alpha1.ComputeAllocation{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", start, i), Labels: map[string]string{"test": start}},
					Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Amounts: v1alpha1.Amounts{Accelerators: &four}}}},
				}
				if err := c.Client.Create(t.Context(), allocation); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	making.Wait()
	t.Logf("created after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		_ = c.Client.DeleteAllOf(context.Background(), &v1alpha1.ComputeAllocation{}, client.MatchingLabels{"test": start})
	})
	clustertest.Eventually(t, 5*time.Minute, func(ctx context.Context) error {
		time.Sleep(time.Second) // a list of a thousand is work for the API server too
		var list v1alpha1.ComputeAllocationList
		if err := c.Client.List(ctx, &list, client.MatchingLabels{"test": start}); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		if ready < teams {
			return fmt.Errorf("%d of %d are ready", ready, teams)
		}
		return nil
	})
	return start
}
