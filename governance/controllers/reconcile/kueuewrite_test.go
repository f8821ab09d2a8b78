package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// otherKueue is a second installation of Kueue that never runs. Its policies are
// not stored, because the running controllers would reconcile them.
type otherKueue struct {
	*clustertest.Cluster
	namespace string
}

const (
	idAnnotation       = "kuota.dev/configuration"
	emptyConfiguration = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
)

// newOtherKueue creates a Kueue whose pods match no node.
func newOtherKueue(t *testing.T, c *clustertest.Cluster, replicas int32) otherKueue {
	t.Helper()
	k := otherKueue{c, clustertest.Name("kueue-elsewhere")}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "config"}}
	config.Data = map[string]string{"controller_manager_config.yaml": emptyConfiguration}
	one := int32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "manager"}}
	deployment.Spec.Replicas, deployment.Spec.ProgressDeadlineSeconds = &replicas, &one
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kueue"}}
	deployment.Spec.Template.Labels = map[string]string{"app": "kueue"}
	deployment.Spec.Template.Spec.NodeSelector = map[string]string{"no-node": "has-this"}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "example.com/kueue:v0.19.2"}}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}, config, deployment} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k otherKueue) config(t *testing.T) (config corev1.ConfigMap) {
	t.Helper()
	if err := k.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "config"}, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func (k otherKueue) deployment(t *testing.T) (deployment appsv1.Deployment) {
	t.Helper()
	if err := k.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "manager"}, &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// edit patches the Deployment, so that writes of Kubernetes do not conflict.
func (k otherKueue) edit(t *testing.T, deployment *appsv1.Deployment, change func()) {
	t.Helper()
	before := deployment.DeepCopy()
	change()
	if err := k.Client.Patch(t.Context(), deployment, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// reconciler returns a KueueReconciler for this Kueue that acts as a user, and for
// which the API server has the policy stored.
func (k otherKueue) reconciler(t *testing.T, as *rest.Config, stored v1alpha1.ClusterPolicySpec, manage bool) *reconcile.KueueReconciler {
	t.Helper()
	console, err := client.New(as, client.Options{Scheme: k.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return reconcile.NewReconcilers(console, withPolicy{console, unstored(stored)}, events.NewFakeRecorder(10), reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.KueueInstall{
		Namespace: k.namespace, ConfigMap: "config", Deployment: "manager", Manage: manage,
	}}).Kueue
}

func unstored(spec v1alpha1.ClusterPolicySpec) *v1alpha1.ClusterPolicy {
	return &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName, UID: "unstored", Generation: 7}, Spec: spec}
}

// withPolicy is a reader that returns this policy and reads all other objects.
type withPolicy struct {
	client.Reader
	policy *v1alpha1.ClusterPolicy
}

func (r withPolicy) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if policy, ok := object.(*v1alpha1.ClusterPolicy); ok {
		r.policy.DeepCopyInto(policy)
		return nil
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// reconcileTo reconciles a policy, and fails the test unless the condition has this
// reason and text. It retries conflicts with writes of Kubernetes to the Deployment,
// as the controller does.
func reconcileTo(t *testing.T, kueue *reconcile.KueueReconciler, policy *v1alpha1.ClusterPolicy, reason, text string) *v1alpha1.KueueStatus {
	t.Helper()
	var state metav1.Condition
	var seen *v1alpha1.KueueStatus
	var err error
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if state, seen, err = kueue.ReconcileConfiguration(ctx, policy); apierrors.IsConflict(err) {
			return err
		}
		return nil
	})
	if err != nil || state.Reason != reason || !strings.Contains(state.Message, text) {
		t.Fatalf("condition %+v (%v), want %s with %q", state, err, reason, text)
	}
	return seen
}

func fairSharePolicy() v1alpha1.ClusterPolicySpec {
	spec := ranking()
	spec.IdleCompute.Strategy = v1alpha1.IdleFairShare
	return spec
}

// A console with a stalled watch has an old policy. It must not revert the
// configuration that another console wrote since.
func TestOldPolicyIsNotApplied(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 0)
	kueue := other.reconciler(t, c.Config, fairSharePolicy(), true)
	older, another := unstored(ranking()), unstored(ranking())
	older.Generation--
	another.UID = "deleted since"
	before := other.config(t)
	for name, policy := range map[string]*v1alpha1.ClusterPolicy{"an older generation": older, "a deleted policy": another} {
		reconcileTo(t, kueue, policy, "Applying", "the policy changed")
		if after := other.config(t); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was applied:\n%s", name, after.Data)
		}
	}
	kueue.APIReader = c.Client // without the policy, or with that of another test
	reconcileTo(t, kueue, older, "Applying", "the policy changed")
	if after := other.config(t); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a policy that does not exist was applied:\n%s", after.Data)
	}
}

