package allocations_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/audit"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// An update is saved, a concurrent change of another user is not overwritten, and
// a repeated update succeeds. What it does to the queue is recorded by the verb of its button.
func TestUpdate(t *testing.T) {
	w := setup(t)
	read := w.team(t, "update", gpus(2))

	edited := read.DeepCopy()
	edited.Spec = gpus(4)
	must(t, w.Update(t.Context(), w.admin, edited, nil))
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
		t.Errorf("the update changed more than the spec: %+v", saved)
	}

	must(t, w.Update(t.Context(), w.admin, edited, nil)) // as after a lost response
	stale := read.DeepCopy()
	stale.Spec = gpus(1)
	wantKind(t, w.Update(t.Context(), w.admin, stale, nil), governance.Conflict)
	_, err := w.Review(t.Context(), w.admin, stale, nil)
	wantKind(t, err, governance.Conflict)
	if now := w.settled(t, read.Name); now.Generation != saved.Generation {
		t.Error("the conflicting update changed the allocation")
	}

	stale.ResourceVersion = "1" // older than every version in etcd
	wantKind(t, w.Update(t.Context(), w.admin, stale, nil), governance.Conflict)
	invalid := saved.DeepCopy()
	invalid.Spec.Quota[0].InstanceType = "ml.g5.2xlarg"
	wantKind(t, w.Update(t.Context(), w.admin, invalid, nil), governance.Invalid, "spec.quota[0].instanceType", "did you mean")
	invalid = saved.DeepCopy()
	invalid.Spec.Namespace = "elsewhere"
	wantKind(t, w.Update(t.Context(), w.admin, invalid, nil), governance.Invalid, "spec")
	missing := saved.DeepCopy()
	missing.Name = "missing"
	wantKind(t, w.Update(t.Context(), w.admin, missing, nil), governance.NotFound)

	var log bytes.Buffer
	w.Audit = &audit.Recorder{Cluster: w.Audit.Cluster, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, activation := range []v1alpha1.Activation{v1alpha1.Hold, v1alpha1.Drain, v1alpha1.Active} {
		changed := w.settled(t, read.Name)
		changed.Spec.Activation = activation
		v1alpha1.SetReason(&changed, "because")
		must(t, w.Update(t.Context(), w.admin, &changed, nil))
	}
	want := []string{"action=hold", "action=drain", "action=resume"}
	if diff := cmp.Diff(want, regexp.MustCompile(`action=\S+`).FindAllString(log.String(), -1)); diff != "" || strings.Count(log.String(), "reason=because") != len(want) {
		t.Errorf("recorded (-want +got):\n%s\n%s", diff, &log)
	}
}

