package explain

import (
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = "nvidia.com/gpu"

var (
	a100 = quota.FlavorResource{Flavor: "a100", Resource: gpu}
	h100 = quota.FlavorResource{Flavor: "h100", Resource: gpu}
	now  = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
)

func n(v resources.Amount) *resources.Amount { return &v }

// queue returns a ClusterQueue of the shared cohort with a limit and usage of a100 GPUs.
func queue(team string, limit Limit, used resources.Amount) *Queue {
	return &Queue{Name: team, Cohort: "shared", ReclaimWithinCohort: kueue.PreemptionPolicyAny, Flavors: []string{"a100"}, Resources: []string{gpu, "cpu"}, Limits: map[quota.FlavorResource]Limit{a100: limit}, Usage: quota.FlavorResourceQuantities{a100: used}}
}

// cluster returns the input of an explanation for a task of own.
func cluster(own *Queue, others ...*Queue) *Cluster {
	c := &Cluster{Now: now, LocalQueue: "main", PriorityClasses: []PriorityClass{{Name: "urgent", Priority: 90}, {Name: "daily", Priority: 20}, {Name: "batch", Priority: 10}}, Queue: own, Queues: map[string]*Queue{own.Name: own}, Cohorts: map[string]*Cohort{}, Flavors: map[string]kueue.ResourceFlavorSpec{"a100": {NodeLabels: map[string]string{"type": "a100"}}, "h100": {NodeLabels: map[string]string{"type": "h100"}}}}
	for _, q := range others {
		c.Queues[q.Name] = q
	}
	return c
}

// cohort returns a Cohort with a limit of a100 GPUs.
func cohort(name, parent string, limit Limit) *Cohort {
	return &Cohort{Name: name, Title: name, Parent: parent, Limits: map[quota.FlavorResource]Limit{a100: limit}}
}

// admitted returns an admitted workload that uses an amount of a100 GPUs.
func admitted(name, queue string, priority int32, amount resources.Amount) AdmittedWorkload {
	return AdmittedWorkload{Name: name, UID: name, Queue: queue, Priority: priority, Usage: quota.FlavorResourceQuantities{a100: amount}}
}

// admit adds admitted workloads.
func (c *Cluster) admit(more ...AdmittedWorkload) {
	for _, h := range more {
		c.Admitted = append(c.Admitted, &h)
	}
	slices.SortFunc(c.Admitted, (*AdmittedWorkload).Compare)
}

// requesting returns a task with this many pods of one GPU each.
func requesting(pods int32) Task {
	return Task{Namespace: "ns", Priority: 10, PodSets: []PodSet{{Name: "main", Count: pods, MinCount: pods, Requests: quota.Resources{gpu: 1}}}}
}

// checkBrief checks that Brief returns what Why does, except for names and changes.
func checkBrief(t *testing.T, task Task, c *Cluster, why Verdict) {
	t.Helper()
	brief := Brief(task, c)
	for _, list := range brief.AdmittedWorkloads() {
		if len(*list) > 0 {
			t.Errorf("a brief verdict names %+v", *list)
		}
	}
	for _, list := range brief.Withheld() {
		if len(*list) > 0 {
			t.Errorf("a brief verdict names %+v", *list)
		}
	}
	for _, list := range brief.Borrowers() {
		if len(*list) > 0 {
			t.Errorf("a brief verdict names %+v", *list)
		}
	}
	plain := func(v Verdict) Verdict {
		v.Changes, v.Flavors = nil, nil
		if v.Shortage != nil {
			s := *v.Shortage
			s.InQueue, s.LowerPriority, s.Borrowers, s.Withheld, s.LowerPriorityUsage, s.Reclaimable = nil, nil, nil, nil, 0, 0
			v.Shortage = &s
		}
		return v
	}
	if diff := cmp.Diff(plain(why), plain(brief)); diff != "" || len(brief.Changes) > 0 {
		t.Errorf("Brief differs from Why (-why +brief):\n%s", diff)
	}
}

func TestWhy(t *testing.T) {
	selecting := func(task Task, label string) Task {
		task.PodSets[0].Spec = &corev1.PodSpec{NodeSelector: map[string]string{"type": label}}
		return task
	}
	withReason := func(task Task, reason string) Task {
		task.Reason = reason
		return task
	}
	for name, tc := range map[string]struct {
		task          Task
		cluster       *Cluster
		want          Constraint
		wantMissing   resources.Amount
		wantAvailable resources.Amount
		wantChanges   []ChangeKind
	}{
		"fits": {requesting(2), cluster(queue("a", Limit{Nominal: 4}, 2)), PendingEvaluation, 0, 0, nil},
		"fits, and Kueue waits for the pods of other workloads to be ready": {withReason(requesting(2), "WaitingForPodsReady"), cluster(queue("a", Limit{Nominal: 4}, 2)), WaitingForPodsReady, 0, 0, nil},
		"fits, and no topology domain has enough nodes":                     {withReason(requesting(2), "TopologyPlacementFailed"), cluster(queue("a", Limit{Nominal: 4}, 2)), Topology, 0, 0, nil},
		"own quota is used": {requesting(2), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 4, BorrowingLimit: n(0)}, 3))
			c.admit(admitted("x", "a", 10, 2), admitted("y", "a", 10, 1))
			return c
		}(), Quota, 1, 1, []ChangeKind{FewerPods, TasksEnd, HigherPriorityClass, RaiseNominalQuota}},
		"idle quota beyond the borrowing limit": {requesting(4), cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(1)}, 0), queue("b", Limit{Nominal: 8}, 2)), ExceedsMax, 1, 3, []ChangeKind{FewerPods, RaiseBorrowingLimit, RaiseNominalQuota}},
		"a lending limit of zero":               {requesting(4), cluster(queue("a", Limit{Nominal: 2}, 0), queue("b", Limit{Nominal: 8, LendingLimit: n(0)}, 0)), ExceedsMax, 2, 2, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"a lending limit":                       {requesting(4), cluster(queue("a", Limit{Nominal: 2}, 0), queue("b", Limit{Nominal: 8, LendingLimit: n(3)}, 7)), Quota, 1, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"other queues borrow its quota":         {requesting(2), cluster(queue("a", Limit{Nominal: 4}, 0), queue("b", Limit{Nominal: 4}, 8)), Preempting, 2, 0, nil},
		"the cohort has quota of its own": {requesting(4), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 2}, 0))
			c.Cohorts["shared"] = cohort("shared", "", Limit{Nominal: 1})
			return c
		}(), ExceedsMax, 1, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"workloads of lower priority in its queue": {requesting(2), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 2, BorrowingLimit: n(0)}, 2))
			c.admit(admitted("low", "a", 5, 2))
			return c
		}(), Preempting, 2, 0, nil},
		"workloads of lower priority, and withinClusterQueue Never": {requesting(2), func() *Cluster {
			q := queue("a", Limit{Nominal: 1, BorrowingLimit: n(1)}, 2)
			q.NeverWithinClusterQueue = true
			c := cluster(q, queue("b", Limit{Nominal: 1}, 0))
			c.admit(admitted("low", "a", 5, 2))
			return c
		}(), Quota, 2, 0, []ChangeKind{TasksEnd, RaiseNominalQuota}},
		"more in the second flavor, and never enough": {requesting(9), func() *Cluster {
			q := queue("a", Limit{Nominal: 1}, 0)
			q.Flavors, q.Limits[h100] = []string{"a100", "h100"}, Limit{Nominal: 6}
			return cluster(q)
		}(), ExceedsMax, 3, 6, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"a queue without a cohort": {requesting(5), func() *Cluster {
			q := queue("a", Limit{Nominal: 4}, 1)
			q.Cohort = ""
			return cluster(q)
		}(), ExceedsMax, 2, 3, []ChangeKind{FewerPods, RaiseNominalQuota}},
		"no flavor matches its node selector": {selecting(requesting(1), "v100"), cluster(queue("a", Limit{Nominal: 4}, 0)), NoMatchingFlavor, 0, 0, nil},
		"a flavor without the label that it selects": {selecting(requesting(1), "v100"), func() *Cluster {
			c := cluster(queue("a", Limit{Nominal: 4}, 0))
			c.Flavors["a100"] = kueue.ResourceFlavorSpec{}
			return c
		}(), PendingEvaluation, 0, 0, nil},
		"the second flavor fits": {selecting(requesting(1), "h100"), func() *Cluster {
			q := queue("a", Limit{Nominal: 4}, 4)
			q.Flavors, q.Limits[h100] = []string{"a100", "h100"}, Limit{Nominal: 1}
			return cluster(q)
		}(), PendingEvaluation, 0, 0, nil},
		"a resource that no quota covers": {Task{Namespace: "ns", PodSets: []PodSet{{Count: 1, MinCount: 1, Requests: quota.Resources{"example.com/fpga": 1}}}}, cluster(queue("a", Limit{Nominal: 4}, 0)), UncoveredResource, 0, 0, nil},
		"its time limit was reached":      {Task{Deactivated: true, TimedOut: true}, cluster(queue("a", Limit{Nominal: 4}, 0)), TimedOut, 0, 0, nil},
		"deactivated":                     {Task{Deactivated: true}, cluster(queue("a", Limit{Nominal: 4}, 0)), Deactivated, 0, 0, nil},
		"gated by an annotation":          {Task{Gated: "x"}, cluster(queue("a", Limit{}, 0)), Gated, 0, 0, nil},
		"an admission check is pending":   {Task{QuotaReserved: true, PendingChecks: []string{"c: Pending"}}, cluster(queue("a", Limit{}, 0)), ChecksPending, 0, 0, nil},
		"backs off":                       {Task{RetryAt: now.Add(time.Minute)}, cluster(queue("a", Limit{}, 0)), BackingOff, 0, 0, nil},
		"no queue":                        {Task{}, &Cluster{NoLocalQueue: true}, NoQueue, 0, 0, nil},
		"no ClusterQueue":                 {Task{}, &Cluster{}, NoClusterQueue, 0, 0, nil},
		"LocalQueue on hold":              {Task{}, &Cluster{LocalQueueStopped: true}, QueueStopped, 0, 0, nil},
		"ClusterQueue on hold":            {Task{}, &Cluster{Queue: &Queue{Stopped: true}}, QueueStopped, 0, 0, nil},
		"flavor missing":                  {Task{}, &Cluster{Queue: &Queue{Inactive: "FlavorNotFound"}}, QueueInactive, 0, 0, nil},
		"the ClusterQueue does not select the namespace": {Task{}, &Cluster{Queue: &Queue{ExcludesNamespace: true}}, WrongNamespace, 0, 0, nil},
		"behind another task":                            {requesting(2), func() *Cluster { c := cluster(queue("a", Limit{Nominal: 4}, 2)); c.Behind = true; return c }(), Behind, 0, 0, nil},
		"its cohort is its own ancestor":                 {Task{}, &Cluster{Queue: &Queue{}, CohortCycle: []string{"x", "y"}}, CohortCycle, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := Why(tc.task, tc.cluster)
			if v.Constraint != tc.want {
				t.Fatalf("got %+v, want %s", v, tc.want)
			}
			if tc.wantMissing > 0 && (v.Shortage == nil || v.Shortage.Missing() != tc.wantMissing || v.Shortage.Available != tc.wantAvailable) {
				t.Errorf("got the shortage %+v, want %d missing with %d available", v.Shortage, tc.wantMissing, tc.wantAvailable)
			}
			checkBrief(t, tc.task, tc.cluster, v)
			var kinds []ChangeKind
			for _, c := range v.Changes {
				kinds = append(kinds, c.Kind)
			}
			if len(kinds) != len(tc.wantChanges) {
				t.Fatalf("got the changes %v, want %v", kinds, tc.wantChanges)
			}
			for i := range kinds {
				if kinds[i] != tc.wantChanges[i] {
					t.Errorf("got the changes %v, want %v", kinds, tc.wantChanges)
				}
			}
		})
	}
}

