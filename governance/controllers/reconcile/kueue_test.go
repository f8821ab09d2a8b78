package reconcile_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// kueueText returns Kueue's configuration from the cluster.
func kueueText(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	var config corev1.ConfigMap
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "kueue-system", Name: "kueue-manager-config"}, &config); err != nil {
		t.Fatal(err)
	}
	return config.Data["controller_manager_config.yaml"]
}

// fairSharing matches that section of Kueue's configuration.
var fairSharing = regexp.MustCompile(`(?m)^fairSharing:.*\n(?:[ ].*\n?)*`)

// sharesFairly waits until Kueue's fair sharing is on or off: Kueue reports the
// share of a queue only while it is on.
func sharesFairly(t *testing.T, c *clustertest.Cluster, team string, want bool) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); err != nil {
			return err
		}
		if got := queue.Status.FairSharing != nil; got != want {
			return fmt.Errorf("Kueue reports a fair share: %v, want %v", got, want)
		}
		return nil
	})
}

// Fair sharing and gang scheduling apply to the running Kueue. All other lines of
// its configuration stay, a manual change of the two is corrected, and other
// changes of the policy do not restart Kueue.
func TestPolicyConfiguresKueue(t *testing.T) {
	c := setup(t)
	before := kueueText(t, c)
	team := clustertest.Name("kueue")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	spec := ranking()
	setPolicy(t, c, spec) // fair share is the default
	policyIs(t, c, v1alpha1.ConditionFairShare, metav1.ConditionTrue, "weights")
	policyIs(t, c, v1alpha1.ConditionGangScheduling, metav1.ConditionTrue, "does not wait")
	sharesFairly(t, c, team, true)
	text := kueueText(t, c)
	for line := range strings.Lines(before) {
		if !strings.Contains(text, line) {
			t.Errorf("Kueue's configuration lost the line %q", line)
		}
	}

	var config corev1.ConfigMap
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "kueue-system", Name: "kueue-manager-config"}, &config); err != nil {
		t.Fatal(err)
	}
	config.Data["controller_manager_config.yaml"] = fairSharing.ReplaceAllString(text, "")
	if config.Data["controller_manager_config.yaml"] == text {
		t.Fatalf("no section fairSharing in\n%s", text)
	}
	if err := c.Client.Update(t.Context(), &config); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if !strings.Contains(kueueText(t, c), "LessThanOrEqualToFinalShare") {
			return fmt.Errorf("the section fairSharing is still missing")
		}
		return nil
	})

	spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	spec.GangScheduling = v1alpha1.GangScheduling{Enabled: true, Timeout: &metav1.Duration{Duration: 7 * time.Minute}, RecoveryTimeout: &metav1.Duration{Duration: time.Minute}}
	setPolicy(t, c, spec)
	policyIs(t, c, v1alpha1.ConditionFairShare, metav1.ConditionTrue, "first come, first served")
	policyIs(t, c, v1alpha1.ConditionGangScheduling, metav1.ConditionTrue, "start together")
	sharesFairly(t, c, team, false)
	if text := kueueText(t, c); !strings.Contains(text, "timeout: 7m0s") {
		t.Errorf("gang scheduling is not configured:\n%s", text)
	}
	spec.GangScheduling.Enabled = false
	setPolicy(t, c, spec)
	policyIs(t, c, v1alpha1.ConditionGangScheduling, metav1.ConditionTrue, "does not wait")

	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: "kueue-system", Name: "kueue-controller-manager"}
	if err := c.Client.Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	generation := deployment.Generation
	spec.Enforcement = v1alpha1.RequireQueue
	setPolicy(t, c, spec)
	policyIs(t, c, v1alpha1.ConditionFairShare, metav1.ConditionTrue, "")
	if err := c.Client.Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Generation != generation {
		t.Error("a change that does not concern Kueue restarted it")
	}
}

// With --manage-kueue=false or without permission, Kueue's configuration stays, and
// the policy's status contains the patch.
func TestKueueIsNotManaged(t *testing.T) {
	c := setup(t)
	other := newOtherKueue(t, c, 0)
	namespace, config := other.namespace, other.config(t)
	for name, test := range map[string]struct {
		manage       bool
		may          []string
		reason, want string
	}{
		"--manage-kueue=false":    {false, []string{"get"}, "Differs", "keeps this console from changing"},
		"no permission to change": {true, []string{"get"}, "Differs", "has no permission to change"},
		"no permission to read":   {true, nil, "Forbidden", "has no permission to read"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ranking()
			spec.IdleCompute.Strategy = v1alpha1.IdleFairShare
			letConsole(t, c, namespace, test.may, test.may)
			state, seen, err := other.reconciler(t, c.Console, spec, test.manage).ReconcileConfiguration(t.Context(), unstored(spec))
			if err != nil || state.Reason != test.reason || !strings.Contains(state.Message, test.want) {
				t.Fatalf("condition %+v (%v), want %s with %q", state, err, test.reason, test.want)
			}
			if test.reason == "Differs" && !strings.Contains(seen.Patch, "fairSharing") {
				t.Errorf("no patch in %+v", seen)
			}
			var after corev1.ConfigMap
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(&config), &after); err != nil || after.ResourceVersion != config.ResourceVersion {
				t.Errorf("the configuration was changed: %v\n%s", err, after.Data)
			}
		})
	}
}

// letConsole grants the console exactly these verbs on the ConfigMaps and
// Deployments of a namespace.
func letConsole(t *testing.T, c *clustertest.Cluster, namespace string, verbs, deployment []string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kueue"}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), c.Client, role, func() error {
		role.Rules = nil
		if len(verbs) > 0 {
			role.Rules = []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs},
				{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: deployment},
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kueue"}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), c.Client, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kueue"}
		binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kuota-system", Name: "kuota"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	console, err := client.New(c.Console, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // RBAC applies after a moment
		err := console.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "config"}, &corev1.ConfigMap{})
		if may := !apierrors.IsForbidden(err); may != (len(verbs) > 0) {
			return fmt.Errorf("the console may read: %v (%w)", may, err)
		}
		return nil
	})
}
