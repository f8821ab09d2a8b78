package explain

import (
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// borrowers returns a task's queue without quota, in a cohort with a queue that is
// idle, and one that borrows all of its quota with workloads of one GPU.
func borrowers(priorities ...int32) *Cluster {
	a, b := queue("a", Limit{}, 0), queue("b", Limit{}, resources.Amount(len(priorities)))
	c := cluster(a, b, queue("idle", Limit{Nominal: resources.Amount(len(priorities))}, 0))
	for i, priority := range priorities {
		h := admitted(fmt.Sprintf("b%d", i), "b", priority, 1)
		h.QuotaReservedAt = now.Add(time.Duration(i) * time.Minute)
		c.admit(h)
	}
	return c
}

// Preemption is that of Kueue 0.19: see pkg/scheduler/preemption.
func TestPreemption(t *testing.T) {
	with := func(c *Cluster, change func(c *Cluster, q *Queue)) *Cluster { change(c, c.Queue); return c }
	lower := func(_ *Cluster, q *Queue) { q.BorrowWithinCohort = true }
	for name, tc := range map[string]struct {
		cluster        *Cluster
		pods           int32
		want           Constraint
		wantMayPreempt bool
	}{
		"a workload of lower priority borrows": {with(borrowers(5, 5, 5), lower), 1, Preempting, false},
		"the lowest priority first":            {with(borrowers(5, 1, 5), lower), 2, Preempting, false},
		"no workload of lower priority":        {with(borrowers(10, 10), lower), 1, Quota, false},
		"without borrowWithinCohort":           {with(borrowers(5, 5), func(*Cluster, *Queue) {}), 1, Quota, false},
		"above maxPriorityThreshold": {with(borrowers(5, 5), func(_ *Cluster, q *Queue) {
			limit := int32(4)
			q.BorrowWithinCohort, q.MaxPriorityThreshold = true, &limit
		}), 1, Quota, false},
		"below maxPriorityThreshold": {with(borrowers(4, 5), func(_ *Cluster, q *Queue) {
			limit := int32(4)
			q.BorrowWithinCohort, q.MaxPriorityThreshold = true, &limit
		}), 1, Preempting, false},
		"reclaimWithinCohort Never": {with(borrowers(5, 5), func(_ *Cluster, q *Queue) {
			q.BorrowWithinCohort, q.ReclaimWithinCohort = true, kueue.PreemptionPolicyNever
		}), 1, Quota, false},
		"fair sharing compares shares": {with(borrowers(10, 10), func(c *Cluster, _ *Queue) { c.FairSharing = true }), 1, Quota, true},
		"fair sharing, reclaimWithinCohort LowerPriority": {with(borrowers(10, 10), func(c *Cluster, q *Queue) {
			c.FairSharing, q.ReclaimWithinCohort = true, kueue.PreemptionPolicyLowerPriority
		}), 1, Quota, false},
		"fair sharing, without reclaimWithinCohort": {with(borrowers(1, 1), func(c *Cluster, q *Queue) {
			c.FairSharing, q.BorrowWithinCohort, q.ReclaimWithinCohort = true, true, ""
		}), 1, Quota, false},
		"within its quota, of any priority":                   {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1) }), 1, Preempting, false},
		"within its quota, reclaimWithinCohort Never":         {with(borrowers(5, 5), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = kueue.PreemptionPolicyNever }), 1, Quota, false},
		"within its quota, reclaimWithinCohort LowerPriority": {with(borrowers(50, 5), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = kueue.PreemptionPolicyLowerPriority }), 1, Preempting, false},
		"within its quota, and no workload of lower priority": {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = kueue.PreemptionPolicyLowerPriority }), 1, Quota, false},
		"within its quota, fair sharing":                      {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1); c.FairSharing = true }), 1, Preempting, false},
		"above its quota, not even in its own queue":          {with(borrowers(5, 5), func(c *Cluster, q *Queue) { ownLow(c, q) }), 2, Quota, false},
		"above its quota, with borrowWithinCohort":            {with(borrowers(50, 5), func(c *Cluster, q *Queue) { ownLow(c, q); q.BorrowWithinCohort = true }), 2, Preempting, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := Why(requesting(tc.pods), tc.cluster)
			if v.Constraint != tc.want || v.MayPreempt != tc.wantMayPreempt {
				t.Fatalf("got %s, may preempt %t, want %s, %t", v.Constraint, v.MayPreempt, tc.want, tc.wantMayPreempt)
			}
			checkBrief(t, requesting(tc.pods), tc.cluster, v)
		})
	}
}

