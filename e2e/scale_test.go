package e2e_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestManyAllocations measures how long 5,000 teams in 200 departments that are created at once
// take until Kuota has written them, and until Kueue has activated them, and checks that the pages
// still open. make bench runs it.
func TestManyAllocations(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	console(t)
	began := time.Now()
	c, teams := clustertest.Get(t), 5000
	prefix := c.CreateTeams(t, teams, 200)
	for _, state := range []struct {
		name string
		is   func(*v1alpha1.ComputeAllocation) bool
	}{
		{"written", func(a *v1alpha1.ComputeAllocation) bool { return len(a.Status.Quota) > 0 }},
		{"ready", func(a *v1alpha1.ComputeAllocation) bool {
			return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
		}},
	} {
		c.AwaitTeams(t, prefix, teams, state.is)
		fmt.Printf("figure many_allocations_%s %.1f s\n", state.name, time.Since(began).Seconds())
	}
	for _, path := range []string{"/policies", "/policies/allocations/new", "/departments", "/teams"} {
		began := time.Now()
		if status, _ := fetch(t, user(t, console(t), "admin"), console(t)+path); status != 200 {
			t.Errorf("%s: got status %d, want 200", path, status)
		}
		t.Logf("%s took %s", path, time.Since(began).Round(time.Millisecond))
	}
}
