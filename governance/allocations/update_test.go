package allocations_test

import (
	"context"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// What was read and changed is saved, what somebody else saved in between is
// not overwritten, and the same save sent again is success.
func TestUpdate(t *testing.T) {
	w := setup(t)
	read := w.team(t, "update", gpus(2))

	mine := read.DeepCopy()
	mine.Spec = gpus(4)
	must(t, w.Update(t.Context(), w.admin, mine, nil))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := w.Client.Get(ctx, client.ObjectKey{Name: read.Status.ClusterQueue}, &queue); err != nil {
			return err
		}
		if got := queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota; got.Value() != 4 {
			return fmt.Errorf("the queue has %s GPUs", got.String())
		}
		return nil
	})
	saved := w.settled(t, read.Name)
	if saved.Status.Namespace != read.Status.Namespace || len(saved.Finalizers) != 1 {
		t.Errorf("saving touched more than the spec: %+v", saved)
	}

	must(t, w.Update(t.Context(), w.admin, mine, nil)) // its answer was lost
	theirs := read.DeepCopy()
	theirs.Spec = gpus(1)
	kind(t, w.Update(t.Context(), w.admin, theirs, nil), governance.Conflict)
	_, err := w.Review(t.Context(), w.admin, theirs, nil)
	kind(t, err, governance.Conflict)
	if now := w.settled(t, read.Name); now.Generation != saved.Generation {
		t.Error("a conflict wrote something")
	}

	theirs.ResourceVersion = "1" // older than anything that is remembered
	kind(t, w.Update(t.Context(), w.admin, theirs, nil), governance.Conflict)
	wrong := saved.DeepCopy()
	wrong.Spec.Quota[0].InstanceType = "ml.g5.2xlarg"
	kind(t, w.Update(t.Context(), w.admin, wrong, nil), governance.Invalid, "spec.quota[0].instanceType", "did you mean")
	wrong = saved.DeepCopy()
	wrong.Spec.Namespace = "elsewhere"
	kind(t, w.Update(t.Context(), w.admin, wrong, nil), governance.Invalid, "spec")
	missing := saved.DeepCopy()
	missing.Name = "nobody-knows"
	kind(t, w.Update(t.Context(), w.admin, missing, nil), governance.NotFound)
}

// A form that was open while the controllers wrote the status is no conflict.
func TestStatusIsNoConflict(t *testing.T) {
	w := setup(t)
	read := w.team(t, "status", gpus(1))
	var live v1alpha1.ComputeAllocation
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: read.Name}, &live))
	meta.SetStatusCondition(&live.Status.Conditions, metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue, Reason: "Test"})
	must(t, w.Client.Status().Update(t.Context(), &live))
	if live.ResourceVersion == read.ResourceVersion {
		t.Fatal("the status was not written")
	}
	read.Spec.DisplayName = "New"
	if _, err := w.Review(t.Context(), w.admin, &read, nil); err != nil {
		t.Errorf("review: %v", err)
	}
	must(t, w.Update(t.Context(), w.admin, &read, nil))
}

// A member sees their team, and may not touch it; a stranger does not even
// learn that it exists.
func TestPermissions(t *testing.T) {
	w := setup(t)
	team := w.team(t, "rights", gpus(1))
	w.Kubectl(t, "", "create", "rolebinding", "member", "-n", team.Status.Namespace, "--clusterrole=kuota-team-member", "--user="+w.member.Name)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := w.Find(ctx, w.member, team.Name)
		return err
	})
	if may, err := w.May(t.Context(), w.member); err != nil || may.Create || may.Update || may.Delete {
		t.Errorf("a member may: %+v, %v", may, err)
	}
	if may, err := w.May(t.Context(), w.admin); err != nil || !may.Create || !may.Update || !may.Delete {
		t.Errorf("an admin may: %+v, %v", may, err)
	}
	changed := team.DeepCopy()
	changed.Spec = gpus(8)
	kind(t, w.Update(t.Context(), w.member, changed, nil), governance.Forbidden)
	_, err := w.Review(t.Context(), w.member, changed, nil)
	kind(t, err, governance.Forbidden)
	kind(t, w.Delete(t.Context(), w.member, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion, Drain: true}), governance.Forbidden)
	_, err = w.PreviewDeletion(t.Context(), w.member, team.Name)
	kind(t, err, governance.Forbidden)
	if after := w.settled(t, team.Name); after.Generation != team.Generation || after.Annotations[drained] != "" {
		t.Errorf("a member changed it: %+v", after.ObjectMeta)
	}

	other := w.team(t, "other", gpus(1))
	_, err = w.Find(t.Context(), w.member, other.Name)
	kind(t, err, governance.NotFound)
	_, err = w.Find(t.Context(), w.member, "nobody-knows")
	kind(t, err, governance.NotFound)
	_, err = w.Find(t.Context(), governance.User{Name: "stranger"}, team.Name)
	kind(t, err, governance.Outside)
}

// Who may change allocations but see no tasks finds every team, and is told how
// much its tasks hold, without their names.
func TestTasksOfOthersHaveNoNames(t *testing.T) {
	w := setup(t)
	team := w.team(t, "private", gpus(1))
	w.runs(t, team.Name, "secret", 1)
	name := clustertest.Name("clerk")
	clerk := governance.User{Name: name + "@example.com", Groups: []string{name}}
	w.Kubectl(t, "", "create", "clusterrole", name, "--verb=get,create,update,delete", "--resource=computeallocations.kuota.dev")
	w.Kubectl(t, "", "create", "clusterrolebinding", name, "--clusterrole="+name, "--group="+name)
	t.Cleanup(func() { _, _ = w.TryKubectl("", "delete", "clusterrole,clusterrolebinding", name) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := w.Find(ctx, clerk, team.Name)
		return err
	})
	departure, err := w.PreviewDeletion(t.Context(), clerk, team.Name)
	must(t, err)
	if len(departure.Running) != 1 || departure.Running[0].Name != "" {
		t.Errorf("a clerk is told of %+v", departure.Running)
	}
	none := team.DeepCopy()
	none.Spec.Quota = nil
	review, err := w.Review(t.Context(), clerk, none, nil)
	must(t, err)
	if len(review.QuotaExcess) == 0 || review.QuotaExcess[0].Usage != 1 || review.QuotaExcess[0].Tasks[0].Name != "" {
		t.Errorf("a clerk is told of %+v", review.QuotaExcess)
	}
}
