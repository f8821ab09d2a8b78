package allocations_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitDeleted waits until the allocation of a team no longer exists.
func (w world) waitDeleted(t *testing.T, team string) {
	t.Helper()
	clustertest.Eventually(t, 2*soon, func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("team %s still exists", team))
	})
}

func TestDeleteIdleTeam(t *testing.T) {
	w := setup(t)
	team := w.team(t, "idle", gpus(1))
	preview, err := w.PreviewDeletion(t.Context(), w.admin, team.Name)
	must(t, err)
	want := allocations.DeletionPreview{Namespace: team.Status.Namespace, Removed: []change.Object{
		{Kind: "LocalQueue", Name: team.Status.LocalQueue, Action: change.Removed},
		{Kind: "ClusterQueue", Name: team.Status.ClusterQueue, Action: change.Removed},
	}}
	if diff := cmp.Diff(want, preview); diff != "" {
		t.Errorf("preview of the deletion (-want +got):\n%s", diff)
	}

	changed := team.DeepCopy()
	changed.Spec.DisplayName = "Changed concurrently"
	must(t, w.Update(t.Context(), w.admin, changed, nil))
	wantKind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion}), governance.Conflict)
	now := w.settled(t, team.Name)
	must(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: now.ResourceVersion}))
	w.waitDeleted(t, team.Name)
	wantKind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: now.ResourceVersion}), governance.NotFound)
}

// A team with running tasks is deleted only with a drain.
func TestDeleteBusyTeam(t *testing.T) {
	w := setup(t)
	team := w.team(t, "busy", gpus(2))
	w.runTask(t, team.Name, "long", 1)
	preview, err := w.PreviewDeletion(t.Context(), w.admin, team.Name)
	must(t, err)
	if diff := cmp.Diff([]allocations.Task{{Namespace: team.Status.Namespace, Kind: "Job", Name: "long"}}, preview.Running); diff != "" {
		t.Errorf("running tasks (-want +got):\n%s", diff)
	}
	wantKind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion}), governance.Invalid, "1 of its tasks is running")
	if now := w.settled(t, team.Name); now.DeletionTimestamp != nil || now.Annotations[v1alpha1.AnnotationDrain] != "" {
		t.Errorf("the rejected deletion changed the allocation: %+v", now.ObjectMeta)
	}
	must(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion, Drain: true}))
	w.waitDeleted(t, team.Name)
}
