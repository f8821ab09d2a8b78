package reconcile

import (
	"testing"

	"kuota.dev/kuota/governance/quota"
)

// TestLedgerOfNewTerm checks that no quota grows before the Cohort was read, whatever
// an earlier term knew, and whether or not the policy lends unallocated compute.
func TestLedgerOfNewTerm(t *testing.T) {
	const queue = "vision"
	four, eight := quota.PoolResources{"p": {"gpu": 4}}, quota.PoolResources{"p": {"gpu": 8}}
	for name, shares := range map[string]bool{"lends": true, "does not lend": false} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			reserve := func(wanted quota.PoolResources, want bool) {
				t.Helper()
				if got, _ := l.reserve(shares, queue, wanted); got != want {
					t.Errorf("reserve: got %t, want %t", got, want)
				}
			}
			reserve(four, false)
			l.suspend()
			l.resume(map[string]quota.PoolResources{queue: eight}, "")
			reserve(four, true)
			reserve(eight, true)
			l.reset()
			reserve(four, false)
			l.disable()
			reserve(four, !shares)
		})
	}
}
