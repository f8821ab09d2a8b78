package explain

import (
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const gpu = "nvidia.com/gpu"

var (
	a100 = quota.FlavorResource{Flavor: "a100", Resource: gpu}
	h100 = quota.FlavorResource{Flavor: "h100", Resource: gpu}
	now  = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
)

func n(v int64) *int64 { return &v }

// queue is one of a team in the shared cohort, with so many GPUs of a100.
func queue(team string, limit Limit, used int64) *Queue {
	return &Queue{Name: team, Cohort: "shared", ReclaimWithinCohort: AnyPriority, Flavors: []string{"a100"}, Resources: []string{gpu, "cpu"}, Limits: map[quota.FlavorResource]Limit{a100: limit}, Usage: quota.FlavorResourceQuantities{a100: used}}
}

func cluster(own *Queue, others ...*Queue) *Cluster {
	c := &Cluster{Now: now, LocalQueue: "main", PriorityClasses: []PriorityClass{{"urgent", 90}, {"daily", 20}, {"batch", 10}}, Queue: own, Queues: map[string]*Queue{own.Name: own}, CohortQuota: quota.FlavorResourceQuantities{}, Flavors: map[string]Flavor{"a100": {Labels: map[string]string{"type": "a100"}}, "h100": {Labels: map[string]string{"type": "h100"}}}}
	for _, q := range others {
		c.Queues[q.Name] = q
	}
	return c
}

func holder(name, queue string, priority int32, amount int64) AdmittedWorkload {
	return AdmittedWorkload{Name: name, UID: name, Queue: queue, Priority: priority, Usage: quota.FlavorResourceQuantities{a100: amount}}
}

// hold adds tasks that hold quota.
func (c *Cluster) hold(more ...AdmittedWorkload) {
	for _, h := range more {
		c.Admitted = append(c.Admitted, &h)
	}
	slices.SortFunc(c.Admitted, (*AdmittedWorkload).Compare)
}

// asks is a task of so many pods with one GPU each.
func asks(pods int32) Task {
	return Task{Namespace: "ns", Priority: 10, PodSets: []PodSet{{Name: "main", Count: pods, MinCount: pods, Requests: quota.Resources{gpu: 1}}}}
}

// briefed checks that Brief says of a task what Why says, but for names and
// changes.
func briefed(t *testing.T, task Task, c *Cluster, why Verdict) {
	t.Helper()
	brief := Brief(task, c)
	for list := range brief.AdmittedWorkloads() {
		if len(*list) > 0 {
			t.Errorf("a brief verdict names %+v", *list)
		}
	}
	for list := range brief.Borrowers() {
		if len(*list) > 0 {
			t.Errorf("a brief verdict names %+v", *list)
		}
	}
	plain := func(v Verdict) Verdict {
		v.Changes, v.Flavors, v.TargetsInQueue, v.TargetsInCohort = nil, nil, nil, nil
		if v.Shortage != nil {
			s := *v.Shortage
			s.InQueue, s.LowerPriority, s.Borrowers, s.LowerPriorityUsage, s.Reclaimable = nil, nil, nil, 0, 0
			v.Shortage = &s
		}
		return v
	}
	if diff := cmp.Diff(plain(why), plain(brief)); diff != "" || len(brief.Changes) > 0 {
		t.Errorf("in brief it says (-why +brief): %s", diff)
	}
}

func TestWhy(t *testing.T) {
	selecting := func(task Task, label string) Task {
		task.PodSets[0].Spec = &corev1.PodSpec{NodeSelector: map[string]string{"type": label}}
		return task
	}
	says := func(task Task, reason string) Task {
		task.Reason = reason
		return task
	}
	for name, tc := range map[string]struct {
		task    Task
		cluster *Cluster
		want    Constraint
		short   int64
		free    int64
		changes []ChangeKind
	}{
		"fits": {asks(2), cluster(queue("a", Limit{Nominal: 4}, 2)), PendingEvaluation, 0, 0, nil},
		"fits, and Kueue waits for pods of others": {says(asks(2), "WaitingForPodsReady"), cluster(queue("a", Limit{Nominal: 4}, 2)), WaitingForPodsReady, 0, 0, nil},
		"fits, and no nodes are near enough":       {says(asks(2), "TopologyPlacementFailed"), cluster(queue("a", Limit{Nominal: 4}, 2)), Topology, 0, 0, nil},
		"own quota is held": {asks(2), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 4, BorrowingLimit: n(0)}, 3))
			c.hold(holder("x", "a", 10, 2), holder("y", "a", 10, 1))
			return c
		}(), Quota, 1, 1, []ChangeKind{FewerPods, TasksEnd, HigherPriorityClass, RaiseNominalQuota}},
		"others have idle quota, and the limit is in the way": {asks(4), cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(1)}, 0), queue("b", Limit{Nominal: 8}, 2)), ExceedsMax, 1, 3, []ChangeKind{FewerPods, RaiseBorrowingLimit, RaiseNominalQuota}},
		"others lend nothing":                 {asks(4), cluster(queue("a", Limit{Nominal: 2}, 0), queue("b", Limit{Nominal: 8, LendingLimit: n(0)}, 0)), ExceedsMax, 2, 2, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"others lend a part":                  {asks(4), cluster(queue("a", Limit{Nominal: 2}, 0), queue("b", Limit{Nominal: 8, LendingLimit: n(3)}, 7)), Quota, 1, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"others borrowed its own quota":       {asks(2), cluster(queue("a", Limit{Nominal: 4}, 0), queue("b", Limit{Nominal: 4}, 8)), Preempting, 2, 0, nil},
		"the cohort shares what is not given": {asks(4), func() *Cluster { c := cluster(queue("a", Limit{Nominal: 2}, 0)); c.CohortQuota[a100] = 1; return c }(), ExceedsMax, 1, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"lower tasks of its own are in its way": {asks(2), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(0)}, 2))
			c.hold(holder("low", "a", 5, 2))
			return c
		}(), Preempting, 2, 0, nil},
		"they are, and the team forbids it": {asks(2), func() *Cluster {
			q := queue("a", Limit{Nominal: 1, BorrowingLimit: n(1)}, 2)
			q.NeverWithinClusterQueue = true
			c := cluster(q, queue("b", Limit{Nominal: 1}, 0))
			c.hold(holder("low", "a", 5, 2))
			return c
		}(), Quota, 2, 0, []ChangeKind{TasksEnd, RaiseNominalQuota}},
		"alone, without a cohort": {asks(5), func() *Cluster {
			q := queue("a", Limit{Nominal: 4}, 1)
			q.Cohort = ""
			return cluster(q)
		}(), ExceedsMax, 2, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"nodes of another kind": {selecting(asks(1), "v100"), cluster(queue("a", Limit{Nominal: 4}, 0)), NoMatchingFlavor, 0, 0, nil},
		"a second pool takes it": {selecting(asks(1), "h100"), func() *Cluster {
			q := queue("a", Limit{Nominal: 4}, 4)
			q.Flavors, q.Limits[h100] = []string{"a100", "h100"}, Limit{Nominal: 1}
			return cluster(q)
		}(), PendingEvaluation, 0, 0, nil},
		"a resource that nothing counts": {Task{Namespace: "ns", PodSets: []PodSet{{Count: 1, MinCount: 1, Requests: quota.Resources{"example.com/fpga": 1}}}}, cluster(queue("a", Limit{Nominal: 4}, 0)), UncoveredResource, 0, 0, nil},
		"stopped by somebody":            {Task{Deactivated: true}, cluster(queue("a", Limit{Nominal: 4}, 0)), Deactivated, 0, 0, nil},
		"held back by an annotation":     {Task{Gated: "x"}, cluster(queue("a", Limit{}, 0)), Gated, 0, 0, nil},
		"a check is not done":            {Task{QuotaReserved: true, PendingChecks: []string{"c: Pending"}}, cluster(queue("a", Limit{}, 0)), ChecksPending, 0, 0, nil},
		"backs off":                      {Task{RetryAt: now.Add(time.Minute)}, cluster(queue("a", Limit{}, 0)), BackingOff, 0, 0, nil},
		"no queue":                       {Task{}, &Cluster{NoLocalQueue: true}, NoQueue, 0, 0, nil},
		"no ClusterQueue":                {Task{}, &Cluster{}, NoClusterQueue, 0, 0, nil},
		"LocalQueue on hold":             {Task{}, &Cluster{LocalQueueStopped: true}, QueueStopped, 0, 0, nil},
		"queue on hold":                  {Task{}, &Cluster{Queue: &Queue{Stopped: true}}, QueueStopped, 0, 0, nil},
		"flavor missing":                 {Task{}, &Cluster{Queue: &Queue{Inactive: "FlavorNotFound"}}, QueueInactive, 0, 0, nil},
		"wrong namespace":                {Task{}, &Cluster{Queue: &Queue{SelectsNamespace: func(string) bool { return false }}}, WrongNamespace, 0, 0, nil},
		"cohorts in cohorts":             {Task{}, &Cluster{Queue: &Queue{}, Nested: true}, Unknown, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := Why(tc.task, tc.cluster)
			if v.Constraint != tc.want {
				t.Fatalf("it is %+v, want %s", v, tc.want)
			}
			if tc.short > 0 && (v.Shortage == nil || v.Shortage.Missing() != tc.short || v.Shortage.Available != tc.free) {
				t.Errorf("short of %+v, want %d with %d free", v.Shortage, tc.short, tc.free)
			}
			briefed(t, tc.task, tc.cluster, v)
			var kinds []ChangeKind
			for _, c := range v.Changes {
				kinds = append(kinds, c.Kind)
			}
			if len(kinds) != len(tc.changes) {
				t.Fatalf("changes are %v, want %v", kinds, tc.changes)
			}
			for i := range kinds {
				if kinds[i] != tc.changes[i] {
					t.Errorf("changes are %v, want %v", kinds, tc.changes)
				}
			}
		})
	}
}

