package allocations_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/change"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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
		{Kind: "RoleBinding", Name: "kuota-elastic", Action: change.Removed},
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
	counts, err := w.TaskCounts(t.Context(), w.admin, []v1alpha1.ComputeAllocation{team})
	must(t, err)
	if diff := cmp.Diff(map[string]allocations.TaskCounts{team.Name: {Running: 1}}, counts); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	_, err = w.TaskCounts(t.Context(), w.member, []v1alpha1.ComputeAllocation{team})
	wantKind(t, err, governance.Forbidden)
	wantKind(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion}), governance.Invalid, "1 of its tasks is running")
	if now := w.settled(t, team.Name); now.DeletionTimestamp != nil || now.Annotations[v1alpha1.AnnotationDrain] != "" {
		t.Errorf("the rejected deletion changed the allocation: %+v", now.ObjectMeta)
	}
	must(t, w.Delete(t.Context(), w.admin, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion, Drain: true}))
	w.waitDeleted(t, team.Name)
}

// A team with an adopted ClusterQueue is released while its tasks are running: the
// queues stay without Kuota's labels, and the tasks continue.
func TestReleaseTeam(t *testing.T) {
	w := setup(t)
	w.team(t, "flavor", gpus(1)) // creates the ResourceFlavor
	team := clustertest.Name("theirs")
	namespace, local := w.Naming.Namespace(team), w.Naming.LocalQueue(team)
	w.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors: [{name: ml.g5.2xlarge, resources: [{name: cpu, nominalQuota: 8}, {name: memory, nominalQuota: 32Gi}, {name: nvidia.com/gpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[3]s, namespace: %[2]s}
spec: {clusterQueue: %[1]s}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: %[1]s}
spec:
  clusterQueueName: %[1]s
  localQueueName: %[3]s
  namespace: %[2]s
  cohortName: ""
  coveredResources: [cpu, memory, nvidia.com/gpu]
  fairShareWeight: 1
  sharing: {unlimited: true}
  preemption: {withinTeam: Never, reclaimWithinCohort: Never, borrowWithinCohort: Never}
  quota: [{instanceType: ml.g5.2xlarge, accelerators: 1, vCPU: 8, memory: 32Gi}]
`, team, namespace, local))
	t.Cleanup(func() {
		w.deleteTeam(team)
		_, _ = w.TryKubectl("", "delete", "clusterqueue", team, "--wait=false")
	})
	now := w.settled(t, team)
	w.runTask(t, team, "long", 1)
	queue := func() (q kueue.ClusterQueue) {
		t.Helper()
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: team}, &q))
		return q
	}
	if q := queue(); q.Labels[desired.LabelTeam] != team {
		t.Fatalf("the ClusterQueue is not adopted: %v", q.Labels)
	}
	wantKind(t, w.Delete(t.Context(), w.member, team, allocations.Deletion{ResourceVersion: now.ResourceVersion, Release: true}), governance.Forbidden)
	must(t, w.Delete(t.Context(), w.admin, team, allocations.Deletion{ResourceVersion: now.ResourceVersion, Release: true}))
	w.waitDeleted(t, team)
	if q := queue(); q.DeletionTimestamp != nil || len(q.Labels) > 0 || q.Generation != 1 || q.Status.AdmittedWorkloads != 1 {
		t.Errorf("after the release: labels %v, generation %d, %d admitted workloads, deletion %v", q.Labels, q.Generation, q.Status.AdmittedWorkloads, q.DeletionTimestamp)
	}
}
