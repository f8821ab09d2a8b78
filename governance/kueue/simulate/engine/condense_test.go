package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// busyCluster has a cohort of many teams at rest, half of which borrow, with long queues. In every
// second pair of seeds ten teams each are in a department.
func busyCluster(seed uint64, teams int) cluster {
	r := rand.New(rand.NewPCG(seed, 1))
	c := newCluster()
	if seed%2 == 1 {
		c.Configuration.FairSharing = &config.FairSharing{}
	}
	var quotas []int64
	idle := int64(0)
	for q := range teams/2 + r.IntN(teams/2) {
		quotas = append(quotas, 4+r.Int64N(20))
		idle += quotas[q]
		c.team(fmt.Sprintf("team-%d", q), quotas[q])
		if seed/2%2 == 1 {
			c.ClusterQueues[q].Spec.CohortName = kueue.CohortReference(fmt.Sprintf("department-%d", q/10))
		}
	}
	for d := range (len(quotas) + 9) / 10 {
		c.Cohorts = append(c.Cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("department-%d", d)}, Spec: kueue.CohortSpec{ParentName: "kuota"}})
	}
	run := func(q, i int, most int64) bool {
		gpus := 1 + r.Int64N(most)
		if gpus > idle {
			return false
		}
		idle -= gpus
		c.running(fmt.Sprintf("team-%d", q), fmt.Sprintf("r-%d", i), gpus, 40+10*r.Int32N(3), time.Duration(1+r.IntN(100))*time.Minute)
		return true
	}
	for q := 0; q < len(quotas); q += 2 { // they lend the rest
		for i := range r.Int64N(quotas[q] / 3) {
			run(q, int(i), 1)
		}
	}
	for q, i := 1, 0; run(q, i, 3); q, i = (q+2)%(2*(len(quotas)/2)), i+1 { // until all is used
	}
	for q := range quotas {
		for i := range r.IntN(60) {
			gpus := 1 + r.Int64N(8)
			if q%2 == 0 { // those of lenders would reclaim what is lent, were they smaller
				gpus += quotas[q]
			}
			notFitting(c.task(fmt.Sprintf("team-%d", q), fmt.Sprintf("w-%d", i), gpus, 10*r.Int32N(4), time.Duration(r.IntN(5000))*time.Second))
		}
	}
	return c
}

// TestCondensed compares answers about condensed snapshots with those about all of them: whether the
// target starts, and which tasks are preempted for it.
func TestCondensed(t *testing.T) {
	seeds, teams := uint64(24), 160
	if clustertest.Verify { // about 10,000 Workloads
		seeds, teams = 200, 320
	}
	starts, asked, targets, sizes, whole, unknown := 0, 0, 0, 0, 0, 0
	for seed := range seeds {
		c := busyCluster(seed, teams)
		r := rand.New(rand.NewPCG(seed, 2))
		var waiting []*kueue.Workload
		for _, w := range c.Workloads {
			var team int
			_, _ = fmt.Sscanf(w.Namespace, "team-%d", &team)
			if w.Status.Admission == nil && (team%2 == 1) == (seed%4 < 2) { // of a team that borrows, or lends
				waiting = append(waiting, w)
			}
		}
		w := waiting[r.IntN(len(waiting))].DeepCopy()
		if seed%4 < 2 {
			w.Spec.Priority = ptr.To(45 + 10*r.Int32N(3)) // preempts in its team
		} else {
			w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: *resource.NewQuantity(1+r.Int64N(4), resource.DecimalSI)} // reclaims what its team lends
		}
		q := &simulate.Question{Target: simulate.WorkloadKey(w), OnlyTarget: true, Change: simulate.Change{Workloads: []*kueue.Workload{w}}}
		want, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, q)
		if err != nil {
			t.Fatal(err)
		}
		condenser := simulate.NewCondenser(c.Snapshot)
		var got *simulate.Report
		for _, factor := range []int{1, 4} {
			part := condenser.For(q, factor)
			if got, err = new(engine.Engine).Answer(t.Context(), part.Snapshot, q); err != nil {
				t.Fatal(err)
			}
			if factor == 1 {
				sizes, whole = sizes+len(part.Workloads), whole+len(c.Workloads)
			}
			if part.Complete(got) {
				break
			}
			got = nil
		}
		if got == nil {
			unknown++
			continue
		}
		asked++
		same := (want.Target != nil) == (got.Target != nil)
		if same {
			starts++
		}
		preempted := func(r *simulate.Report) (names []string) {
			for _, e := range r.Preempted {
				if e.By == q.Target {
					names = append(names, e.Workload)
				}
			}
			slices.Sort(names)
			return names
		}
		if same && slices.Equal(preempted(want), preempted(got)) {
			targets++
		} else {
			t.Logf("seed %d: want %+v for %v, got %+v for %v", seed, want.Target, preempted(want), got.Target, preempted(got))
		}
	}
	t.Logf("%d Workloads on average: %d of %d starts are the same, with the same preemptions %d, and %d without an answer; %.0f %% of them stay", whole/int(seeds), starts, asked, targets, unknown, 100*float64(sizes)/float64(whole))
	if starts*100 < asked*98 || targets*100 < asked*95 || unknown*100 > asked*2 {
		t.Errorf("of %d answers %d have the same start, and %d the same preemptions", asked, starts, targets)
	}
}

// notFitting gives a waiting Workload the condition of one that Kueue found no quota for.
func notFitting(w *kueue.Workload) {
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: kueue.WorkloadQuotaReservedReasonWaitingForQuota}}
}

// TestMerged has ClusterQueues that are merged: the report has their figures, and what they lend is
// borrowed as before.
func TestMerged(t *testing.T) {
	c := newCluster()
	for team, quota := range map[string]int64{"vision": 2, "idle": 6, "half": 6, "keeps": 6} {
		c.team(team, quota)
	}
	for _, queue := range c.ClusterQueues {
		if queue.Name == "keeps" { // 4 of its 6, of which it uses 3
			queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = ptr.To(resource.MustParse("2"))
		}
	}
	c.running("vision", "a", 2, 10, time.Hour)
	c.running("half", "a", 3, 10, time.Hour)
	c.running("keeps", "a", 3, 10, time.Hour)
	for _, gpus := range []int64{11, 12} { // 6 + 3 + 2 are idle and lent
		w := c.task("vision", fmt.Sprintf("w-%d", gpus), gpus, 10, time.Minute)
		q := &simulate.Question{Target: simulate.WorkloadKey(w), Change: simulate.Change{Workloads: []*kueue.Workload{w}}, Ties: 1}
		want, err := new(engine.Engine).Answer(t.Context(), c.Snapshot, q)
		if err != nil {
			t.Fatal(err)
		}
		part := simulate.NewCondenser(c.Snapshot).For(q, 1)
		got, err := new(engine.Engine).Answer(t.Context(), part.Snapshot, q)
		if err != nil || !part.Complete(got) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(part.ClusterQueues) != 2 || (got.Target != nil) != (gpus == 11) {
			t.Errorf("%d GPUs, %d ClusterQueues (-want +got):\n%s", gpus, len(part.ClusterQueues), diff)
		}
		c.Workloads = c.Workloads[:len(c.Workloads)-1]
	}
}
