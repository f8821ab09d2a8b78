package behavior_test

import (
	"os"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// verify enables the slow cases: more changes of the ranking, and the policy
// scenarios under fair sharing.
var verify = os.Getenv("KUOTA_VERIFY") != ""

// TestFirstCome runs the scenarios in which the first request gets idle compute.
func TestFirstCome(t *testing.T) {
	fairSharing(t, false)
	runScenarios(t, always, map[string]func(*testing.T){
		"a late team gets its own quota and no idle compute":                  lateTeamGetsOnlyItsQuota,
		"a borrowing task of high priority preempts borrowed usage of others": priorityPreemptsBorrowers,
		"two experiments share a hundred instances":                           twoExperiments,
	})
	underPolicy(t, v1alpha1.IdleFirstComeFirstServe, map[string]func(*testing.T, *policy){
		"ranking orders the queue, and first come ignores priority classes": rankingAndFirstCome,
		"a changed weight preempts no task of the same class":               changedWeight,
		"unallocated quota is lent and reclaimed":                           unallocatedIsLent,
	})
}

// TestFairShare runs the scenarios in which idle compute is shared by weight. The
// switch restarts Kueue once.
func TestFairShare(t *testing.T) {
	fairSharing(t, true)
	runScenarios(t, always, map[string]func(*testing.T){
		"weights of 30 and 10 share idle compute three to one":  threeToOne,
		"a team of weight 0 loses all borrowed usage to others": withoutWeight,
		"priority has no effect between borrowing teams":        priorityHasNoEffect,
	})
	if verify {
		underPolicy(t, v1alpha1.IdleFairShare, map[string]func(*testing.T, *policy){
			"a changed weight preempts no task of the same class": changedWeight,
			"unallocated quota is lent and reclaimed":             unallocatedIsLent,
		})
	}
}

// always lists the scenarios that do not depend on how idle compute is shared.
var always = map[string]func(*testing.T){
	"idle quota is borrowed up to the limit":                    borrowUpToLimit,
	"a team without quota borrows up to its limit":              borrowWithoutQuota,
	"borrowed usage is reclaimed and admitted again":            borrowedIsReclaimed,
	"within a team a higher priority preempts a lower":          preemptWithinTeam,
	"within a team that forbids it nothing is preempted":        noPreemptionWithinTeam,
	"a team that only lends reclaims from any borrower":         lendsOnly,
	"a team without sharing neither lends nor borrows":          noSharing,
	"the higher priority is admitted first, whenever submitted": priorityOrdersTheQueue,
	"a smaller quota evicts nothing":                            smallerQuotaEvictsNothing,
	"a queue is held, drained and activated again":              heldAndDrained,
}

// runScenarios runs scenarios in parallel and returns when all have finished.
func runScenarios(t *testing.T, groups ...map[string]func(*testing.T)) {
	t.Run("scenarios", func(t *testing.T) {
		for _, scenarios := range groups {
			for name, scenario := range scenarios {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					scenario(t)
				})
			}
		}
	})
}

// underPolicy runs scenarios one after another, because the cluster has one
// policy.
func underPolicy(t *testing.T, idle v1alpha1.IdleComputeStrategy, scenarios map[string]func(*testing.T, *policy)) {
	t.Run("policy", func(t *testing.T) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) { scenario(t, newPolicy(t, idle)) })
		}
	})
}