// Rules of a PreemptionConfig are not evaluated: they may preempt tasks for a task that
// waits for quota.
func TestPreemptionRules(t *testing.T) {
	c := borrowers(10, 10)
	c.Queue.PreemptionRules = true
	if v := Why(requesting(1), c); v.Constraint != Quota || !v.RulesMayPreempt || v.MayPreempt {
		t.Errorf("got %s, rules may preempt %t, may preempt %t", v.Constraint, v.RulesMayPreempt, v.MayPreempt)
	}
	if v := Why(requesting(3), c); v.Constraint != ExceedsMax || v.RulesMayPreempt {
		t.Errorf("got %s, rules may preempt %t, for more than the queue can ever have", v.Constraint, v.RulesMayPreempt)
	}
}

// own moves an amount of quota from the idle queue to q.
func own(c *Cluster, q *Queue, amount resources.Amount) {
	q.Limits[a100] = Limit{Nominal: amount}
	idle := c.Queues["idle"]
	idle.Limits[a100] = Limit{Nominal: idle.Limits[a100].Nominal - amount}
}

// ownLow gives q a quota of 1 GPU, which a workload of low priority in it uses.
func ownLow(c *Cluster, q *Queue) {
	q.Limits[a100], q.Usage[a100] = Limit{Nominal: 1}, 1
	c.admit(admitted("own", "a", 1, 1))
}