// A status that the controllers wrote while a form was open is no conflict.
func TestStatusUpdateIsNoConflict(t *testing.T) {
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

// After a rollback the CRD has a field that the console does not know. An update keeps
// its value.
func TestUpdateKeepsFieldsOfANewerCRD(t *testing.T) {
	w := setup(t)
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/next"
	patchCRD := func(patch string) {
		w.Kubectl(t, "", "patch", "crd", "computeallocations.kuota.dev", "--type=json", "-p", patch)
	}
	patchCRD(`[{"op": "add", "path": "` + field + `", "value": {"type": "string"}}]`)
	t.Cleanup(func() { patchCRD(`[{"op": "remove", "path": "` + field + `"}]`) })
	team := w.team(t, "newer", gpus(1))
	next := func() string {
		return w.Kubectl(t, "", "get", "computeallocation", team.Name, "-o", "jsonpath={.spec.next} {.spec.displayName}")
	}
	clustertest.Eventually(t, soon, func(context.Context) error { // until the API server uses the new schema
		w.Kubectl(t, "", "patch", "computeallocation", team.Name, "--type=merge", "-p", `{"spec": {"next": "kept"}}`)
		if got := next(); got != "kept " {
			return fmt.Errorf("the new field and the name are %q", got)
		}
		return nil
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		read, err := w.Find(ctx, w.admin, team.Name)
		if err == nil {
			read.Spec.DisplayName = "New"
			err = w.Update(ctx, w.admin, &read, nil)
		}
		return err
	})
	if got := next(); got != "kept New" {
		t.Errorf("after the update the new field and the name are %q, want kept New", got)
	}
}

// A member sees their team and may not change it. A user outside all teams cannot
// find out whether a team exists.
func TestPermissions(t *testing.T) {
	w := setup(t)
	team := w.team(t, "rights", gpus(1))
	w.Kubectl(t, "", "create", "rolebinding", "member", "-n", team.Status.Namespace, "--clusterrole=kuota-team-member", "--user="+w.member.Name)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := w.Find(ctx, w.member, team.Name)
		return err
	})
	if may, err := w.May(t.Context(), w.member); err != nil || may.Create || may.Update || may.Delete {
		t.Errorf("permissions of a member: %+v, %v", may, err)
	}
	if may, err := w.May(t.Context(), w.admin); err != nil || !may.Create || !may.Update || !may.Delete {
		t.Errorf("permissions of an admin: %+v, %v", may, err)
	}
	changed := team.DeepCopy()
	changed.Spec = gpus(8)
	wantKind(t, w.Update(t.Context(), w.member, changed, nil), governance.Forbidden)
	_, err := w.Review(t.Context(), w.member, changed, nil)
	wantKind(t, err, governance.Forbidden)
	wantKind(t, w.Delete(t.Context(), w.member, team.Name, allocations.Deletion{ResourceVersion: team.ResourceVersion, Drain: true}), governance.Forbidden)
	_, err = w.PreviewDeletion(t.Context(), w.member, team.Name)
	wantKind(t, err, governance.Forbidden)
	if after := w.settled(t, team.Name); after.Generation != team.Generation || after.Annotations[v1alpha1.AnnotationDrain] != "" {
		t.Errorf("a member changed the allocation: %+v", after.ObjectMeta)
	}

	other := w.team(t, "other", gpus(1))
	_, err = w.Find(t.Context(), w.member, other.Name)
	wantKind(t, err, governance.NotFound)
	_, err = w.Find(t.Context(), w.member, "missing")
	wantKind(t, err, governance.NotFound)
	_, err = w.Find(t.Context(), governance.User{Name: "stranger"}, team.Name)
	wantKind(t, err, governance.Outside)
}

// Users who may change allocations but see no tasks find every team, and its tasks
// without their names.
func TestInvisibleTasksHaveNoNames(t *testing.T) {
	w := setup(t)
	team := w.team(t, "private", gpus(1))
	w.runTask(t, team.Name, "secret", 1)
	name := clustertest.Name("clerk")
	clerk := governance.User{Name: name + "@example.com", Groups: []string{name}}
	w.Kubectl(t, "", "create", "clusterrole", name, "--verb=get,create,update,delete", "--resource=computeallocations.kuota.dev")
	w.Kubectl(t, "", "create", "clusterrolebinding", name, "--clusterrole="+name, "--group="+name)
	t.Cleanup(func() { _, _ = w.TryKubectl("", "delete", "clusterrole,clusterrolebinding", name) })
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := w.Find(ctx, clerk, team.Name)
		return err
	})
	preview, err := w.PreviewDeletion(t.Context(), clerk, team.Name)
	must(t, err)
	if len(preview.Running) != 1 || preview.Running[0].Name != "" {
		t.Errorf("running tasks that a clerk sees: %+v", preview.Running)
	}
	drained := team.DeepCopy()
	drained.Spec.Activation = v1alpha1.Drain
	review, err := w.Review(t.Context(), clerk, drained, nil)
	must(t, err)
	if len(review.Evicted) != 1 || review.Evicted[0].Name != "" {
		t.Errorf("evicted tasks that a clerk sees: %+v", review.Evicted)
	}
}