// Each write of the configuration restarts Kueue, also if the text is one that was
// written before. A restart that was interrupted is completed, and nothing is
// written again without a change.
func TestEveryWriteRestartsKueue(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 0)
	kueue, policy := other.reconciler(t, c.Config, fairSharePolicy(), true), unstored(fairSharePolicy())
	reconcileTo(t, kueue, policy, "Restarting", "")
	reconcileTo(t, kueue, policy, "NotRunning", "0 replicas")
	config, deployment := other.config(t), other.deployment(t)
	id := config.Annotations[idAnnotation]
	if id == "" || deployment.Spec.Template.Annotations[idAnnotation] != id {
		t.Fatalf("the ConfigMap has ID %q, and Kueue runs with %q", id, deployment.Spec.Template.Annotations[idAnnotation])
	}

	put := config.DeepCopy() // reverted by an admin who restarts Kueue and keeps the annotations
	put.Data["controller_manager_config.yaml"] = emptyConfiguration
	if err := c.Client.Update(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	reconcileTo(t, kueue, policy, "Restarting", "")
	again := other.config(t)
	if again.Data["controller_manager_config.yaml"] != config.Data["controller_manager_config.yaml"] || again.Annotations[idAnnotation] == id {
		t.Errorf("the configuration is not written again with another ID than %s: %+v", id, again)
	}
	restarted := other.deployment(t)
	if restarted.Spec.Template.Annotations[idAnnotation] != again.Annotations[idAnnotation] || restarted.Generation == deployment.Generation {
		t.Error("Kueue was not restarted")
	}

	other.edit(t, &restarted, func() { delete(restarted.Spec.Template.Annotations, idAnnotation) })
	reconcileTo(t, kueue, policy, "Restarting", "")
	reconcileTo(t, kueue, policy, "NotRunning", "")
	if now := other.deployment(t); now.Spec.Template.Annotations[idAnnotation] != again.Annotations[idAnnotation] || now.Generation != restarted.Generation+1 {
		t.Errorf("want one restart with the ID of the ConfigMap: %+v", now.ObjectMeta)
	}
	if now := other.config(t); now.ResourceVersion != again.ResourceVersion {
		t.Error("the configuration was written without a change")
	}
}

// What another writer changes back is changed twice, and then once an hour, also by another
// replica; at once after a change of the policy, and when a person asks for it.
func TestOtherWriter(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 0)
	now := time.Now()
	clock := func() time.Time { return now }
	kueue, policy := other.reconciler(t, c.Config, fairSharePolicy(), true), unstored(fairSharePolicy())
	kueue.Now = clock
	operator, err := client.New(c.Config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	revert := func() {
		t.Helper()
		config := other.config(t)
		config.Data["controller_manager_config.yaml"] = emptyConfiguration
		if err := operator.Update(t.Context(), &config, client.FieldOwner("kueue-operator")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
	}
	restarts := func(want int64, when string) {
		t.Helper()
		if got := other.deployment(t).Generation - 1; got != want {
			t.Errorf("%s Kueue was restarted %d times, want %d", when, got, want)
		}
	}
	for range 2 {
		reconcileTo(t, kueue, policy, "Restarting", "")
		revert()
	}
	for range 3 {
		if seen := reconcileTo(t, kueue, policy, "Reverted", "another writer, kueue-operator, changed Kueue's configuration back after 2 of Kuota's changes; the next one is at "); !strings.Contains(seen.Patch, "fairSharing") {
			t.Errorf("the patch is %q", seen.Patch)
		}
		revert()
	}
	restarts(2, "after two attempts")
	replica := other.reconciler(t, c.Config, fairSharePolicy(), true)
	replica.Now = clock
	reconcileTo(t, replica, policy, "Reverted", "after 2 of")

	now = now.Add(time.Hour)
	reconcileTo(t, replica, policy, "Restarting", "")
	revert()
	reconcileTo(t, replica, policy, "Reverted", "after 3 of")
	restarts(3, "after an hour")

	future := policy.DeepCopy()
	future.Annotations = map[string]string{v1alpha1.AnnotationTryAgain: "2099-01-01T00:00:00Z"}
	reconcileTo(t, replica, future, "Reverted", "after 3 of")

	asked := policy.DeepCopy()
	asked.Annotations = map[string]string{v1alpha1.AnnotationTryAgain: now.Add(time.Second).Format(time.RFC3339)}
	now = now.Add(2 * time.Second)
	reconcileTo(t, replica, asked, "Restarting", "")
	revert()
	restarts(4, "when a person asks")

	saved := fairSharePolicy()
	saved.GangScheduling.Enabled = true
	replica = other.reconciler(t, c.Config, saved, true)
	replica.Now = clock
	changed := unstored(saved)
	changed.Generation++
	replica.APIReader = withPolicy{c.Client, changed}
	reconcileTo(t, replica, changed, "Restarting", "")
	restarts(5, "after a change of the policy")
	revert()

	created := unstored(fairSharePolicy()) // of the generation of the first one
	created.UID = "created again"
	replica = other.reconciler(t, c.Config, fairSharePolicy(), true)
	replica.Now, replica.APIReader = clock, withPolicy{c.Client, created}
	reconcileTo(t, replica, created, "Restarting", "")
	restarts(6, "after the policy was created again")
}

// What a GitOps tool or an operator applies is never changed.
func TestKueueIsManagedElsewhere(t *testing.T) {
	c := setup(t)
	for name, tc := range map[string]struct {
		own  func(o *metav1.ObjectMeta, operator client.Object)
		want string
	}{
		"Flux": {func(o *metav1.ObjectMeta, _ client.Object) {
			o.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "kueue"}
		}, "managed by Flux (Kustomization kueue)"},
		"operator": {func(o *metav1.ObjectMeta, operator client.Object) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: operator.GetName(), UID: operator.GetUID(), Controller: new(true)}}
		}, "managed by ConfigMap kueue-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := newOtherKueue(t, c, 0)
			operator := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other.namespace, Name: "kueue-operator"}}
			if err := c.Client.Create(t.Context(), operator); err != nil {
				t.Fatal(err)
			}
			config := other.config(t)
			tc.own(&config.ObjectMeta, operator)
			if err := c.Client.Update(t.Context(), &config); err != nil {
				t.Fatal(err)
			}
			kueue, policy := other.reconciler(t, c.Config, fairSharePolicy(), true), unstored(fairSharePolicy())
			if seen := reconcileTo(t, kueue, policy, "ManagedElsewhere", tc.want); !strings.Contains(seen.Patch, "fairSharing") {
				t.Errorf("the patch is %q", seen.Patch)
			}
			if restart, patch, err := kueue.Plan(t.Context(), &policy.Spec); restart || patch == "" || err != nil {
				t.Errorf("the review says restart %t, patch %q, %v", restart, patch, err)
			}
			if now := other.deployment(t); now.Generation != 1 {
				t.Error("Kueue was restarted")
			}
		})
	}
}

