package allocations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/revisions"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history returns the service of the version pages.
func (w world) history(t *testing.T) *revisions.Service {
	t.Helper()
	c, err := connection()
	must(t, err)
	return &revisions.Service{Store: c.Revisions, Access: w.Access, Allocations: w.Service}
}

// nthSpec returns the n-th of many specs that all differ.
func nthSpec(n int64) v1alpha1.ComputeAllocationSpec {
	spec := gpus(1 + n%4)
	memory, cpu := resource.MustParse(fmt.Sprint(1<<30+n)), resource.MustParse(fmt.Sprintf("%dm", 100+n))
	spec.Quota = append(spec.Quota, v1alpha1.QuotaRow{InstanceType: "ml.c5.2xlarge", Quantities: v1alpha1.Quantities{VCPU: &cpu, Memory: &memory}})
	if n%2 == 0 {
		spec.Quota[0], spec.Quota[1] = spec.Quota[1], spec.Quota[0]
	}
	spec.DisplayName, spec.Description, spec.FairShareWeight = fmt.Sprintf("Team %d", n), fmt.Sprintf("<%d> \"quoted\": #", n), int32(n)
	for i := range n % 3 {
		spec.Members = append(spec.Members, v1alpha1.Member{Kind: "User", Name: fmt.Sprintf("oidc:%d-%d@example.com", n, i)})
	}
	switch n % 4 {
	case 0:
		spec.Sharing.Strategy = v1alpha1.Lend
	case 1:
		spec.Sharing.Strategy, spec.Sharing.Unlimited = v1alpha1.LendAndBorrow, true
	case 2:
		percent := int32(n)
		spec.Sharing.Strategy, spec.Sharing.BorrowLimitPercent = v1alpha1.LendAndBorrow, &percent
		spec.Sharing.BorrowLimits = []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	case 3:
		spec.Activation, spec.Preemption.WithinTeam, spec.DefaultQueue = v1alpha1.Hold, v1alpha1.PreemptNever, true
	}
	return spec
}

func encode(t *testing.T, spec any) string {
	t.Helper()
	text, err := json.Marshal(spec)
	must(t, err)
	return string(text)
}

// Each of the last fifty versions, restored with a review and a save, results in
// the same spec and in a version with the reason of the restore. The short run of
// make test restores some of them.
func TestRestoreEachOfFifty(t *testing.T) {
	w := setup(t)
	versions := w.history(t)
	team := w.team(t, "restore", nthSpec(0))
	owner := revisions.AllocationOwner(team.Name)
	now := func() v1alpha1.ComputeAllocation {
		var live v1alpha1.ComputeAllocation
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: team.Name}, &live))
		return live
	}
	save := func(spec v1alpha1.ComputeAllocationSpec, reason string) v1alpha1.ComputeAllocation {
		t.Helper()
		wanted := now()
		wanted.Spec = spec
		v1alpha1.SetReason(&wanted, reason)
		review, err := w.Review(t.Context(), w.admin, &wanted, nil)
		must(t, err)
		if review.Empty() {
			t.Fatalf("got an empty review of %q, want changes", reason)
		}
		must(t, w.Update(t.Context(), w.admin, &wanted, nil))
		return now()
	}
	want := []string{encode(t, now().Spec)}
	for n := int64(1); n <= 51; n++ {
		before := now()
		next := before.DeepCopy()
		next.Spec = nthSpec(n)
		must(t, w.Client.Patch(t.Context(), next, client.MergeFrom(&before)))
		want = append(want, encode(t, next.Spec))
	}
	waitNewest := func(number int64) (all []revisions.Revision) {
		clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
			if all, err = versions.History(ctx, w.admin, owner); err != nil {
				return err
			}
			if len(all) != 50 || all[0].Number != number {
				return fmt.Errorf("got %d versions, the newest %d; want 50, the newest %d", len(all), all[0].Number, number)
			}
			return nil
		})
		return all
	}
	all := waitNewest(52)
	if last := all[49].Number; last != 3 {
		t.Fatalf("the oldest version is %d, want 3", last)
	}
	var kept []revisions.Version
	for _, r := range all {
		version, err := versions.Version(t.Context(), w.admin, owner, r.Number)
		must(t, err)
		if got := encode(t, version.Allocation); got != want[r.Number-1] {
			t.Fatalf("version %d (-want +got):\n%s", r.Number, cmp.Diff(want[r.Number-1], got))
		}
		if r.By != "kubernetes-admin" || r.Skipped != 0 || (len(version.Changes) == 0) != (r.Number == 3) {
			t.Fatalf("version %d is %+v with changes %v", r.Number, r, version.Changes)
		}
		kept = append(kept, version)
	}
	step, restored := 1, int64(0)
	if !clustertest.Verify {
		step = 7
	}
	for i := len(kept) - 1; i >= 0; i -= step {
		version := kept[i]
		reason := fmt.Sprintf("Restores version %d", version.Number)
		live := save(*version.Allocation, reason)
		if got := encode(t, live.Spec); got != want[version.Number-1] {
			t.Fatalf("spec after %q (-want +got):\n%s", reason, cmp.Diff(want[version.Number-1], got))
		}
		if live.Annotations["kuota.dev/changed-by"] != w.admin.Name || live.Annotations["kuota.dev/changed-because"] != reason {
			t.Fatalf("annotations after %q are %v", reason, live.Annotations)
		}
		restored++
	}
	if all = waitNewest(52 + restored); all[restored-1].Reason != "Restores version 3" || all[0].By != w.admin.Name {
		t.Errorf("the first restored version has reason %q and the newest is by %q", all[restored-1].Reason, all[0].By)
	}
}

