package explain

import (
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
)

// borrowers is a queue without quota beside two others: one that is idle, and
// one that borrows all of it with so many tasks of one GPU.
func borrowers(priorities ...int32) *Cluster {
	a, b := queue("a", Limit{}, 0), queue("b", Limit{}, int64(len(priorities)))
	c := cluster(a, b, queue("idle", Limit{Nominal: int64(len(priorities))}, 0))
	for i, priority := range priorities {
		h := holder(fmt.Sprintf("b%d", i), "b", priority, 1)
		h.QuotaReservedAt = now.Add(time.Duration(i) * time.Minute)
		c.hold(h)
	}
	return c
}

// What Kueue 0.19 does, see pkg/scheduler/preemption.
func TestRoom(t *testing.T) {
	with := func(c *Cluster, change func(c *Cluster, q *Queue)) *Cluster { change(c, c.Queue); return c }
	lower := func(_ *Cluster, q *Queue) { q.BorrowWithinCohort = true }
	for name, tc := range map[string]struct {
		cluster *Cluster
		pods    int32
		want    Constraint
		stops   []string
		may     bool
	}{
		"a lower task of others borrows what it would borrow": {with(borrowers(5, 5, 5), lower), 1, Preempting, []string{"b2"}, false},
		"the lowest go first":        {with(borrowers(5, 1, 5), lower), 2, Preempting, []string{"b2", "b1"}, false},
		"its equals stay":            {with(borrowers(10, 10), lower), 1, Quota, nil, false},
		"to borrow, it stops nobody": {with(borrowers(5, 5), func(*Cluster, *Queue) {}), 1, Quota, nil, false},
		"the threshold of a class": {with(borrowers(5, 5), func(_ *Cluster, q *Queue) {
			limit := int32(4)
			q.BorrowWithinCohort, q.MaxPriorityThreshold = true, &limit
		}), 1, Quota, nil, false},
		"below the threshold": {with(borrowers(4, 5), func(_ *Cluster, q *Queue) {
			limit := int32(4)
			q.BorrowWithinCohort, q.MaxPriorityThreshold = true, &limit
		}), 1, Preempting, []string{"b0"}, false},
		"it takes back from nobody":         {with(borrowers(5, 5), func(_ *Cluster, q *Queue) { q.BorrowWithinCohort, q.ReclaimWithinCohort = true, Never }), 1, Quota, nil, false},
		"fair sharing decides by shares":    {with(borrowers(10, 10), func(c *Cluster, _ *Queue) { c.FairSharing = true }), 1, Quota, nil, true},
		"fair sharing, and only lower ones": {with(borrowers(10, 10), func(c *Cluster, q *Queue) { c.FairSharing, q.ReclaimWithinCohort = true, LowerPriority }), 1, Quota, nil, false},
		"fair sharing, and it takes back from nobody": {with(borrowers(1, 1), func(c *Cluster, q *Queue) {
			c.FairSharing, q.BorrowWithinCohort, q.ReclaimWithinCohort = true, true, ""
		}), 1, Quota, nil, false},
		"within its own quota, whatever others' priority":           {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1) }), 1, Preempting, []string{"b1"}, false},
		"within its own quota, and it takes back from nobody":       {with(borrowers(5, 5), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = Never }), 1, Quota, nil, false},
		"within its own quota, and it takes back from lower ones":   {with(borrowers(50, 5), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = LowerPriority }), 1, Preempting, []string{"b1"}, false},
		"within its own quota, and none is lower":                   {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1); q.ReclaimWithinCohort = LowerPriority }), 1, Quota, nil, false},
		"within its own quota under fair sharing":                   {with(borrowers(50, 50), func(c *Cluster, q *Queue) { own(c, q, 1); c.FairSharing = true }), 1, Preempting, nil, true},
		"more than its own quota looks for nobody, also of its own": {with(borrowers(5, 5), func(c *Cluster, q *Queue) { ownLow(c, q) }), 2, Quota, nil, false},
		"unless it may borrow by its priority":                      {with(borrowers(50, 5), func(c *Cluster, q *Queue) { ownLow(c, q); q.BorrowWithinCohort = true }), 2, Preempting, []string{"b1", "own"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := Why(asks(tc.pods), tc.cluster)
			if v.Constraint != tc.want || v.MayPreempt != tc.may {
				t.Fatalf("it is %s, and may preempt: %t", v.Constraint, v.MayPreempt)
			}
			briefed(t, asks(tc.pods), tc.cluster, v)
			stops := map[string]bool{}
			for _, h := range v.TargetsInQueue {
				stops[h.Name] = h.Queue == "a"
			}
			for _, h := range v.TargetsInCohort {
				stops[h.Name] = h.Queue != "a"
			}
			for _, name := range tc.stops {
				if !stops[name] {
					t.Errorf("%s should stop: %v", name, stops)
				}
			}
			if len(stops) != len(tc.stops) {
				t.Errorf("%v stop, want %v", stops, tc.stops)
			}
		})
	}
}

