package explain

import (
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// departments returns the tree of two departments that was tried on Kueue: d1 has a reserve of
// 2 GPUs and may borrow 1, and its queues a and b have 2 each; c in d2 has 8. Each workload in
// it uses one GPU.
func departments(a, b, c int) *Cluster {
	in := func(name, cohort string, nominal resources.Amount, workloads int) *Queue {
		q := queue(name, Limit{Nominal: nominal}, resources.Amount(workloads))
		q.Cohort = cohort
		return q
	}
	tree := cluster(in("a", "d1", 2, a), in("b", "d1", 2, b), in("c", "d2", 8, c))
	tree.Cohorts = map[string]*Cohort{"d1": cohort("d1", "root", Limit{Nominal: 2, BorrowingLimit: n(1)}), "d2": cohort("d2", "root", Limit{})}
	for name, workloads := range map[string]int{"a": a, "b": b, "c": c} {
		for i := range workloads {
			h := admitted(fmt.Sprint(name, i), name, 10, 1)
			h.QuotaReservedAt = now.Add(time.Duration(i) * time.Minute)
			tree.admit(h)
		}
	}
	return tree
}

// Each step is that of the tree that was tried on Kueue 0.19.2.
func TestDepartments(t *testing.T) {
	of := func(c *Cluster, queue string) *Cluster { c.Queue = c.Queues[queue]; return c }
	limited := func(c *Cluster, cohort string, limit Limit) *Cluster {
		c.Cohorts[cohort].Limits[a100] = limit
		return c
	}
	for name, tc := range map[string]struct {
		cluster         *Cluster
		pods            int32
		want            Constraint
		wantAvailable   resources.Amount
		wantBorrowable  resources.Amount
		wantReclaimable resources.Amount
	}{
		"own quota, b's, the reserve, and what d1 may borrow": {departments(0, 0, 0), 7, PendingEvaluation, 0, 0, 0},
		"never more":                                {departments(0, 0, 0), 8, ExceedsMax, 7, 12, 0},
		"d1 has borrowed all that it may":           {departments(7, 0, 0), 1, Quota, 0, 7, 0},
		"b reclaims its own":                        {of(departments(7, 0, 0), "b"), 2, Preempting, 0, 5, 5},
		"b has no advantage over a in d1":           {of(departments(5, 2, 0), "b"), 1, Quota, 0, 7, 3},
		"c reclaims what d1 borrowed":               {of(departments(5, 2, 7), "c"), 1, Preempting, 0, 0, 3},
		"c cannot reclaim the reserve of d1":        {of(departments(4, 2, 8), "c"), 1, Quota, 0, 0, 0},
		"c can never have the reserve":              {of(limited(departments(0, 0, 0), "d1", Limit{Nominal: 2, LendingLimit: n(3)}), "c"), 12, ExceedsMax, 11, 3, 0},
		"c gets what d1 lends":                      {of(limited(departments(0, 0, 0), "d1", Limit{Nominal: 2, LendingLimit: n(3)}), "c"), 11, PendingEvaluation, 0, 0, 0},
		"d1 uses what it does not lend":             {limited(departments(3, 0, 0), "d1", Limit{Nominal: 2, LendingLimit: n(0), BorrowingLimit: n(0)}), 3, PendingEvaluation, 0, 0, 0},
		"d1 reclaims what c borrows of its reserve": {departments(1, 2, 10), 2, Preempting, 1, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			v := Why(requesting(tc.pods), tc.cluster)
			s := Shortage{}
			if v.Shortage != nil {
				s = *v.Shortage
			}
			if v.Constraint != tc.want || s.Available != tc.wantAvailable || s.Borrowable != tc.wantBorrowable || s.Reclaimable != tc.wantReclaimable {
				t.Fatalf("got %s, available %d, borrowable %d, reclaimable %d, want %s, %d, %d, %d", v.Constraint, s.Available, s.Borrowable, s.Reclaimable, tc.want, tc.wantAvailable, tc.wantBorrowable, tc.wantReclaimable)
			}
			checkBrief(t, requesting(tc.pods), tc.cluster, v)
		})
	}
}

