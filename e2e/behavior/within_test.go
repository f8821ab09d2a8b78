package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

func pushedOutWithinTeam(t *testing.T) {
	s := begin(t, 1, 4)
	team := s.team("team", gpus(4))
	low, middle := team.submit("low", 2, 10), team.submit("middle", 2, 50)
	low.runs()
	middle.runs()

	high := team.submit("high", 2, 90)
	high.runs()
	low.preempted("InClusterQueue")
	low.waits("WaitingForQuota", "2 more needed")
	alike := team.submit("as-low", 2, 10)
	alike.waits("WaitingForQuota")
	team.holds(4, 0)

	// Which of two that are alike comes first is not promised: once, it was the
	// younger.
	alike.ends()
	high.ends()
	low.runsAgain()
	middle.undisturbed()
}

func nobodyPushedOut(t *testing.T) {
	s := begin(t, 1, 4)
	team := s.team("team", gpus(4), neverPreemptsWithin)
	low := team.submit("low", 4, 10)
	low.runs()
	high := team.submit("high", 1, 90)
	high.waits("WaitingForQuota", "1 more needed")
	team.holds(4, 0)
	low.undisturbed()

	low.ends()
	high.runs()
}

// Should Kueue take a lower class by chance, since room came while it looked
// at that one, the higher pushes it out at once.
func classesOrderTheQueue(t *testing.T) {
	s := begin(t, 1, 4)
	team := s.team("team", gpus(4))
	first := team.submit("first", 4, 100)
	first.runs()
	none, low, high := team.submit("none", 4, 0), team.submit("low", 4, 10), team.submit("high", 4, 90)
	for _, k := range []*task{none, low, high} {
		k.waits("WaitingForQuota", "4 more needed")
	}
	for _, next := range []*task{high, low, none} {
		first.ends()
		next.runs()
		team.holds(4, 0)
		first = next
	}
}

func heldAndDrained(t *testing.T) {
	s := begin(t, 1, 4)
	team := s.team("team", gpus(4))
	running := []*task{team.submit("one", 1, 0), team.submit("two", 1, 0)}
	for _, k := range running {
		k.runs()
	}

	team.agrees(activation(v1alpha1.Hold))
	next := team.submit("next", 1, 0)
	next.waits("Suspended", "is inactive")
	team.holds(2, 0)
	for _, k := range running {
		k.undisturbed()
	}

	team.agrees(activation(v1alpha1.Drain))
	for _, k := range running {
		k.is("Evicted=True/ClusterQueueStopped", "Requeued=False/ClusterQueueStopped", "QuotaReserved=False")
	}
	team.holds(0, 0)

	team.agrees(activation(v1alpha1.Active))
	for _, k := range running {
		k.is("QuotaReserved=True", "Admitted=True", "Requeued=True/ClusterQueueRestarted")
	}
	next.runs()
	team.holds(3, 0)
}
