package queries

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// newRandomTree returns a tree of Cohorts with limits at each level, whose teams preempt, with
// the tasks that Kueue admitted of those that were submitted.
func newRandomTree(t *testing.T, seed uint64, fair bool) *randomCohort {
	t.Helper()
	c := &randomCohort{random: rand.New(rand.NewPCG(seed, 3)), fair: fair}
	c.Time = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	c.Flavors = []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}, {ObjectMeta: metav1.ObjectMeta{Name: "g6"}}}
	c.Cohorts = []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}}
	if fair {
		c.Configuration.FairSharing = &config.FairSharing{}
	}
	teams := 2 + c.random.IntN(4)
	for i := range teams {
		c.team(fmt.Sprintf("team-%d", i), c.random.IntN(5), int64(c.random.IntN(4)))
	}
	c.nest()
	c.Workloads = nil // those that use the reserves
	some := func(of int64) *resource.Quantity {
		if c.random.IntN(2) == 0 {
			return nil
		}
		return resource.NewQuantity(c.random.Int64N(of), resource.DecimalSI)
	}
	for _, o := range c.Cohorts[1:] {
		r := &o.Spec.ResourceGroups[0].Flavors[0].Resources[0]
		r.BorrowingLimit, r.LendingLimit = some(4), some(6)
	}
	for _, q := range c.ClusterQueues {
		flavors := q.Spec.ResourceGroups[0].Flavors
		r := &flavors[len(flavors)-1].Resources[0]
		r.BorrowingLimit = some(4)
		if r.LendingLimit = some(r.NominalQuota.Value() + 1); c.random.IntN(3) > 0 {
			r.LendingLimit = nil
		}
		p := q.Spec.Preemption
		p.WithinClusterQueue = []kueue.PreemptionPolicy{kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority}[c.random.IntN(2)]
		p.ReclaimWithinCohort = []kueue.PreemptionPolicy{kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny}[c.random.IntN(3)]
		if p.ReclaimWithinCohort != kueue.PreemptionPolicyNever && c.random.IntN(2) == 0 && !fair {
			p.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
			if c.random.IntN(2) == 0 {
				p.BorrowWithinCohort.MaxPriorityThreshold = new(c.random.Int32N(3))
			}
		}
	}
	for i := range 4 + c.random.IntN(12) {
		c.task(fmt.Sprintf("team-%d", c.random.IntN(teams)), fmt.Sprintf("t%d", i), c.random.Int32N(4), "")
	}
	out, err := engine.Run(t.Context(), &c.Snapshot, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, e := range out.Events {
		has[e.Workload] = e.Kind == simulate.Started
	}
	submitted := c.Workloads
	c.Workloads = nil
	for _, w := range submitted {
		if has[w.Namespace+"/"+w.Name] {
			c.task(w.Namespace, w.Name, *w.Spec.Priority, w.Namespace)
		}
	}
	return c
}

// TestVerdictsInTreesAreKueues submits one task to random trees, and compares its verdict with
// what Kueue's scheduler does: it starts, preempts others first, or waits.
func TestVerdictsInTreesAreKueues(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(1000) {
		fair := seed%4 == 3
		c := newRandomTree(t, seed, fair)
		team := fmt.Sprintf("team-%d", c.random.IntN(len(c.ClusterQueues)))
		c.task(team, "asked", c.random.Int32N(4), "")
		c.Workloads[len(c.Workloads)-1].Spec.PodSets[0].Count = 1 + c.random.Int32N(3)
		x := index.New(func() time.Time { return c.Time })
		for _, w := range c.Workloads {
			x.SetWorkload(w.DeepCopy(), true)
		}
		v := viewer{scope: access.Scope{All: true}, index: x, reader: c}
		s := newSurvey(v)
		task := x.Find(team, "Workload", "asked", team+"-asked")
		if task == nil {
			t.Fatalf("seed %d: the task is not in the index", seed)
		}
		cluster, err := s.cluster(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		verdict := explain.Why(explainInput(task), cluster)
		out, err := engine.Run(t.Context(), &c.Snapshot, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := "waits"
		for _, e := range out.Events {
			switch {
			case e.Kind == simulate.Started && e.Workload == team+"/asked" && want == "waits":
				want = "starts"
			case e.Kind != simulate.Started && e.By == team+"/asked":
				want = "preempts"
			}
		}
		got := map[explain.Constraint]string{explain.PendingEvaluation: "starts", explain.Preempting: "preempts", explain.Quota: "waits", explain.ExceedsMax: "waits"}[verdict.Constraint]
		if verdict.MayPreempt && slices.Contains([]string{"waits", "preempts"}, want) {
			got = want
		}
		if counts[want]++; got != want {
			t.Errorf("seed %d, fair sharing %t: got %s (%s), want %s; events %+v", seed, fair, got, verdict.Constraint, want, out.Events)
		}
	}
	t.Logf("Kueue's scheduler: %v", counts)
}
