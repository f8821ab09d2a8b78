package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

func preemptWithinTeam(t *testing.T) {
	s := newScenario(t, 1, 4)
	team := s.newTeam("team", gpus(4))
	low, middle := team.submit("low", 2, 10), team.submit("middle", 2, 50)
	low.isAdmitted()
	middle.isAdmitted()

	high := team.submit("high", 2, 90)
	high.isAdmitted()
	low.isPreempted("InClusterQueue")
	low.isPending("WaitingForQuota", "2 more needed")
	equal := team.submit("as-low", 2, 10)
	equal.isPending("WaitingForQuota")
	team.uses(4, 0)

	// Kueue does not guarantee the order of two equal tasks: the younger one has
	// been admitted first.
	equal.finish()
	high.finish()
	low.isReadmitted()
	middle.neverEvicted()
}

func noPreemptionWithinTeam(t *testing.T) {
	s := newScenario(t, 1, 4)
	team := s.newTeam("team", gpus(4), neverPreemptWithinTeam)
	low := team.submit("low", 4, 10)
	low.isAdmitted()
	high := team.submit("high", 1, 90)
	high.isPending("WaitingForQuota", "1 more needed")
	team.uses(4, 0)
	low.neverEvicted()

	low.finish()
	high.isAdmitted()
}

// Quota can be released while Kueue tries a task of lower priority, which it then
// admits first. The task of higher priority preempts that one at once.
func priorityOrdersTheQueue(t *testing.T) {
	s := newScenario(t, 1, 4)
	team := s.newTeam("team", gpus(4))
	first := team.submit("first", 4, 100)
	first.isAdmitted()
	none, low, high := team.submit("none", 4, 0), team.submit("low", 4, 10), team.submit("high", 4, 90)
	for _, k := range []*task{none, low, high} {
		k.isPending("WaitingForQuota", "4 more needed")
	}
	for _, next := range []*task{high, low, none} {
		first.finish()
		next.isAdmitted()
		team.uses(4, 0)
		first = next
	}
}

func heldAndDrained(t *testing.T) {
	s := newScenario(t, 1, 4)
	team := s.newTeam("team", gpus(4))
	running := []*task{team.submit("one", 1, 0), team.submit("two", 1, 0)}
	for _, k := range running {
		k.isAdmitted()
	}

	team.update(activation(v1alpha1.Hold))
	next := team.submit("next", 1, 0)
	next.isPending("Suspended", "is inactive")
	team.uses(2, 0)
	for _, k := range running {
		k.neverEvicted()
	}

	team.update(activation(v1alpha1.Drain))
	for _, k := range running {
		k.hasConditions("Evicted=True/ClusterQueueStopped", "Requeued=False/ClusterQueueStopped", "QuotaReserved=False")
	}
	team.uses(0, 0)

	team.update(activation(v1alpha1.Active))
	for _, k := range running {
		k.hasConditions("QuotaReserved=True", "Admitted=True", "Requeued=True/ClusterQueueRestarted")
	}
	next.isAdmitted()
	team.uses(3, 0)
}
