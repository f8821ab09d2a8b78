package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

func borrowUpToLimit(t *testing.T) {
	s := newScenario(t, 2, 8)
	s.newTeam("owner", gpus(8))
	borrower := s.newTeam("borrower", gpus(4), borrowLimitPercent(50), fairShareWeight(10))

	large := borrower.submit("large", 7, 0)
	large.isPending("ExceedsMaxQuota", "(7) > maximum capacity (6)")
	own := borrower.submit("own", 4, 0)
	own.isAdmitted()
	borrower.uses(4, 0)
	for _, name := range []string{"more", "and-more"} {
		borrower.submit(name, 1, 0).isAdmitted()
	}
	borrower.submit("beyond", 1, 0).isPending("WaitingForQuota", "1 more needed")
	borrower.uses(6, 2)
	own.neverEvicted()
}

func borrowWithoutQuota(t *testing.T) {
	s := newScenario(t, 1, 8)
	owner := s.newTeam("owner", gpus(4), fairShareWeight(10))
	guest := s.newTeam("guest", borrowLimitGPUs(2), fairShareWeight(10))

	guest.submit("large", 3, 0).isPending("ExceedsMaxQuota", "(3) > maximum capacity (2)")
	borrowed := guest.submit("borrowed", 2, 90)
	borrowed.isAdmitted()
	guest.uses(2, 2)

	owner.submit("all-of-it", 4, 0).isAdmitted()
	borrowed.isPreempted("InCohortReclamation")
	owner.uses(4, 0)
	guest.uses(0, 0)
}

func borrowedIsReclaimed(t *testing.T) {
	s := newScenario(t, 1, 8)
	owner := s.newTeam("owner", gpus(4), fairShareWeight(10))
	borrower := s.newTeam("borrower", gpus(4), borrowLimitPercent(100), fairShareWeight(10))

	own := borrower.submit("own", 4, 90)
	own.isAdmitted()
	borrowed := borrower.submit("borrowed", 4, 10)
	borrowed.isAdmitted()
	borrower.uses(8, 4)

	back := owner.submit("back", 4, 0)
	back.isAdmitted()
	borrowed.isPreempted("InCohortReclamation")
	borrowed.isPending("WaitingForQuota", "4 more needed")
	owner.uses(4, 0)
	borrower.uses(4, 0)

	back.finish()
	borrowed.isReadmitted()
	borrower.uses(8, 4)
	owner.uses(0, 0)
	own.neverEvicted()
}

// A team that only lends reclaims its nominal quota from any borrower, at any
// priority. It never uses more than its nominal quota.
func lendsOnly(t *testing.T) {
	s := newScenario(t, 1, 8)
	lender := s.newTeam("lender", gpus(4), sharing(v1alpha1.Lend), fairShareWeight(10))
	borrower := s.newTeam("borrower", gpus(4), borrowLimitPercent(100), fairShareWeight(10))

	lender.submit("large", 5, 90).isPending("ExceedsMaxQuota", "(5) > maximum capacity (4)")
	high := borrower.submit("high", 8, 90)
	high.isAdmitted()
	borrower.uses(8, 4)

	low := lender.submit("low", 4, 0)
	low.isAdmitted()
	high.isPreempted("InCohortReclamation")
	lender.uses(4, 0)
	borrower.uses(0, 0)

	// Half of the cluster is idle now, but the lender must not borrow it.
	lender.submit("one-more", 1, 0).isPending("WaitingForQuota", "1 more needed")
	lender.uses(4, 0)
	low.neverEvicted()
}

func noSharing(t *testing.T) {
	s := newScenario(t, 2, 8)
	closed := s.newTeam("closed", gpus(4), sharing(v1alpha1.DontLend), fairShareWeight(10))
	open := s.newTeam("open", gpus(4), borrowUnlimited, fairShareWeight(10))
	s.newTeam("lender", gpus(4), fairShareWeight(10))

	open.submit("large", 9, 0).isPending("ExceedsMaxQuota", "(9) > maximum capacity (8)")
	all := open.submit("all", 8, 0)
	all.isAdmitted()
	open.submit("more", 1, 0).isPending("WaitingForQuota", "1 more needed")
	open.uses(8, 4)

	closed.submit("large", 6, 0).isPending("ExceedsMaxQuota", "(6) > maximum capacity (4)")
	low := closed.submit("low", 4, 10)
	low.isAdmitted()
	// The team preempts its own tasks only.
	closed.submit("high", 1, 90).isAdmitted()
	low.isPreempted("InClusterQueue")
	closed.uses(1, 0)
	all.neverEvicted()
}

// Lowering a nominal quota evicts nothing: the usage above it counts as
// borrowed. Only a task of higher priority preempts the running task, which then
// exceeds the maximum capacity and cannot be admitted again.
func smallerQuotaEvictsNothing(t *testing.T) {
	s := newScenario(t, 1, 8)
	team := s.newTeam("team", gpus(4), fairShareWeight(10))
	running := team.submit("running", 4, 0)
	running.isAdmitted()
	team.uses(4, 0)

	team.update(gpus(2))
	team.uses(4, 2)
	team.submit("next", 1, 0).isPending("WaitingForQuota", "1 more needed")
	running.neverEvicted()
	team.submit("high", 1, 90).isAdmitted()
	running.isPreempted("InClusterQueue")
	running.isPending("ExceedsMaxQuota", "(4) > maximum capacity (2)")
}
