package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestFirstCome runs the scenarios in which the first request gets idle compute.
func TestFirstCome(t *testing.T) {
	fairSharing(t, false)
	runScenarios(t, always, map[string]func(*testing.T){
		"a late team gets its own quota and no idle compute":                  lateTeamGetsOnlyItsQuota,
		"a borrowing task of high priority preempts borrowed usage of others": priorityPreemptsBorrowers,
		"a team reclaims the reserve of its department":                       reserveIsReclaimed,
	})
	underPolicy(t, v1alpha1.IdleFirstComeFirstServe, map[string]func(*testing.T, *policy){
		"ranking orders the queue, and first come ignores priority classes": rankingAndFirstCome,
		"unallocated quota is lent and reclaimed":                           unallocatedIsLent,
	})
	if clustertest.Verify {
		runScenarios(t, others, map[string]func(*testing.T){"two experiments share a hundred instances": twoExperiments})
		underPolicy(t, v1alpha1.IdleFirstComeFirstServe, changes)
	}
}

// TestFairShare runs the scenarios in which idle compute is shared by weight. The
// switch restarts Kueue once.
func TestFairShare(t *testing.T) {
	fairSharing(t, true)
	runScenarios(t, map[string]func(*testing.T){
		"weights of 30 and 10 share idle compute three to one": threeToOne,
		"priority has no effect between borrowing teams":       priorityHasNoEffect,
		"a team reclaims the reserve of its department":        reserveIsReclaimed,
	})
	if clustertest.Verify {
		runScenarios(t, map[string]func(*testing.T){"weights share over two levels": sharesOverTwoLevels})
		runScenarios(t, always, others, map[string]func(*testing.T){"a team of weight 0 loses all borrowed usage to others": withoutWeight})
		underPolicy(t, v1alpha1.IdleFairShare, changes)
		underPolicy(t, v1alpha1.IdleFairShare, map[string]func(*testing.T, *policy){"unallocated quota is lent and reclaimed": unallocatedIsLent})
	}
}

// changes lists the scenarios of many tasks whose class changes.
var changes = map[string]func(*testing.T, *policy){"a changed weight preempts no task of the same class": changedWeight}

// always lists the scenarios that do not depend on how idle compute is shared: those of
// the settings of an allocation.
var always = map[string]func(*testing.T){
	"idle quota is borrowed up to the limit":             borrowUpToLimit,
	"borrowed usage is reclaimed and admitted again":     borrowedIsReclaimed,
	"within a team a higher priority preempts a lower":   preemptWithinTeam,
	"within a team that forbids it nothing is preempted": noPreemptionWithinTeam,
	"a team that only lends reclaims from any borrower":  lendsOnly,
	"a team without sharing neither lends nor borrows":   noSharing,
	"a queue is held, drained and activated again":       heldAndDrained,
	"a department borrows within its border first":       borrowWithinADepartment,
	"a share gets quota and loses it":                    shareGetsQuota,
	"tasks share licenses and scratch space":             otherResources,
}

// others are scenarios of the same sort that show Kueue rather than Kuota's settings.
var others = map[string]func(*testing.T){
	"a team without quota borrows up to its limit":              borrowWithoutQuota,
	"the higher priority is admitted first, whenever submitted": priorityOrdersTheQueue,
	"a smaller quota evicts nothing":                            smallerQuotaEvictsNothing,
	"a department that lends nothing keeps its reserve":         departmentLendsNothing,
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