// Each proposed change is the smallest that starts the task.
func TestChangesAreSmallest(t *testing.T) {
	c := cluster(queue("a", Limit{Nominal: 4, BorrowingLimit: n(2)}, 6), queue("b", Limit{Nominal: 8}, 1))
	c.admit(admitted("large", "a", 10, 3), admitted("middle", "a", 20, 2), admitted("small", "a", 10, 1))
	v := Why(requesting(3), c)
	if v.Constraint != Quota || v.Shortage.Missing() != 3 {
		t.Fatalf("got %+v, want 3 missing of the quota", v)
	}
	for _, change := range v.Changes {
		switch change.Kind {
		case TasksEnd:
			if len(change.Tasks) != 1 || change.Tasks[0].Name != "large" {
				t.Errorf("got %+v to end, want large", change.Tasks)
			}
		case HigherPriorityClass:
			if change.Priority != 20 || change.PriorityClass != "daily" {
				t.Errorf("got %s of %d, want daily of 20", change.PriorityClass, change.Priority)
			}
		case RaiseBorrowingLimit:
			if len(change.Quotas) != 1 || change.Quotas[0].From != 2 || change.Quotas[0].To != 5 {
				t.Errorf("got the borrowing limits %+v, want 2 to 5", change.Quotas)
			}
		case RaiseNominalQuota:
			if len(change.Quotas) != 1 || change.Quotas[0].To != 7 {
				t.Errorf("got the quotas %+v, want 7", change.Quotas)
			}
		case FewerPods:
			t.Errorf("nothing is available, and %d pods would start", change.Pods)
		}
	}
	if len(v.Changes) != 4 {
		t.Errorf("got %+v, want 4 changes", v.Changes)
	}
}

