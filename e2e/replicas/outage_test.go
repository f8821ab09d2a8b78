package replicas_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history/historytest"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOutageEndsNoReplica stops the API server for a minute, beside one replica and beside
// two: none ends, the same one leads afterwards, and a change after it is recorded.
func TestOutageEndsNoReplica(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	database := historytest.Start(t).Database(t)
	a := consoles.New(t, c, "outage-a", database)
	a.WaitReady()
	a.WaitLeads(takeoverTime)
	team := newTeam(t, c, "outage", 1)
	replicas := []*consoles.Replica{a}
	for n := 1; n <= 2; n++ {
		if n == 2 {
			b := consoles.New(t, c, "outage-b", database)
			b.WaitReady()
			replicas = append(replicas, b)
		}
		c.Without(t, func() { time.Sleep(time.Minute) }) // the condition under test is this time
		t.Logf("%d replicas: leads after %s", n, a.WaitLeads(takeoverTime).Round(time.Millisecond))
		clustertest.Eventually(t, patience, func(context.Context) error {
			return c.TryApply(t.Context(), fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {fairShareWeight: %d, quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}}`, team, 10+n))
		})
		checkApplied(t, c, []string{team})
		clustertest.Eventually(t, patience, func(ctx context.Context) error { return eachRecorded(ctx, c, team) })
		for _, r := range replicas {
			r.WaitReady() // nothing starts a process that ended
		}
	}
}

// eachRecorded returns nil if each generation of an allocation is one version.
func eachRecorded(ctx context.Context, c *clustertest.Cluster, team string) error {
	now, err := allocation(ctx, c, team)
	if err != nil {
		return err
	}
	var list appsv1.ControllerRevisionList
	if err := c.Client.List(ctx, &list, client.InNamespace("kuota-system")); err != nil {
		return err
	}
	found := map[string]int{}
	for i := range list.Items {
		if a := list.Items[i].Annotations; a["kuota.dev/of-uid"] == string(now.UID) {
			found[a["kuota.dev/of-generation"]]++
		}
	}
	for generation := int64(1); generation <= now.Generation; generation++ {
		if n := found[fmt.Sprint(generation)]; n != 1 {
			return fmt.Errorf("generation %d of %d has %d versions", generation, now.Generation, n)
		}
	}
	return nil
}