// A Kueue that does not become ready is reported, and no longer as restarting.
func TestKueueDoesNotBecomeReady(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 1)
	kueue, policy := other.reconciler(t, c.Config, fairSharePolicy(), true), unstored(fairSharePolicy())
	reconcileTo(t, kueue, policy, "Restarting", "")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		state, _, err := kueue.ReconcileConfiguration(ctx, policy)
		if state.Status != metav1.ConditionFalse || state.Reason != "NotStarting" || !strings.Contains(state.Message, "does not become ready") || !strings.Contains(state.Message, other.namespace+"/manager") {
			return errors.Join(err, fmt.Errorf("condition %+v, want NotStarting", state))
		}
		return err
	})
}

// A console that may change the configuration but not the Deployment reports the
// command that restarts Kueue, and detects the restart.
func TestKueueIsRestartedManually(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 0)
	letConsole(t, c, other.namespace, []string{"get", "update"}, []string{"get"})
	kueue, policy := other.reconciler(t, c.Console, fairSharePolicy(), true), unstored(fairSharePolicy())
	var seen *v1alpha1.KueueStatus
	for range 2 {
		seen = reconcileTo(t, kueue, policy, "Differs", "must be restarted")
	}
	_, command, found := strings.Cut(strings.TrimSpace(seen.Patch), "# kubectl ")
	if !found || !strings.Contains(command, "--namespace "+other.namespace+" patch deployment manager") {
		t.Fatalf("no restart command in\n%s", seen.Patch)
	}
	_, patch, _ := strings.Cut(command, "--patch ")
	deployment := other.deployment(t)
	if err := c.Client.Patch(t.Context(), &deployment, client.RawPatch("application/strategic-merge-patch+json", []byte(strings.Trim(patch, "'")))); err != nil {
		t.Fatal(err)
	}
	reconcileTo(t, kueue, policy, "NotRunning", "0 replicas")

	unmanaged := other.reconciler(t, c.Console, ranking(), false)
	spec := fairSharePolicy()
	spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	if seen := reconcileTo(t, unmanaged, unstored(spec), "Differs", "keeps this console from changing"); !strings.Contains(seen.Patch, "kubectl --namespace "+other.namespace+" rollout restart deployment manager") {
		t.Errorf("the patch has no restart command for this Kueue:\n%s", seen.Patch)
	}
}

// A Kueue whose feature gates are unknown affects gang scheduling, not fair sharing.
func TestUnknownFeatureGate(t *testing.T) {
	c := setup(t)
	var fairShare, gang metav1.Condition
	for name, image := range map[string]string{"no version": "example.com/kueue:main", "a later version": "example.com/kueue:v0.23.0"} {
		other := newOtherKueue(t, c, 1)
		kueue, policy := other.reconciler(t, c.Config, fairSharePolicy(), true), unstored(fairSharePolicy())
		deployment := other.deployment(t)
		other.edit(t, &deployment, func() {
			deployment.Spec.Template.Spec.Containers[0].Image = image
			deployment.Spec.Template.Spec.NodeSelector = nil
		})
		clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
			if fairShare, gang, err = kueue.Components(ctx, policy); fairShare.Status != metav1.ConditionTrue {
				return errors.Join(err, fmt.Errorf("fair share is %+v", fairShare))
			}
			return err
		})
		if gang.Status != metav1.ConditionFalse || gang.Reason != "Cannot" || !strings.Contains(gang.Message, "is not added") {
			t.Errorf("%s: gang scheduling is %+v", name, gang)
		}
	}
}
