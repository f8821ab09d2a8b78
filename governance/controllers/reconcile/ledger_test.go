package reconcile

import (
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/controller-runtime/pkg/event"
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
				if got := l.reserve(shares, "team", queue, desired.Wish{Nominal: wanted}).ok; got != want {
					t.Errorf("reserve: got %t, want %t", got, want)
				}
			}
			reserve(four, false)
			l.suspend()
			l.resume(map[string]grant{queue: {Wish: desired.Wish{Nominal: eight}}}, "")
			reserve(four, true)
			reserve(eight, true)
			l = ledger{}
			reserve(four, false)
			l.disable()
			reserve(four, !shares)
		})
	}
}

// TestShrunkQuotaTriggersCohort checks that the Cohort is reconciled after a quota that
// shrank is recorded: it may have been reconciled between the write and the record, and
// nothing else would trigger it.
func TestShrunkQuotaTriggersCohort(t *testing.T) {
	const queue = "vision"
	four, eight := quota.PoolResources{"p": {"gpu": 4}}, quota.PoolResources{"p": {"gpu": 8}}
	r := CohortReconciler{requests: make(chan event.GenericEvent, 1)}
	r.ledger.disable()
	for _, step := range []struct {
		wanted    quota.PoolResources
		triggered bool
	}{{eight, false}, {four, true}, {four, false}, {eight, false}} {
		if !r.reserve(false, "team", queue, desired.Wish{Nominal: step.wanted}).ok {
			t.Fatalf("reserve of %v: got false", step.wanted)
		}
		r.recordWritten(queue, desired.Wish{Nominal: step.wanted})
		triggered := len(r.requests) > 0
		if triggered != step.triggered {
			t.Errorf("recorded %v: a reconciliation is triggered: %t, want %t", step.wanted, triggered, step.triggered)
		}
		if triggered {
			<-r.requests
		}
	}
}