// own gives a queue quota that another had.
func own(c *Cluster, q *Queue, amount int64) {
	q.Limits[a100] = Limit{Nominal: amount}
	idle := c.Queues["idle"]
	idle.Limits[a100] = Limit{Nominal: idle.Limits[a100].Nominal - amount}
}

// ownLow has a queue hold all of its quota of one, with a low task.
func ownLow(c *Cluster, q *Queue) {
	q.Limits[a100], q.Usage[a100] = Limit{Nominal: 1}, 1
	c.hold(holder("own", "a", 1, 1))
}

// Of the classes that there are, the lowest that works; of those that do not
// exist, none.
func TestClassThatThereIs(t *testing.T) {
	for name, tc := range map[string]struct {
		held  int32 // the priority of the task in the way
		ranks []PriorityClass
		want  string
	}{
		"the next":              {10, []PriorityClass{{"top", 100}, {"next", 11}}, "next"},
		"as high as the other":  {50, []PriorityClass{{"equal", 50}, {"top", 100}}, "top"},
		"none stands above":     {100, []PriorityClass{{"top", 100}}, ""},
		"no classes at all":     {10, nil, ""},
		"two of the same value": {10, []PriorityClass{{"b", 20}, {"a", 20}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(0)}, 2))
			c.PriorityClasses = tc.ranks
			c.hold(holder("x", "a", tc.held, 2))
			got := ""
			for _, change := range Why(asks(1), c).Changes {
				if change.Kind == HigherPriorityClass {
					got = change.PriorityClass
				}
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// A task that would do with fewer pods is made room for as a whole first.
func TestRoomForAllPods(t *testing.T) {
	for name, tc := range map[string]struct {
		low  int32 // the priority of what holds half of the queue
		want Constraint
	}{"room is made": {5, Preempting}, "none is lower": {10, PendingEvaluation}} {
		t.Run(name, func(t *testing.T) {
			c := cluster(queue("a", Limit{Nominal: 4}, 2))
			c.hold(holder("x", "a", tc.low, 2))
			task := asks(4)
			task.PodSets[0].MinCount = 1
			if v := Why(task, c); v.Constraint != tc.want || v.Constraint == Preempting && v.Shortage.Needed != 4 {
				t.Errorf("it is %+v", v)
			}
		})
	}
}

// Each group of resources has a flavor of its own.
func TestGroups(t *testing.T) {
	q := queue("a", Limit{Nominal: 4}, 0)
	q.Groups = []ResourceGroup{{[]string{gpu}, []string{"a100"}}, {[]string{"cpu"}, []string{"small", "large"}}}
	q.Flavors = []string{"a100", "small", "large"}
	q.Limits[quota.FlavorResource{Flavor: "small", Resource: "cpu"}], q.Limits[quota.FlavorResource{Flavor: "large", Resource: "cpu"}] = Limit{Nominal: 1000}, Limit{Nominal: 8000}
	c := cluster(q)
	task := asks(2)
	task.PodSets[0].Requests = quota.Resources{gpu: 1, "cpu": 4000}
	if v := Why(task, c); v.Constraint != PendingEvaluation {
		t.Errorf("it is %+v", v)
	}
	task.PodSets[0].Requests["cpu"] = 5000
	if v := Why(task, c); v.Constraint != ExceedsMax || v.Shortage.Resource != "cpu" || v.Shortage.Needed != 10000 {
		t.Errorf("it is %+v with %+v", v, v.Shortage)
	}
}

// What Kueue does not count is in no task's way.
func TestUncounted(t *testing.T) {
	task := asks(1)
	task.PodSets[0].Requests["example.com/fpga"] = 1
	c := func() *Cluster { return cluster(queue("a", Limit{Nominal: 4}, 4)) }
	if v := Why(task, c()); v.Constraint != UncoveredResource {
		t.Errorf("without a word of Kueue's it is %s", v.Constraint)
	}
	task.Reason = "WaitingForQuota"
	if v := Why(task, c()); v.Constraint != Quota {
		t.Errorf("where it waits for quota it is %s", v.Constraint)
	}
	task.Reason, task.PodSets[0].CountedRequests = "PendingEvaluation", quota.Resources{gpu: 1, "example.com/fpga": 1}
	if v := Why(task, c()); v.Constraint != UncoveredResource {
		t.Errorf("where Kueue counts it, it is %s", v.Constraint)
	}
	task.Reason, task.PodSets[0].CountedRequests = "", quota.Resources{gpu: 1}
	if v := Why(task, c()); v.Constraint != Quota {
		t.Errorf("where Kueue does not count it, it is %s", v.Constraint)
	}
}

// The pod set whose pods have nodes is not to blame.
func TestBlamesThePodSetWithoutNodes(t *testing.T) {
	task := Task{QuotaReserved: true, PodSets: []PodSet{{Name: "head", Count: 1, Requests: quota.Resources{"cpu": 1}}, {Name: "workers", Count: 2, Requests: quota.Resources{gpu: 8}}}}
	task.Pods = &Pods{Unscheduled: 2, Flavors: map[string][]string{"head": {"a100"}, "workers": {"a100"}}, Requests: []quota.Resources{{gpu: 8}}}
	c := cluster(queue("a", Limit{Nominal: 16}, 16))
	c.Nodes = []Node{{Name: "full", Ready: true, Labels: map[string]string{"type": "a100"}, Allocatable: quota.Resources{"cpu": 1, gpu: 8}, Free: quota.Resources{}}}
	if v := Why(task, c); v.PodSet != "workers" || v.Constraint != NodesFull {
		t.Errorf("it is %s of %s", v.Constraint, v.PodSet)
	}
	task.Pods.Requests = []quota.Resources{{gpu: 7}} // changed on their way
	if v := Why(task, c); v.PodSet != "head" {
		t.Errorf("it is %s of %s", v.Constraint, v.PodSet)
	}
}

// 1,000 queues, and one team with 2,000 tasks.
func BenchmarkWhy(b *testing.B) {
	for name, tc := range map[string]struct {
		priority int32
		pods     int32
		want     Constraint
	}{"nothing helps but others' end": {1, 300, Quota}, "makes room": {50, 300, Preempting}} {
		b.Run(name, func(b *testing.B) {
			a := queue("a", Limit{Nominal: 2000, BorrowingLimit: n(0)}, 2000)
			c := cluster(a)
			var held []AdmittedWorkload
			for i := range 999 {
				q := queue(fmt.Sprintf("team-%d", i), Limit{Nominal: 8}, int64(i%16))
				c.Queues[q.Name] = q
				for j := range i % 16 {
					if i%16 <= 8 {
						break
					}
					held = append(held, holder(fmt.Sprintf("%s-%d", q.Name, j), q.Name, 10, 1))
				}
			}
			for i := range 2000 {
				held = append(held, holder(fmt.Sprintf("x%d", i), "a", int32(i%50), 1))
			}
			c.hold(held...)
			task := asks(tc.pods)
			task.Priority = tc.priority
			task.PodSets[0].Requests["cpu"] = 0
			for b.Loop() {
				if v := Why(task, c); v.Constraint != tc.want {
					b.Fatalf("it is %s", v.Constraint)
				}
			}
		})
	}
}

// 1,000 queues that all hold more than their quota, with 20,000 tasks.
func BenchmarkWhyAllBorrow(b *testing.B) {
	own := queue("team-0", Limit{Nominal: 4}, 50)
	c := cluster(own)
	c.PriorityClasses = []PriorityClass{{"low", 0}, {"middle", 10}, {"high", 20}}
	var held []AdmittedWorkload
	for i := range 1000 {
		q := queue(fmt.Sprintf("team-%d", i), Limit{Nominal: 4}, 50)
		if i > 0 {
			c.Queues[q.Name] = q
		}
		for j := range 20 {
			held = append(held, holder(fmt.Sprintf("%s-%d", q.Name, j), q.Name, int32(j%3*10), int64(1+j%4)))
		}
	}
	c.hold(held...)
	for b.Loop() {
		if v := Why(asks(2), c); v.Constraint != Quota {
			b.Fatalf("it is %s", v.Constraint)
		}
	}
}
