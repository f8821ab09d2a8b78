package kinds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestExperiments is the example of AWS Batch, with JobSets: a hundred instances, 60 for
// one experiment and 40 for the other, which lend and borrow. First one borrows what the
// other does not use, and the other reclaims it. Then a task of the highest priority
// preempts the one of the lowest priority of its own experiment, and no other.
func TestExperiments(t *testing.T) {
	jobSet := kinds[0]
	pool := clustertest.Name("lab.experiments")
	c := clustertest.Get(t)
	for i := range 100 {
		c.Node(t, fmt.Sprintf("%s-%d", pool, i), map[string]string{corev1.LabelInstanceTypeStable: pool, corev1.LabelOSStable: "linux"},
			clustertest.Resources(map[corev1.ResourceName]string{"nvidia.com/gpu": "1", "cpu": "8", "memory": "64Gi", "pods": "110"}))
	}
	classes := map[string]int{"p90": 90, "p80": 80, "p50": 50, "p30": 30, "p10": 10}
	allocation := func(instances int) string {
		return fmt.Sprintf("sharing: {strategy: LendAndBorrow, borrowLimitPercent: 25}, quota: [{instanceType: %s, instances: %d}]", pool, instances)
	}
	one, two := newTeamWith(t, classes, allocation(60)), newTeamWith(t, classes, allocation(40))
	submit := func(of team, name string, pods, priority int) {
		t.Helper()
		if err := of.create(jobSet.manifest(object{name: name, pods: pods, metadata: of.labels(fmt.Sprintf("p%d", priority))})); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(of team, name string, pods int) {
		t.Helper()
		of.is(t, jobSet, name, tasks.Running, nil)
		of.runs(t, jobSet, name, pods)
	}
	remove := func(of team, name string) {
		t.Helper()
		if err := of.actions.Delete(t.Context(), of.member, of.at(jobSet, name)); err != nil {
			t.Fatal(err)
		}
	}

	// The first experiment uses 75: its own 60, and 15 of the 40 of the second.
	submit(two, "steady", 25, 50)
	runs(two, "steady", 25)
	high := map[string]int{"a": 80, "b": 50, "c": 30}
	for name, priority := range high {
		submit(one, name, 20, priority)
		runs(one, name, 20)
	}
	submit(one, "d", 15, 10)
	runs(one, "d", 15)
	one.uses(t, pool, 60, 15, 0)
	two.uses(t, pool, 25, 0, 15)
	one.is(t, jobSet, "d", tasks.Running, func(d queries.Detail) error {
		if d.QuotaSources == nil {
			return fmt.Errorf("the page does not show where its quota comes from")
		}
		return nil
	})

	// The second wants its 40: Kueue preempts the task that borrowed.
	submit(two, "more", 15, 50)
	runs(two, "more", 15)
	one.isPreempted(t, jobSet, "d", kueue.InCohortReclamationReason, "")
	one.uses(t, pool, 60, 0, 0)
	two.uses(t, pool, 40, 0, 0)

	// With idle quota it runs again, until a task of priority 90 needs its 15.
	remove(two, "more")
	runs(one, "d", 15)
	one.uses(t, pool, 60, 15, 0)
	submit(one, "urgent", 15, 90)
	runs(one, "urgent", 15)
	one.isPreempted(t, jobSet, "d", kueue.InClusterQueueReason, "urgent")
	one.uses(t, pool, 60, 15, 0)
	two.uses(t, pool, 25, 0, 15)
	for name := range high {
		runs(one, name, 20)
		one.is(t, jobSet, name, tasks.Running, func(d queries.Detail) error {
			if d.Evictions > 0 {
				return fmt.Errorf("%s was evicted %d times, want never", name, d.Evictions)
			}
			return nil
		})
	}
}

// isPreempted waits until a task was preempted for this reason, and the member's page of
// it shows that, names the preemptor if it is of the same team, and explains its wait.
func (of team) isPreempted(t *testing.T, k kind, name, reason, preemptor string) {
	t.Helper()
	of.runs(t, k, name, 0)
	of.is(t, k, name, tasks.Preempted, func(d queries.Detail) error {
		var last timeline.Event
		for _, e := range d.Timeline {
			if e.Type == timeline.Preempted {
				last = e
			}
		}
		by := ""
		if last.Preemptor != nil {
			by = last.Preemptor.Name
		}
		if last.Reason != reason || by != preemptor || preemptor == "" && strings.Contains(last.Message, "hyperpod-ns") && !strings.Contains(last.Message, of.namespace) {
			return fmt.Errorf("it was preempted by %q for %s (%s), want by %q for %s", by, last.Reason, last.Message, preemptor, reason)
		}
		if d.Verdict == nil || d.Verdict.Constraint != explain.Quota || d.Agreement != explain.Agrees {
			return fmt.Errorf("got the verdict %+v, which %s with Kueue's reason, want Quota", d.Verdict, d.Agreement)
		}
		return nil
	})
}

// uses waits until Kueue reports this usage of GPUs, and the pages of the team's member
// show it.
func (of team) uses(t *testing.T, pool string, own, borrowed, lent resources.Amount) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		out, err := of.TryKubectl("", "get", "clusterqueue", of.namespace+"-clusterqueue", "-o", `jsonpath={.status.flavorsUsage[0].resources[?(@.name=="nvidia.com/gpu")].total} {.status.flavorsUsage[0].resources[?(@.name=="nvidia.com/gpu")].borrowed}`)
		if want := fmt.Sprintf("%d %d", own+borrowed, borrowed); err != nil || out != want {
			return fmt.Errorf("Kueue reports that %s uses and borrows %s (%v), want %s", of.name, out, err, want)
		}
		got, err := of.shown(ctx, of.member, pool)
		if err == nil && (got.Own != own || got.Borrowed != borrowed || got.LentToCohort != lent) {
			err = fmt.Errorf("the pages show %+v, want %d own, %d borrowed and %d lent", got, own, borrowed, lent)
		}
		return err
	})
}

// shown returns what a reader sees of the team's GPUs in a pool.
func (of team) shown(ctx context.Context, reader governance.User, pool string) (capacity.TeamResource, error) {
	scope, err := of.submit.Tasks.Scope(ctx, reader)
	if err != nil {
		return capacity.TeamResource{}, err
	}
	snapshot, err := of.capacity.Within(ctx, scope)
	if err != nil {
		return capacity.TeamResource{}, err
	}
	if len(snapshot.Teams) != 1 {
		return capacity.TeamResource{}, fmt.Errorf("the member of %s sees the teams %+v", of.name, snapshot.Teams)
	}
	for _, r := range snapshot.Teams[0].Resources {
		if r.Flavor == pool && r.Resource == "nvidia.com/gpu" {
			return r, nil
		}
	}
	return capacity.TeamResource{}, fmt.Errorf("%s has no GPUs in %s", of.name, pool)
}