// A larger slice of an elastic job stays in the flavor of the slice that runs, and
// Kueue preempts for the additional requests.
func TestLargerSlice(t *testing.T) {
	own := queue("a", Limit{Nominal: 4, BorrowingLimit: n(4)}, 2) // without the 3 GPUs of the slice that runs
	own.Flavors = []string{"a100", "h100"}
	own.Limits[h100] = Limit{Nominal: 8}
	c := cluster(own, queue("b", Limit{Nominal: 4}, 1))
	c.admit(admitted("lower", "a", 5, 2))
	larger := requesting(6)
	larger.ReplacedUsage = quota.FlavorResourceQuantities{a100: 3}
	v := Why(larger, c)
	if v.Constraint != Preempting || v.Shortage.Flavor != "a100" || v.Flavors[1].Mismatch == "" {
		t.Errorf("got %s with %+v, of %+v", v.Constraint, v.Shortage, v.Flavors)
	}
	larger.ReplacedUsage = nil
	if v := Why(larger, c); v.Constraint != PendingEvaluation {
		t.Errorf("a new task of that size is %s, want PendingEvaluation", v.Constraint)
	}
}

// A node without a free pod slot takes no pod, whatever else is free; nodes that report no
// slots are not limited by them.
func TestPodSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		allocatable, free quota.Resources
		wantFitting       int64
		wantResource      string
	}{
		"slots":         {quota.Resources{gpu: 8, "pods": 110}, quota.Resources{gpu: 8, "pods": 3}, 3, ""},
		"no slot":       {quota.Resources{gpu: 8, "pods": 110}, quota.Resources{gpu: 8, "pods": 0}, 0, "pods"},
		"no GPU":        {quota.Resources{gpu: 8, "pods": 110}, quota.Resources{gpu: 0, "pods": 3}, 0, gpu},
		"slots unknown": {quota.Resources{gpu: 8}, quota.Resources{gpu: 8}, 8, ""},
	} {
		f := fit(requesting(1).PodSets[0], "a100", kueue.ResourceFlavorSpec{}, []Node{{Name: "n", Ready: true, Allocatable: tc.allocatable, Free: tc.free}})
		if f.FittingPods != tc.wantFitting || f.Resource != tc.wantResource || f.TooSmall() {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}