// The proposed priority class is the lowest existing one that starts the task.
func TestProposedPriorityClass(t *testing.T) {
	for name, tc := range map[string]struct {
		admitted int32 // priority of the workload that uses the quota
		classes  []PriorityClass
		want     string
	}{
		"the next":              {10, []PriorityClass{{Name: "top", Priority: 100}, {Name: "next", Priority: 11}}, "next"},
		"of equal priority":     {50, []PriorityClass{{Name: "equal", Priority: 50}, {Name: "top", Priority: 100}}, "top"},
		"none is higher":        {100, []PriorityClass{{Name: "top", Priority: 100}}, ""},
		"no classes at all":     {10, nil, ""},
		"two of the same value": {10, []PriorityClass{{Name: "b", Priority: 20}, {Name: "a", Priority: 20}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(0)}, 2))
			c.PriorityClasses = tc.classes
			c.admit(admitted("x", "a", tc.admitted, 2))
			got := ""
			for _, change := range Why(requesting(1), c).Changes {
				if change.Kind == HigherPriorityClass {
					got = change.PriorityClass
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Kueue first preempts for all pods of a task that could start with fewer.
func TestPreemptsForAllPodsFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		low  int32 // priority of the workload that uses half of the quota
		want Constraint
	}{"lower priority": {5, Preempting}, "equal priority": {10, PendingEvaluation}} {
		t.Run(name, func(t *testing.T) {
			c := cluster(queue("a", Limit{Nominal: 4}, 2))
			c.admit(admitted("x", "a", tc.low, 2))
			task := requesting(4)
			task.PodSets[0].MinCount = 1
			if v := Why(task, c); v.Constraint != tc.want || v.Constraint == Preempting && v.Shortage.Needed != 4 {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// Each resource group has its own flavors.
func TestResourceGroups(t *testing.T) {
	q := queue("a", Limit{Nominal: 4}, 0)
	q.Groups = []ResourceGroup{{[]string{gpu}, []string{"a100"}}, {[]string{"cpu"}, []string{"small", "large"}}}
	q.Flavors = []string{"a100", "small", "large"}
	q.Limits[quota.FlavorResource{Flavor: "small", Resource: "cpu"}], q.Limits[quota.FlavorResource{Flavor: "large", Resource: "cpu"}] = Limit{Nominal: 1000}, Limit{Nominal: 8000}
	c := cluster(q)
	task := requesting(2)
	task.PodSets[0].Requests = quota.Resources{gpu: 1, "cpu": 4000}
	if v := Why(task, c); v.Constraint != PendingEvaluation {
		t.Errorf("got %+v", v)
	}
	task.PodSets[0].Requests["cpu"] = 5000
	if v := Why(task, c); v.Constraint != ExceedsMax || v.Shortage.Resource != "cpu" || v.Shortage.Needed != 10000 {
		t.Errorf("got %+v with %+v, want 10 CPUs needed", v, v.Shortage)
	}
}

// A resource that Kueue does not count keeps no task from starting.
func TestUncountedResource(t *testing.T) {
	task := requesting(1)
	task.PodSets[0].Requests["example.com/fpga"] = 1
	c := func() *Cluster { return cluster(queue("a", Limit{Nominal: 4}, 4)) }
	if v := Why(task, c()); v.Constraint != UncoveredResource {
		t.Errorf("without a reason from Kueue, got %s, want UncoveredResource", v.Constraint)
	}
	task.Reason = "WaitingForQuota"
	if v := Why(task, c()); v.Constraint != Quota {
		t.Errorf("with the reason WaitingForQuota, got %s, want Quota", v.Constraint)
	}
	task.Reason, task.PodSets[0].CountedRequests = "PendingEvaluation", quota.Resources{gpu: 1, "example.com/fpga": 1}
	if v := Why(task, c()); v.Constraint != UncoveredResource {
		t.Errorf("where Kueue counts it, got %s, want UncoveredResource", v.Constraint)
	}
	task.Reason, task.PodSets[0].CountedRequests = "", quota.Resources{gpu: 1}
	if v := Why(task, c()); v.Constraint != Quota {
		t.Errorf("where Kueue does not count it, got %s, want Quota", v.Constraint)
	}
}

// The verdict names the pod set whose pods have no nodes.
func TestVerdictNamesThePodSetWithoutNodes(t *testing.T) {
	task := Task{QuotaReserved: true, PodSets: []PodSet{{Name: "head", Count: 1, Requests: quota.Resources{"cpu": 1}}, {Name: "workers", Count: 2, Requests: quota.Resources{gpu: 8}}}}
	task.Pods = &Pods{Unscheduled: 2, Flavors: map[string][]string{"head": {"a100"}, "workers": {"a100"}}, Requests: []quota.Resources{{gpu: 8}}}
	c := cluster(queue("a", Limit{Nominal: 16}, 16))
	c.Nodes = []Node{{Name: "full", Ready: true, Labels: map[string]string{"type": "a100"}, Allocatable: quota.Resources{"cpu": 1, gpu: 8}, Free: quota.Resources{}}}
	if v := Why(task, c); v.PodSet != "workers" || v.Constraint != NodesFull {
		t.Errorf("got %s of the pod set %s", v.Constraint, v.PodSet)
	}
	task.Pods.Requests = []quota.Resources{{gpu: 7}} // a webhook changed them
	if v := Why(task, c); v.PodSet != "head" {
		t.Errorf("got %s of the pod set %s", v.Constraint, v.PodSet)
	}
}

// BenchmarkWhy explains a task among 1,000 ClusterQueues, one of them with 2,000
// workloads.
func BenchmarkWhy(b *testing.B) {
	for name, tc := range map[string]struct {
		priority int32
		pods     int32
		want     Constraint
	}{"no targets": {1, 300, Quota}, "targets": {50, 300, Preempting}} {
		b.Run(name, func(b *testing.B) {
			a := queue("a", Limit{Nominal: 2000, BorrowingLimit: n(0)}, 2000)
			c := cluster(a)
			var all []AdmittedWorkload
			for i := range 999 {
				q := queue(fmt.Sprintf("team-%d", i), Limit{Nominal: 8}, resources.Amount(i%16))
				c.Queues[q.Name] = q
				for j := range i % 16 {
					if i%16 <= 8 {
						break
					}
					all = append(all, admitted(fmt.Sprintf("%s-%d", q.Name, j), q.Name, 10, 1))
				}
			}
			for i := range 2000 {
				all = append(all, admitted(fmt.Sprintf("x%d", i), "a", int32(i%50), 1))
			}
			c.admit(all...)
			task := requesting(tc.pods)
			task.Priority = tc.priority
			task.PodSets[0].Requests["cpu"] = 0
			for b.Loop() {
				if v := Why(task, c); v.Constraint != tc.want {
					b.Fatalf("got %s, want %s", v.Constraint, tc.want)
				}
			}
		})
	}
}

// BenchmarkWhyAllBorrow explains a task among 1,000 ClusterQueues that all borrow, with
// 20,000 workloads.
func BenchmarkWhyAllBorrow(b *testing.B) {
	own := queue("team-0", Limit{Nominal: 4}, 50)
	c := cluster(own)
	c.PriorityClasses = []PriorityClass{{Name: "low", Priority: 0}, {Name: "middle", Priority: 10}, {Name: "high", Priority: 20}}
	var all []AdmittedWorkload
	for i := range 1000 {
		q := queue(fmt.Sprintf("team-%d", i), Limit{Nominal: 4}, 50)
		if i > 0 {
			c.Queues[q.Name] = q
		}
		for j := range 20 {
			all = append(all, admitted(fmt.Sprintf("%s-%d", q.Name, j), q.Name, int32(j%3*10), resources.Amount(1+j%4)))
		}
	}
	c.admit(all...)
	for b.Loop() {
		if v := Why(requesting(2), c); v.Constraint != Quota {
			b.Fatalf("got %s, want %s", v.Constraint, Quota)
		}
	}
}
