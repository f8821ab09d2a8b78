package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/reconcile"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kueueElsewhere is another Kueue, which is configured and never runs. Its
// policies are not stored: the controllers that run here would see them.
type kueueElsewhere struct {
	*clustertest.Cluster
	namespace string
}

const (
	kueueMark = "kuota.dev/configuration"
	bareKueue = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
)

// elsewhere makes a Kueue whose pods find no node.
func elsewhere(t *testing.T, c *clustertest.Cluster, replicas int32) kueueElsewhere {
	t.Helper()
	k := kueueElsewhere{c, clustertest.Name("kueue-elsewhere")}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "config"}}
	config.Data = map[string]string{"controller_manager_config.yaml": bareKueue}
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

func (k kueueElsewhere) config(t *testing.T) (config corev1.ConfigMap) {
	t.Helper()
	if err := k.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "config"}, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func (k kueueElsewhere) deployment(t *testing.T) (deployment appsv1.Deployment) {
	t.Helper()
	if err := k.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "manager"}, &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// edit changes the Deployment, whatever Kubernetes writes into it meanwhile.
func (k kueueElsewhere) edit(t *testing.T, deployment *appsv1.Deployment, change func()) {
	t.Helper()
	before := deployment.DeepCopy()
	change()
	if err := k.Client.Patch(t.Context(), deployment, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// kueue is the controller of this Kueue, which acts as somebody, where the API
// server has this policy.
func (k kueueElsewhere) kueue(t *testing.T, as *rest.Config, stored v1alpha1.ClusterPolicySpec, manage bool) *reconcile.KueueReconciler {
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

// withPolicy reads the cluster as if it had this policy.
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

// looks wants a look at a policy to come to a reason and a text. Kubernetes
// writes the Deployment too: then the look is tried again, as Kuota does.
func looks(t *testing.T, kueue *reconcile.KueueReconciler, policy *v1alpha1.ClusterPolicy, reason, text string) *v1alpha1.KueueStatus {
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
		t.Fatalf("it says %+v (%v), want %s with %q", state, err, reason, text)
	}
	return seen
}

func fairly() v1alpha1.ClusterPolicySpec {
	spec := ranking()
	spec.IdleCompute.Strategy = v1alpha1.IdleFairShare
	return spec
}

// A console whose watch stalled has an old policy, and must not put back what
// another one has configured since.
func TestAnOldPolicyIsNotCarriedOut(t *testing.T) {
	c := setup(t)
	there := elsewhere(t, c, 0)
	kueue := there.kueue(t, c.Config, fairly(), true)
	older, another := unstored(ranking()), unstored(ranking())
	older.Generation--
	another.UID = "deleted since"
	before := there.config(t)
	for name, policy := range map[string]*v1alpha1.ClusterPolicy{"an older one": older, "another one": another} {
		looks(t, kueue, policy, "Applying", "the policy changed")
		if after := there.config(t); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was carried out:\n%s", name, after.Data)
		}
	}
	kueue.APIReader = c.Client // there is none at all, or one of another test
	looks(t, kueue, older, "Applying", "the policy changed")
	if after := there.config(t); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a policy that is gone was carried out:\n%s", after.Data)
	}
}