// A verdict names the border that keeps idle quota of others from a task, or what lending
// limits keep.
func TestBorders(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster      *Cluster
		pods         int32
		wantBorder   *Border
		wantWithheld []Withheld
	}{
		"the department may borrow 1 more": {departments(3, 0, 0), 5, &Border{Cohort: "d1", Left: 1, Needed: 2}, nil},
		"it has borrowed all":              {departments(7, 0, 0), 2, &Border{Cohort: "d1", Left: 0, Needed: 2}, nil},
		"never more than 1":                {departments(0, 0, 0), 9, &Border{Cohort: "d1", Left: 1, Needed: 3}, nil},
		"others use all":                   {departments(3, 3, 7), 2, nil, nil},
		"its own limit is lower": {func() *Cluster {
			c := departments(2, 0, 0)
			c.Queue.Limits[a100] = Limit{Nominal: 2, BorrowingLimit: n(1)}
			return c
		}(), 2, nil, nil},
		"its own limit is higher": {func() *Cluster {
			c := departments(5, 0, 0)
			c.Queue.Limits[a100] = Limit{Nominal: 2, BorrowingLimit: n(6)}
			return c
		}(), 3, &Border{Cohort: "d1", Left: 1, Needed: 2}, nil},
		"lending limits keep the rest": {func() *Cluster {
			c := departments(4, 1, 0)
			c.Cohorts["d1"].Limits[a100] = Limit{Nominal: 2}
			c.Cohorts["d2"].Limits[a100] = Limit{Nominal: 1, LendingLimit: n(2)}
			c.Queues["b"].Limits[a100] = Limit{Nominal: 2, LendingLimit: n(0)}
			return c
		}(), 4, nil, []Withheld{{Cohort: "d2", Amount: 7}, {Queue: "b", Amount: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, q := range tc.cluster.Queues {
				q.Team = ""
			}
			v := Why(requesting(tc.pods), tc.cluster)
			if v.Shortage == nil {
				t.Fatalf("got %s without a shortage", v.Constraint)
			}
			if diff := cmp.Diff(tc.wantBorder, v.Shortage.Border); diff != "" {
				t.Errorf("border (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWithheld, v.Shortage.Withheld); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
		})
	}
}

// A subtree that has quota for a task has an advantage over workloads of other subtrees, of
// any priority and beside what its own queue borrows.
func TestHierarchicalReclaim(t *testing.T) {
	for name, tc := range map[string]struct {
		reserve resources.Amount
		policy  kueue.PreemptionPolicy
		want    Constraint
	}{
		"the department has quota for it": {1, kueue.PreemptionPolicyAny, Preempting},
		"lower priorities only":           {1, kueue.PreemptionPolicyLowerPriority, Quota},
		"the department has none":         {0, kueue.PreemptionPolicyAny, Quota},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := queue("a", Limit{}, 0), queue("b", Limit{}, 1)
			a.Cohort, b.Cohort, a.ReclaimWithinCohort = "d1", "d2", tc.policy
			c := cluster(a, b)
			c.Cohorts = map[string]*Cohort{"d1": cohort("d1", "root", Limit{Nominal: tc.reserve}), "d2": cohort("d2", "root", Limit{}), "root": cohort("root", "", Limit{Nominal: 1 - tc.reserve})}
			c.admit(admitted("x", "b", 50, 1))
			if v := Why(requesting(1), c); v.Constraint != tc.want {
				t.Fatalf("got %s, want %s", v.Constraint, tc.want)
			}
		})
	}
}

// A task is entitled to the growth of a queue that borrows quota of its department.
func TestClaimOfADepartment(t *testing.T) {
	for reserve, want := range []int{0, 1} {
		a, b := queue("a", Limit{}, 0), queue("b", Limit{}, 1)
		a.Cohort, b.Cohort = "d1", "d2"
		c := cluster(a, b)
		c.Cohorts = map[string]*Cohort{"d1": cohort("d1", "root", Limit{Nominal: resources.Amount(reserve)}), "d2": cohort("d2", "root", Limit{}), "root": cohort("root", "", Limit{Nominal: resources.Amount(1 - reserve)})}
		growth := &AdmittedWorkload{Queue: "b", Usage: quota.FlavorResourceQuantities{a100: 1}}
		if got := Claim(requesting(1), c, []*AdmittedWorkload{growth}); len(got) != want {
			t.Errorf("with a reserve of %d, got %v, want %d", reserve, got, want)
		}
	}
}