// Each change that is proposed starts the task, and a smaller one does not.
func TestChangesAreSmallest(t *testing.T) {
	c := cluster(queue("a", Limit{Nominal: 4, BorrowingLimit: n(2)}, 6), queue("b", Limit{Nominal: 8}, 1))
	c.hold(holder("large", "a", 10, 3), holder("middle", "a", 20, 2), holder("small", "a", 10, 1))
	v := Why(asks(3), c)
	if v.Constraint != Quota || v.Shortage.Missing() != 3 {
		t.Fatalf("it is %+v", v)
	}
	for _, change := range v.Changes {
		switch change.Kind {
		case TasksEnd:
			if len(change.Tasks) != 1 || change.Tasks[0].Name != "large" {
				t.Errorf("%+v should end", change.Tasks)
			}
		case HigherPriorityClass:
			if change.Priority != 20 || change.PriorityClass != "daily" || len(change.Tasks) != 1 || change.Tasks[0].Name != "large" {
				t.Errorf("a class of %d pushes out %+v", change.Priority, change.Tasks)
			}
		case RaiseBorrowingLimit:
			if len(change.Quotas) != 1 || change.Quotas[0].From != 2 || change.Quotas[0].To != 5 {
				t.Errorf("the limit goes to %+v", change.Quotas)
			}
		case RaiseNominalQuota:
			if len(change.Quotas) != 1 || change.Quotas[0].To != 7 {
				t.Errorf("the quota goes to %+v", change.Quotas)
			}
		case FewerPods:
			t.Errorf("with nothing free, %d pods start", change.Pods)
		}
	}
	if len(v.Changes) != 4 {
		t.Errorf("changes are %+v", v.Changes)
	}
}

// A larger slice of an elastic job stays in the flavor of the one that runs, and
// Kueue stops others for what it asks for more.
func TestLargerSlice(t *testing.T) {
	own := queue("a", Limit{Nominal: 4, BorrowingLimit: n(4)}, 2) // without the three of the slice that runs
	own.Flavors = []string{"a100", "h100"}
	own.Limits[h100] = Limit{Nominal: 8}
	c := cluster(own, queue("b", Limit{Nominal: 4}, 1))
	c.hold(holder("lower", "a", 5, 2))
	larger := asks(6)
	larger.ReplacedUsage = quota.FlavorResourceQuantities{a100: 3}
	v := Why(larger, c)
	if v.Constraint != Preempting || v.Shortage.Flavor != "a100" || len(v.TargetsInQueue) != 1 || v.Flavors[1].Mismatch == "" {
		t.Errorf("it is %s by %+v, of %+v", v.Constraint, v.Shortage, v.Flavors)
	}
	larger.ReplacedUsage = nil
	if v := Why(larger, c); v.Constraint != PendingEvaluation {
		t.Errorf("a new task of that size is %s", v.Constraint)
	}
}
