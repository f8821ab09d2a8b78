package behavior_test

import "testing"

// borrowAllIdle sets up what both sharing strategies are tested on: 16 idle
// GPUs, and two teams with a nominal quota of 2 each. Team early has borrowed
// all 16 before team late submits.
func borrowAllIdle(t *testing.T) (early, late *team) {
	s := newScenario(t, 3, 8)
	s.newTeam("lender", gpus(16), fairShareWeight(10))
	early = s.newTeam("early", gpus(2), borrowUnlimited, fairShareWeight(10))
	late = s.newTeam("late", gpus(2), borrowUnlimited, fairShareWeight(30))
	early.submitEach("scan", 20, "")
	early.uses(20, 18)
	late.submitEach("scan", 20, "")
	return early, late
}

func lateTeamGetsOnlyItsQuota(t *testing.T) {
	early, late := borrowAllIdle(t)
	late.uses(2, 0)
	early.uses(18, 16)
	for _, k := range late.tasks {
		if len(admittedTasks([]*task{k})) == 0 {
			k.isPending("WaitingForQuota", "1 more needed")
		}
	}
	late.uses(2, 0)
	early.uses(18, 16)
}

// Weights of 30 and 10 split 16 borrowable GPUs into 12 and 4. Kueue preempts
// about one task a second.
func threeToOne(t *testing.T) {
	early, late := borrowAllIdle(t)
	late.uses(14, 12)
	early.uses(6, 4)
	for _, k := range late.tasks {
		if len(admittedTasks([]*task{k})) == 0 {
			k.isPending("WaitingForQuota", "1 more needed")
		}
	}
	late.uses(14, 12)
	early.uses(6, 4)
	t.Logf("moving 14 GPUs preempted %d tasks", len(preemptedTasks(t, early.tasks)))
}

// A weight of 0 makes the weighted share of any borrowed usage infinite: the
// team keeps its nominal quota and loses all that it borrowed to teams with a
// weight.
func withoutWeight(t *testing.T) {
	s := newScenario(t, 1, 8)
	s.newTeam("lender", gpus(4), fairShareWeight(10))
	weightless := s.newTeam("weightless", gpus(2), borrowUnlimited, fairShareWeight(0))
	weighty := s.newTeam("weighty", gpus(2), borrowUnlimited, fairShareWeight(10))
	weightless.submitEach("scan", 8, "")
	weightless.uses(8, 6)
	weighty.submitEach("scan", 8, "")
	weighty.uses(6, 4)
	weightless.uses(2, 0)
}

// competeToBorrow has team early borrow 4 GPUs at low priority, and team late
// request the same 4 GPUs at high priority.
func competeToBorrow(t *testing.T) (low, high *task) {
	s := newScenario(t, 1, 8)
	s.newTeam("lender", gpus(4), fairShareWeight(10))
	early := s.newTeam("early", gpus(2), borrowUnlimited, fairShareWeight(10))
	late := s.newTeam("late", gpus(2), borrowUnlimited, fairShareWeight(10))
	early.submit("own", 2, 90).isAdmitted()
	low = early.submit("low", 4, 10)
	low.isAdmitted()
	early.uses(6, 4)
	late.submit("own", 2, 90).isAdmitted()
	return low, late.submit("high", 4, 90)
}

func priorityPreemptsBorrowers(t *testing.T) {
	low, high := competeToBorrow(t)
	high.isAdmitted()
	low.isPreempted("InCohortReclaimWhileBorrowing")
	high.uses(6, 4)
	low.uses(2, 0)
}

// With equal weights a preemption would only swap the two shares, so that Kueue
// preempts nothing.
func priorityHasNoEffect(t *testing.T) {
	low, high := competeToBorrow(t)
	high.isPending("WaitingForQuota", "4 more needed")
	low.neverEvicted()
	low.uses(6, 4)
}