// Users who may see a team may see its versions, but not those of an earlier team
// of the same name. Versions of a deleted team are visible to users who see all
// teams, and such a version can create the team again.
func TestVisibilityOfVersions(t *testing.T) {
	w := setup(t)
	versions := w.history(t)
	spec := gpus(1)
	spec.Members = []v1alpha1.Member{{Kind: "User", Name: w.member.Name}}
	team := w.team(t, "seen", spec)
	owner := revisions.AllocationOwner(team.Name)
	sees := func(user governance.User, want ...int64) {
		t.Helper()
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			history, err := versions.History(ctx, user, owner)
			if kind := governance.KindOf(err); err != nil && kind != governance.NotFound && kind != governance.Outside {
				return err
			}
			var got []int64
			for _, r := range history {
				got = append(got, r.Number)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("versions that %s sees (-want +got):\n%s", user.Name, diff)
			}
			for n := int64(1); n <= 3; n++ {
				_, err := versions.Version(ctx, user, owner, n)
				if seen := err == nil; seen != (len(got) > 0 && n <= got[0] && n >= got[len(got)-1]) {
					return fmt.Errorf("%s reads version %d: %w", user.Name, n, err)
				}
			}
			return nil
		})
	}
	stranger := governance.User{Name: clustertest.Name("stranger")}
	sees(w.admin, 1)
	sees(w.member, 1)
	sees(stranger)
	two := team.DeepCopy()
	two.Spec.FairShareWeight = 7
	must(t, w.Update(t.Context(), w.admin, two, nil))
	sees(w.member, 2, 1)

	w.deleteTeam(team.Name)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKey{Name: team.Name}, &v1alpha1.ComputeAllocation{}); err == nil || client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("team %s still exists: %w", team.Name, err)
		}
		return nil
	})
	sees(w.admin, 3, 2, 1) // version 3 is the deletion
	sees(w.member)
	sees(stranger)
	version, err := versions.Version(t.Context(), w.admin, owner, 2)
	must(t, err)
	if !version.Deleted || version.Allocation.FairShareWeight != 7 {
		t.Errorf("the last version of the deleted team is %+v", version)
	}
	again := &v1alpha1.ComputeAllocation{Spec: *version.Allocation}
	again.Name = team.Name
	must(t, w.Create(t.Context(), w.admin, again, nil, ""))
	sees(w.admin, 4, 3, 2, 1)
	sees(w.member, 4)
}
