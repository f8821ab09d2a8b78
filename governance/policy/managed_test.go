package policy_test

import (
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/policy"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A policy that Argo CD or Flux manages is not changed, and no pools are added to
// it.
func TestManagedPolicyIsNotChanged(t *testing.T) {
	w := setup(t)
	must(t, w.Save(t.Context(), w.admin, ranking(class("dev", 10))))
	saved := w.waitState(t, func(s policy.State) bool { return s.Policy != nil }).Policy.DeepCopy()
	patch := `{"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "governance:kuota.dev/ClusterPolicy:argocd/default"}}}`
	must(t, w.Client.Patch(t.Context(), saved.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
	managed := w.waitState(t, func(s policy.State) bool {
		_, managed := gitops.ManagerOf(s.Policy)
		return managed
	}).Policy.DeepCopy()

	const wantText = "The cluster policy is managed by Argo CD (Application governance)"
	changed := managed.DeepCopy()
	changed.Spec.PriorityClasses[0].Weight = class("dev", 20).Weight
	wantKind(t, w.Save(t.Context(), w.admin, changed), governance.Forbidden, wantText)
	_, err := w.Review(t.Context(), w.admin, changed)
	wantKind(t, err, governance.Forbidden, wantText)
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 30))), governance.Forbidden, wantText) // as a new policy
	pools := []v1alpha1.Pool{{Name: "blue", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"color": "blue"}}}}
	errs, err := w.CheckPools(t.Context(), pools)
	must(t, err)
	if len(errs) != 1 || errs[0].Path != "spec.pools[0].name" {
		t.Errorf("got errors %+v for a new pool, want one at spec.pools[0].name", errs)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, pools), governance.Forbidden, wantText)
	if now := w.waitState(t, func(s policy.State) bool { return s.Policy != nil }).Policy; now.Generation != saved.Generation {
		t.Error("the policy changed")
	}
}
