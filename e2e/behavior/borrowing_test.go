package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

func borrowedUpToTheLimit(t *testing.T) {
	s := begin(t, 2, 8)
	s.team("owner", gpus(8))
	borrower := s.team("borrower", gpus(4), borrowsPercent(50), weighs(10))

	large := borrower.submit("large", 7, 0)
	large.waits("ExceedsMaxQuota", "(7) > maximum capacity (6)")
	own := borrower.submit("own", 4, 0)
	own.runs()
	borrower.holds(4, 0)
	for _, name := range []string{"more", "and-more"} {
		borrower.submit(name, 1, 0).runs()
	}
	borrower.submit("beyond", 1, 0).waits("WaitingForQuota", "1 more needed")
	borrower.holds(6, 2)
	own.undisturbed()
}

func borrowedWithoutQuota(t *testing.T) {
	s := begin(t, 1, 8)
	owner := s.team("owner", gpus(4), weighs(10))
	guest := s.team("guest", borrowsGPUs(2), weighs(10))

	guest.submit("large", 3, 0).waits("ExceedsMaxQuota", "(3) > maximum capacity (2)")
	borrowed := guest.submit("borrowed", 2, 90)
	borrowed.runs()
	guest.holds(2, 2)

	owner.submit("all-of-it", 4, 0).runs()
	borrowed.preempted("InCohortReclamation")
	owner.holds(4, 0)
	guest.holds(0, 0)
}

func takenBack(t *testing.T) {
	s := begin(t, 1, 8)
	owner := s.team("owner", gpus(4), weighs(10))
	borrower := s.team("borrower", gpus(4), borrowsPercent(100), weighs(10))

	own := borrower.submit("own", 4, 90)
	own.runs()
	borrowed := borrower.submit("borrowed", 4, 10)
	borrowed.runs()
	borrower.holds(8, 4)

	back := owner.submit("back", 4, 0)
	back.runs()
	borrowed.preempted("InCohortReclamation")
	borrowed.waits("WaitingForQuota", "4 more needed")
	owner.holds(4, 0)
	borrower.holds(4, 0)

	back.ends()
	borrowed.runsAgain()
	borrower.holds(8, 4)
	owner.holds(0, 0)
	own.undisturbed()
}

// One that lends can have its quota back from whoever has it, whatever the
// priority; more than its quota it never gets.
func lendsOnly(t *testing.T) {
	s := begin(t, 1, 8)
	lender := s.team("lender", gpus(4), shares(v1alpha1.Lend), weighs(10))
	borrower := s.team("borrower", gpus(4), borrowsPercent(100), weighs(10))

	lender.submit("large", 5, 90).waits("ExceedsMaxQuota", "(5) > maximum capacity (4)")
	high := borrower.submit("high", 8, 90)
	high.runs()
	borrower.holds(8, 4)

	low := lender.submit("low", 4, 0)
	low.runs()
	high.preempted("InCohortReclamation")
	lender.holds(4, 0)
	borrower.holds(0, 0)

	// Half of the cluster is idle now, and it may not have it.
	lender.submit("one-more", 1, 0).waits("WaitingForQuota", "1 more needed")
	lender.holds(4, 0)
	low.undisturbed()
}

func sharesNothing(t *testing.T) {
	s := begin(t, 2, 8)
	closed := s.team("closed", gpus(4), shares(v1alpha1.DontLend), weighs(10))
	open := s.team("open", gpus(4), borrowsAll, weighs(10))
	s.team("lender", gpus(4), weighs(10))

	open.submit("large", 9, 0).waits("ExceedsMaxQuota", "(9) > maximum capacity (8)")
	all := open.submit("all", 8, 0)
	all.runs()
	open.submit("more", 1, 0).waits("WaitingForQuota", "1 more needed")
	open.holds(8, 4)

	closed.submit("large", 6, 0).waits("ExceedsMaxQuota", "(6) > maximum capacity (4)")
	low := closed.submit("low", 4, 10)
	low.runs()
	// Its own gives way to its own, and nobody else's.
	closed.submit("high", 1, 90).runs()
	low.preempted("InClusterQueue")
	closed.holds(1, 0)
	all.undisturbed()
}

// Lowering a quota takes nothing from who runs: it borrows what it had. Only
// one of a higher class would push it out, and then it is too large to return.
func smallerQuota(t *testing.T) {
	s := begin(t, 1, 8)
	team := s.team("team", gpus(4), weighs(10))
	running := team.submit("running", 4, 0)
	running.runs()
	team.holds(4, 0)

	team.agrees(gpus(2))
	team.holds(4, 2)
	team.submit("next", 1, 0).waits("WaitingForQuota", "1 more needed")
	running.undisturbed()
	team.submit("high", 1, 90).runs()
	running.preempted("InClusterQueue")
	running.waits("ExceedsMaxQuota", "(4) > maximum capacity (2)")
}
