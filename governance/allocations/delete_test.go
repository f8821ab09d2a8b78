package allocations_test

import (
	"context"
	"errors"
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

const drained = v1alpha1.AnnotationDrain

// goes waits until a team is gone.
func (w world) goes(t *testing.T, team string) {
	t.Helper()
	clustertest.Eventually(t, 2*soon, func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

func TestDeleteIdle(t *testing.T) {
	w := setup(t)
	team := w.team(t, "idle", gpus(1))
	departure, err := w.PreviewDeletion(t.Context(), w.admin, team.Name)
	must(t, err)
	want := allocations.DeletionPreview{Namespace: team.Status.Namespace, Removed: []change.Object{
		{Kind: "LocalQueue", Name: team.Status.LocalQueue, Action: change.Removed},
		{Kind: "ClusterQueue", Name: team.Status.ClusterQueue, Action: change.Removed},
	}}
	if diff := cmp.Diff(want, departure); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	changed := team.DeepCopy()
	changed.Spec.DisplayName = "Somebody else's"
	must(t, w.Update(t.Context(), w.admin, changed, nil))
	kind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion}), governance.Conflict)
	now := w.settled(t, team.Name)
	must(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: now.ResourceVersion}))
	w.goes(t, team.Name)
	kind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: now.ResourceVersion}), governance.NotFound)
}

// A team whose tasks run goes only when they are drained.
func TestDeleteBusy(t *testing.T) {
	w := setup(t)
	team := w.team(t, "busy", gpus(2))
	w.runs(t, team.Name, "long", 1)
	departure, err := w.PreviewDeletion(t.Context(), w.admin, team.Name)
	must(t, err)
	if diff := cmp.Diff([]allocations.Task{{Namespace: team.Status.Namespace, Kind: "Job", Name: "long"}}, departure.Running); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	kind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion}), governance.Invalid, "1 of its tasks is running")
	if now := w.settled(t, team.Name); now.DeletionTimestamp != nil || now.Annotations[drained] != "" {
		t.Errorf("a refusal changed it: %+v", now.ObjectMeta)
	}
	must(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion, Drain: true}))
	w.goes(t, team.Name)
}
