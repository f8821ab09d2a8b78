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

// TestThousandAllocations measures how long 1,000 teams that are created at once take to
// become ready, and checks that the pages still open. make bench runs it.
func TestThousandAllocations(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	console(t)
	began := time.Now()
	manyTeams(t, 1000)
	fmt.Printf("figure thousand_allocations %.1f s\n", time.Since(began).Seconds())
	for _, path := range []string{"/policies", "/policies/allocations/new"} {
		began := time.Now()
		if status, _ := fetch(t, user(t, console(t), "admin"), console(t)+path); status != 200 {
			t.Errorf("%s: got status %d, want 200", path, status)
		}
		t.Logf("%s took %s", path, time.Since(began).Round(time.Millisecond))
	}
}

// manyTeams creates teams, waits until they are ready, and returns the prefix of their
// names. A name is the prefix, a hyphen and a number from 0.
func manyTeams(t *testing.T, teams int) string {
	t.Helper()
	c := clustertest.Get(t)
	prefix := clustertest.Name("m")
	began := time.Now()
	var creating sync.WaitGroup
	for worker := range 16 {
		creating.Go(func() {
			for i := worker; i < teams; i += 16 {
				four := int64(4)
				allocation := &v1alpha1.ComputeAllocation{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: map[string]string{"test": prefix}},
					Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &four}}}},
				}
				if err := c.Client.Create(t.Context(), allocation); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	t.Logf("created after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		_ = c.Client.DeleteAllOf(context.Background(), &v1alpha1.ComputeAllocation{}, client.MatchingLabels{"test": prefix})
	})
	clustertest.Eventually(t, 5*time.Minute, func(ctx context.Context) error {
		time.Sleep(time.Second) // poll slowly: a list of 1,000 loads the API server too
		var list v1alpha1.ComputeAllocationList
		if err := c.Client.List(ctx, &list, client.MatchingLabels{"test": prefix}); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		if ready < teams {
			return fmt.Errorf("got %d ready teams, want %d", ready, teams)
		}
		return nil
	})
	return prefix
}
