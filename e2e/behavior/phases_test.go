package behavior_test

import (
	"os"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// verify asks for what takes longer too: more changes of the ranking, and what
// is unallocated under fair sharing as well.
var verify = os.Getenv("KUOTA_VERIFY") != ""

// What happens while idle compute goes to who asks first.
func TestFirstCome(t *testing.T) {
	fairSharing(t, false)
	tell(t, always, map[string]func(*testing.T){
		"a late team gets its own quota and no idle compute":           lateTeamGetsItsOwn,
		"a borrowing task with priority pushes out what others borrow": priorityCountsForBorrowing,
		"two experiments share a hundred instances":                    twoExperiments,
	})
	underPolicy(t, v1alpha1.IdleFirstComeFirstServe, map[string]func(*testing.T, *policy){
		"ranking orders the queue, and first come ignores classes": rankingAndFirstCome,
		"a class ranked anew preempts nobody of its own":           rankedAnew,
		"what no team was given is lent, and given back":           unallocatedIsLent,
	})
}

// What happens while idle compute is shared by weight. The switch restarts
// Kueue, once.
func TestFairShare(t *testing.T) {
	fairSharing(t, true)
	tell(t, always, map[string]func(*testing.T){
		"weights of 30 and 10 share idle compute three to one":   threeToOne,
		"a team without weight borrows nothing that others want": withoutWeight,
		"priority does not count between teams that borrow":      priorityDoesNotCount,
	})
	if verify {
		underPolicy(t, v1alpha1.IdleFairShare, map[string]func(*testing.T, *policy){
			"a class ranked anew preempts nobody of its own": rankedAnew,
			"what no team was given is lent, and given back": unallocatedIsLent,
		})
	}
}

// always is what happens whichever way idle compute is shared.
var always = map[string]func(*testing.T){
	"idle quota is borrowed up to the limit and not beyond":         borrowedUpToTheLimit,
	"a team without quota borrows what it may":                      borrowedWithoutQuota,
	"what was borrowed is taken back, and comes again":              takenBack,
	"within a team a higher class pushes out a lower":               pushedOutWithinTeam,
	"within a team that forbids it nobody is pushed out":            nobodyPushedOut,
	"a team that lends does not borrow, and takes back from anyone": lendsOnly,
	"a team that shares nothing neither lends nor borrows":          sharesNothing,
	"the higher class comes first, whenever it was submitted":       classesOrderTheQueue,
	"a smaller quota stops nothing that runs":                       smallerQuota,
	"a queue is held, drained and opened again":                     heldAndDrained,
}

// tell runs stories side by side, and returns when all have ended.
func tell(t *testing.T, groups ...map[string]func(*testing.T)) {
	t.Run("stories", func(t *testing.T) {
		for _, stories := range groups {
			for name, story := range stories {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					story(t)
				})
			}
		}
	})
}

// underPolicy runs stories one after another: the cluster has one policy.
func underPolicy(t *testing.T, idle v1alpha1.IdleComputeStrategy, stories map[string]func(*testing.T, *policy)) {
	t.Run("policy", func(t *testing.T) {
		if !policyController {
			t.Skip("no controller of the cluster policy yet")
		}
		for name, story := range stories {
			t.Run(name, func(t *testing.T) { story(t, newPolicy(t, idle)) })
		}
	})
}
