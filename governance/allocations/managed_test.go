package allocations_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// An allocation that Flux or Argo CD manages is neither changed nor deleted,
// whether the tool labels the object or only owns fields of it. The cache keeps
// the managed fields that show it.
func TestManagedAllocationIsNotChanged(t *testing.T) {
	w := setup(t)
	labeled := func(team v1alpha1.ComputeAllocation) {
		patch := `{"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "teams", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}}`
		must(t, w.Client.Patch(t.Context(), team.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	applied := func(team v1alpha1.ComputeAllocation) {
		text, err := yaml.YAMLToJSON([]byte(manifest.AllocationYAML(&team)))
		must(t, err)
		must(t, w.Client.Patch(t.Context(), team.DeepCopy(), client.RawPatch(types.ApplyPatchType, text), client.ForceOwnership, client.FieldOwner("argocd-controller")))
	}
	for name, tc := range map[string]struct {
		manage func(v1alpha1.ComputeAllocation)
		wantBy string
	}{
		"labeled by Flux": {labeled, "Flux (Kustomization flux-system/teams)"}, "applied by Argo CD": {applied, "Argo CD"},
	} {
		t.Run(name, func(t *testing.T) {
			team := w.team(t, "managed", gpus(1))
			tc.manage(team)
			var found v1alpha1.ComputeAllocation
			clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
				if found, err = w.Find(ctx, w.admin, team.Name); err != nil {
					return err
				}
				if m, _ := gitops.ManagerOf(&found); m.String() != tc.wantBy {
					return fmt.Errorf("got manager %q from the cache, want %q; managed fields: %v", m, tc.wantBy, found.ManagedFields)
				}
				return nil
			})
			changed := found.DeepCopy()
			changed.Spec = gpus(2)
			wantText := "Team " + team.Name + " is managed by " + tc.wantBy
			wantKind(t, w.Update(t.Context(), w.admin, changed, nil), governance.Forbidden, wantText)
			_, err := w.Review(t.Context(), w.admin, changed, nil)
			wantKind(t, err, governance.Forbidden, wantText)
			for _, drain := range []bool{false, true} {
				wantKind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: found.ResourceVersion, Drain: drain}), governance.Forbidden, wantText)
			}
			if now := w.settled(t, team.Name); now.Generation != found.Generation || now.DeletionTimestamp != nil || now.Annotations[v1alpha1.AnnotationDrain] != "" {
				t.Errorf("the allocation changed: %+v", now.ObjectMeta)
			}
		})
	}
}

// The manifest of a stored allocation, read by package imports and applied with
// kubectl, does not change the allocation. The API server accepts the manifests
// of HyperPod's examples.
func TestManifestRoundTrip(t *testing.T) {
	w := setup(t)
	for _, n := range []string{"1", "2", "3", "4"} {
		text, err := os.ReadFile("../imports/testdata/example-" + n + ".json")
		must(t, err)
		read := imports.Read(text)
		if len(read.Objects) != 1 {
			t.Fatalf("example %s is read as %+v", n, read)
		}
		w.Kubectl(t, read.Objects[0].YAML(), "apply", "--dry-run=server", "-f", "-")
	}
	team := w.team(t, "written", gpus(1))
	read := imports.Read([]byte(manifest.AllocationYAML(&team)))
	w.Apply(t, read.Objects[0].YAML())
	if now := w.settled(t, team.Name); now.Generation != team.Generation {
		t.Errorf("applying the manifest changed the allocation:\n%s", read.Objects[0].YAML())
	}
}