// Each write restarts Kueue, also when it writes what stood there before; a
// stop between the two writes is finished; and nothing happens without need.
func TestEveryWriteRestartsKueue(t *testing.T) {
	c := setup(t)
	there := elsewhere(t, c, 0)
	kueue, policy := there.kueue(t, c.Config, fairly(), true), unstored(fairly())
	looks(t, kueue, policy, "Restarting", "")
	looks(t, kueue, policy, "NotRunning", "0 replicas")
	config, deployment := there.config(t), there.deployment(t)
	mark := config.Annotations[kueueMark]
	if mark == "" || deployment.Spec.Template.Annotations[kueueMark] != mark {
		t.Fatalf("the ConfigMap is marked %q, and Kueue runs with %q", mark, deployment.Spec.Template.Annotations[kueueMark])
	}

	put := config.DeepCopy() // back, by somebody who restarts Kueue, and keeps the annotations
	put.Data["controller_manager_config.yaml"] = bareKueue
	if err := c.Client.Update(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	looks(t, kueue, policy, "Restarting", "")
	again := there.config(t)
	if again.Data["controller_manager_config.yaml"] != config.Data["controller_manager_config.yaml"] || again.Annotations[kueueMark] == mark {
		t.Errorf("it is not written anew, with another mark than %s: %+v", mark, again)
	}
	restarted := there.deployment(t)
	if restarted.Spec.Template.Annotations[kueueMark] != again.Annotations[kueueMark] || restarted.Generation == deployment.Generation {
		t.Error("Kueue was not restarted")
	}

	there.edit(t, &restarted, func() { delete(restarted.Spec.Template.Annotations, kueueMark) })
	looks(t, kueue, policy, "Restarting", "")
	looks(t, kueue, policy, "NotRunning", "")
	if now := there.deployment(t); now.Spec.Template.Annotations[kueueMark] != again.Annotations[kueueMark] || now.Generation != restarted.Generation+1 {
		t.Errorf("the restart was not finished once: %+v", now.ObjectMeta)
	}
	if now := there.config(t); now.ResourceVersion != again.ResourceVersion {
		t.Error("the configuration was written without need")
	}
}

// A Kueue that does not become ready is not being restarted for ever.
func TestKueueThatDoesNotComeUp(t *testing.T) {
	c := setup(t)
	there := elsewhere(t, c, 1)
	kueue, policy := there.kueue(t, c.Config, fairly(), true), unstored(fairly())
	looks(t, kueue, policy, "Restarting", "")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		state, _, err := kueue.ReconcileConfiguration(ctx, policy)
		if state.Status != metav1.ConditionFalse || state.Reason != "NotStarting" || !strings.Contains(state.Message, "does not become ready") || !strings.Contains(state.Message, there.namespace+"/manager") {
			return errors.Join(err, fmt.Errorf("it says %+v", state))
		}
		return err
	})
}

// Where the console may configure Kueue and not restart it, it says so, and
// sees when somebody did.
func TestKueueIsRestartedByHand(t *testing.T) {
	c := setup(t)
	there := elsewhere(t, c, 0)
	letConsole(t, c, there.namespace, []string{"get", "update"}, []string{"get"})
	kueue, policy := there.kueue(t, c.Console, fairly(), true), unstored(fairly())
	var seen *v1alpha1.KueueStatus
	for range 2 {
		seen = looks(t, kueue, policy, "Differs", "must be restarted")
	}
	_, command, found := strings.Cut(strings.TrimSpace(seen.Patch), "# kubectl ")
	if !found || !strings.Contains(command, "--namespace "+there.namespace+" patch deployment manager") {
		t.Fatalf("the command is in\n%s", seen.Patch)
	}
	_, patch, _ := strings.Cut(command, "--patch ")
	deployment := there.deployment(t)
	if err := c.Client.Patch(t.Context(), &deployment, client.RawPatch("application/strategic-merge-patch+json", []byte(strings.Trim(patch, "'")))); err != nil {
		t.Fatal(err)
	}
	looks(t, kueue, policy, "NotRunning", "0 replicas")

	told := there.kueue(t, c.Console, ranking(), false)
	spec := fairly()
	spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	if seen := looks(t, told, unstored(spec), "Differs", "keeps this console from changing"); !strings.Contains(seen.Patch, "kubectl --namespace "+there.namespace+" rollout restart deployment manager") {
		t.Errorf("the patch names another Kueue:\n%s", seen.Patch)
	}
}

// What of gang scheduling cannot be configured is no matter of fair share.
func TestGateThatKuotaDoesNotKnow(t *testing.T) {
	c := setup(t)
	var fairShare, gang metav1.Condition
	for name, image := range map[string]string{"no version": "example.com/kueue:main", "a later version": "example.com/kueue:v0.23.0"} {
		there := elsewhere(t, c, 1)
		kueue, policy := there.kueue(t, c.Config, fairly(), true), unstored(fairly())
		deployment := there.deployment(t)
		there.edit(t, &deployment, func() {
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
			t.Errorf("with %s gang scheduling is %+v", name, gang)
		}
	}
}
