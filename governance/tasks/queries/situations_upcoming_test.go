package queries_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/google/go-cmp/cmp"
)

const otherQueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: NAME}
spec: {clusterQueue: NAME-%[1]s}
`

// TestUpcomingOnKueue checks that the real Kueue admits the tasks of two queues of a
// cohort in the order that is listed before, as one GPU after the other becomes free.
func TestUpcomingOnKueue(t *testing.T) {
	l := newLab(t)
	const never = "preemption: {withinClusterQueue: Never, reclaimWithinCohort: Never}"
	l.queue("", 1, "", never)
	l.queue("-other", 0, "", never)
	l.queue("-lender", 5, "", never)
	l.apply(fmt.Sprintf(otherQueue, "other") + "---" + fmt.Sprintf(otherQueue, "lender"))
	for i := range 5 {
		l.jobIn("lender", fmt.Sprintf("lends-%d", i), 1, "", "")
	}
	for i := range 5 {
		l.runs(fmt.Sprintf("lends-%d", i))
	}
	l.job("own", 1, "")
	l.runs("own")
	waits := []struct{ queue, name, class string }{{"main", "a-low", "low"}, {"other", "b-low", "low"}, {"main", "a-high", "high"}, {"other", "b-none", ""}, {"other", "b-high", "high"}}
	for _, w := range waits {
		l.jobIn(w.queue, w.name, 1, w.class, "")
		time.Sleep(1100 * time.Millisecond) // Kueue orders by seconds
	}
	scope, err := l.tasks.Scope(t.Context(), localUser)
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context) (found []queries.UpcomingItem) {
		u, err := l.tasks.UpcomingWithin(ctx, scope, queries.UpcomingQuery{All: true, Patience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(u.Items, func(i queries.UpcomingItem) bool { return i.Namespace != l.name })
	}
	var listed []string
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		listed = nil
		for _, item := range list(ctx) {
			listed = append(listed, item.Name)
			if item.Order == 0 || item.Brief == nil {
				return fmt.Errorf("%s: got order %d and verdict %+v, want both", item.Name, item.Order, item.Brief)
			}
		}
		if len(listed) != len(waits) {
			return fmt.Errorf("listed: got %v, want %d tasks", listed, len(waits))
		}
		return nil
	})
	if want := []string{"a-high", "b-high", "a-low", "b-low", "b-none"}; !slices.Equal(listed, want) {
		t.Errorf("listed: got %v, want %v", listed, want)
	}
	if item := list(t.Context())[1]; item.ClusterQueuePosition != 1 || item.Shared {
		t.Errorf("b-high: got position %d, shared %t, want the first of its ClusterQueue", item.ClusterQueuePosition, item.Shared)
	}
	var admitted []string
	for i := range waits {
		// Kueue takes the next task of a queue while it tries its first one, so that a GPU
		// that becomes free meanwhile goes to the next one. Kueue does not show what it tries.
		time.Sleep(1100 * time.Millisecond)
		l.kubectl("delete", "job", fmt.Sprintf("lends-%d", i), "-n", "NAME")
		clustertest.Eventually(t, soon, func(context.Context) error {
			for _, name := range listed {
				if !slices.Contains(admitted, name) && l.detail(name).State.UsesQuota() {
					admitted = append(admitted, name)
				}
			}
			if len(admitted) != i+1 {
				return fmt.Errorf("admitted: got %v, want %d tasks", admitted, i+1)
			}
			return nil
		})
	}
	if diff := cmp.Diff(admitted, listed); diff != "" {
		t.Errorf("order (-Kueue +listed):\n%s", diff)
	}

	// A task of a queue on hold has no number.
	l.job("held", 1, "high")
	l.patch("clusterqueue", "NAME", `{"spec":{"stopPolicy":"Hold"}}`)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		found := list(ctx)
		if len(found) != 1 || found[0].Name != "held" || found[0].Order != 0 {
			return fmt.Errorf("listed: got %+v, want the held task without a number", found)
		}
		return nil
	})
}
