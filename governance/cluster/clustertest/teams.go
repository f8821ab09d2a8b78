package clustertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadyTeams creates allocations by 16 clients, waits until they are ready, and
// returns the prefix of their names. A name is the prefix, a hyphen and a number
// from 0.
func (c *Cluster) ReadyTeams(t testing.TB, teams int) string {
	t.Helper()
	prefix := Name("m")
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
	Eventually(t, 5*time.Minute, func(ctx context.Context) error {
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
