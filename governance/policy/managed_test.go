package policy_test

import (
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/policy"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A policy that Argo CD or Flux manages is not changed behind its back, nor are
// pools added to it.
func TestManagedIsNotChanged(t *testing.T) {
	w := setup(t)
	must(t, w.Save(t.Context(), w.admin, ranking(class("dev", 10))))
	saved := w.seen(t, func(s policy.State) bool { return s.Policy != nil }).Policy.DeepCopy()
	patch := `{"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "governance:kuota.dev/ClusterPolicy:argocd/default"}}}`
	must(t, w.Client.Patch(t.Context(), saved.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
	managed := w.seen(t, func(s policy.State) bool {
		_, managed := gitops.ManagerOf(s.Policy)
		return managed
	}).Policy.DeepCopy()

	const says = "The cluster policy is managed by Argo CD (Application governance)"
	changed := managed.DeepCopy()
	changed.Spec.PriorityClasses[0].Weight = class("dev", 20).Weight
	wantKind(t, w.Save(t.Context(), w.admin, changed), governance.Forbidden, says)
	_, err := w.Review(t.Context(), w.admin, changed)
	wantKind(t, err, governance.Forbidden, says)
	wantKind(t, w.Save(t.Context(), w.admin, ranking(class("dev", 30))), governance.Forbidden, says) // as if there were none
	pools := []v1alpha1.Pool{{Name: "blue", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"colour": "blue"}}}}
	wrong, err := w.CheckPools(t.Context(), pools)
	must(t, err)
	if len(wrong) != 1 || wrong[0].Path != "spec.pools[0].name" {
		t.Errorf("new pools are checked with %+v", wrong)
	}
	wantKind(t, w.AddPools(t.Context(), w.admin, pools), governance.Forbidden, says)
	if now := w.seen(t, func(s policy.State) bool { return s.Policy != nil }).Policy; now.Generation != saved.Generation {
		t.Error("it was changed")
	}
}
