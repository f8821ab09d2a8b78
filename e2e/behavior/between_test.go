package behavior_test

import "testing"

// sixteenIdle is what both ways of sharing are tried on: 16 GPUs that stand
// idle, and two teams with 2 of their own, of which one came first and took
// all that it could.
func sixteenIdle(t *testing.T) (early, late *team) {
	s := begin(t, 3, 8)
	s.team("lender", gpus(16), weighs(10))
	early = s.team("early", gpus(2), borrowsAll, weighs(10))
	late = s.team("late", gpus(2), borrowsAll, weighs(30))
	early.submitEach("scan", 20, "")
	early.holds(20, 18)
	late.submitEach("scan", 20, "")
	return early, late
}

func lateTeamGetsItsOwn(t *testing.T) {
	early, late := sixteenIdle(t)
	late.holds(2, 0)
	early.holds(18, 16)
	for _, k := range late.tasks {
		if len(admitted([]*task{k})) == 0 {
			k.waits("WaitingForQuota", "1 more needed")
		}
	}
	late.holds(2, 0)
	early.holds(18, 16)
}

// Borrowed 12 and 4 of 16, as 30 to 10. Kueue moves one task a second.
func threeToOne(t *testing.T) {
	early, late := sixteenIdle(t)
	late.holds(14, 12)
	early.holds(6, 4)
	for _, k := range late.tasks {
		if len(admitted([]*task{k})) == 0 {
			k.waits("WaitingForQuota", "1 more needed")
		}
	}
	late.holds(14, 12)
	early.holds(6, 4)
	t.Logf("%d tasks were preempted to move 14 GPUs", len(preemptedOnes(t, early.tasks)))
}

// A weight of 0 makes any share infinite: such a team has its quota, and
// gives back whatever it borrowed to who has a weight.
func withoutWeight(t *testing.T) {
	s := begin(t, 1, 8)
	s.team("lender", gpus(4), weighs(10))
	weightless := s.team("weightless", gpus(2), borrowsAll, weighs(0))
	weighty := s.team("weighty", gpus(2), borrowsAll, weighs(10))
	weightless.submitEach("scan", 8, "")
	weightless.holds(8, 6)
	weighty.submitEach("scan", 8, "")
	weighty.holds(6, 4)
	weightless.holds(2, 0)
}

// overTheSame has one team borrow with a low class what another then wants
// with a high one.
func overTheSame(t *testing.T) (low, high *task) {
	s := begin(t, 1, 8)
	s.team("lender", gpus(4), weighs(10))
	early := s.team("early", gpus(2), borrowsAll, weighs(10))
	late := s.team("late", gpus(2), borrowsAll, weighs(10))
	early.submit("own", 2, 90).runs()
	low = early.submit("low", 4, 10)
	low.runs()
	early.holds(6, 4)
	late.submit("own", 2, 90).runs()
	return low, late.submit("high", 4, 90)
}

func priorityCountsForBorrowing(t *testing.T) {
	low, high := overTheSame(t)
	high.runs()
	low.preempted("InCohortReclaimWhileBorrowing")
	high.holds(6, 4)
	low.holds(2, 0)
}

// With equal weights the shares would only change places, so that all stays as
// it is.
func priorityDoesNotCount(t *testing.T) {
	low, high := overTheSame(t)
	high.waits("WaitingForQuota", "4 more needed")
	low.undisturbed()
	low.holds(6, 4)
}
