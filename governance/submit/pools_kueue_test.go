package submit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/queries"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A task that may run in any of two pools is admitted in the second one if the first is
// full, and Kueue evicts nothing for it.
func TestAnyOfPoolsIsAdmitted(t *testing.T) {
	t.Parallel()
	const first, second = "ml.p5.48xlarge", "ml.g5.2xlarge"
	w := setup(t, 1)
	var allocation v1alpha1.ComputeAllocation
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: w.team}, &allocation); err != nil {
		t.Fatal(err)
	}
	base := allocation.DeepCopy()
	allocation.Spec.Quota = append(allocation.Spec.Quota, v1alpha1.QuotaRow{InstanceType: second, Quantities: v1alpha1.Quantities{Accelerators: new(int64(1))}})
	if err := w.Client.Patch(t.Context(), &allocation, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	var team submit.Team
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		if team, err = w.Service.Team(ctx, w.member, w.team); err == nil && len(team.Pools) != 2 {
			err = fmt.Errorf("the team has %d pools", len(team.Pools))
		}
		return err
	})
	in := func(pool string) func(queries.Detail) bool {
		return func(d queries.Detail) bool { return d.State.UsesQuota() && slices.Equal(d.Pools, []string{pool}) }
	}
	w.submit(t, w.plan(t, "fills", 1, 1))
	w.is(t, "fills", in(first))

	plan, wrong := team.Plan(submit.Request{
		Name: "either", Pool: first, OtherPools: []string{second}, Pods: 1, PerPod: v1alpha1.Quantities{Accelerators: new(int64(1))}, Image: "example.com/train:1",
	})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	w.awaitStart(t, plan, 0)
	w.submit(t, plan)
	if d := w.is(t, "either", in(second)); d.Preemptions != 0 {
		t.Errorf("got %d preemptions, want one admission", d.Preemptions)
	}
	w.is(t, "fills", in(first))
}

// Everything that the form can set is accepted by the API server as the member.
func TestRuntimeIsAccepted(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	plan := w.plan(t, "runtime", 1, 1)
	plan.Request.Runtime = submit.FullRuntime()
	w.submit(t, plan)
	w.is(t, "runtime", func(d queries.Detail) bool { return d.State.UsesQuota() })
}
