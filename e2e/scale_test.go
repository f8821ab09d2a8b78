package e2e_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestThousandAllocations measures how long 1,000 teams that are created at once take to
// become ready, and checks that the pages still open. make bench runs it.
func TestThousandAllocations(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	console(t)
	began := time.Now()
	clustertest.Get(t).ReadyTeams(t, 1000)
	fmt.Printf("figure thousand_allocations %.1f s\n", time.Since(began).Seconds())
	for _, path := range []string{"/policies", "/policies/allocations/new"} {
		began := time.Now()
		if status, _ := fetch(t, user(t, console(t), "admin"), console(t)+path); status != 200 {
			t.Errorf("%s: got status %d, want 200", path, status)
		}
		t.Logf("%s took %s", path, time.Since(began).Round(time.Millisecond))
	}
}
