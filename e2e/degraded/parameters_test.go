package degraded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPIServerStopsReadingParameters deletes the admission policies and creates them
// again. Kubernetes 1.36 then no longer watches ConfigMaps, and the policies do not
// see changes of their parameters. The settings page, kuota doctor and the condition
// of the policy must report it, until the API server restarts. make verify runs it: it
// waits for what the API server does not notice.
func TestAPIServerStopsReadingParameters(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	namespace, rbac := clustertest.Name("governed"), filepath.Join(clustertest.Root(), "deploy", "rbac")
	// Both sorts of policies read the parameters by one watch, which ends with the
	// policies of the sort that began it.
	manifests := []string{"-f", filepath.Join(rbac, "enforcement.yaml"), "-f", filepath.Join(rbac, "time-limits.yaml"), "-f", filepath.Join(rbac, "priorities.yaml")}
	c.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`, labels: {kuota.dev/governed: "true"}}}`)
	defer c.Kubectl(t, "", "delete", "namespace", namespace, "--wait=false")
	setEnforcement := func(how v1alpha1.Enforcement) {
		t.Helper()
		c.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {enforcement: %s, idleCompute: {strategy: FirstComeFirstServe}}}`, how))
	}
	rejected := func() error {
		out, err := c.TryKubectl("", "create", "job", "bare", "--image=x", "--dry-run=server", "--namespace="+namespace)
		if err == nil || !strings.Contains(out, "kuota-enforcement-jobs") {
			return fmt.Errorf("a job without a queue: got %q, want a rejection", out)
		}
		return nil
	}
	condition := func(reason string) func(context.Context) error {
		return func(ctx context.Context) error {
			var policy v1alpha1.ClusterPolicy
			if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
				return err
			}
			if got := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionEnforcement); got == nil || got.Reason != reason || got.ObservedGeneration != policy.Generation {
				return fmt.Errorf("condition Enforcement: got %+v, want reason %s", got, reason)
			}
			return nil
		}
	}
	const finding = "enforcement-not-applied"

	console := start(t, c, false)
	setEnforcement(v1alpha1.RequireQueue)
	defer c.Kubectl(t, "", "delete", "clusterpolicy", "default")
	restart := func() { c.Without(t, func() {}) }
	clustertest.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		if condition("NotApplied")(ctx) == nil { // an earlier test deleted the policies
			restart()
		}
		return condition("Enforced")(ctx)
	})
	clustertest.Eventually(t, waitLimit, func(context.Context) error { return rejected() })
	console.noFinding(t, finding)

	c.Kubectl(t, "", append([]string{"delete"}, manifests...)...)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		if err := rejected(); err == nil {
			return fmt.Errorf("without admission policies a job without a queue is rejected")
		}
		return nil
	})
	c.Kubectl(t, "", append([]string{"apply", "--server-side"}, manifests...)...)
	// The API server rejects jobs by the parameters that it has read before. The
	// controller writes the installation's identity into them, so that the probe
	// fails before another change is lost.
	clustertest.Eventually(t, 2*time.Minute, condition("NotApplied"))
	if got := console.finding(t, finding); !strings.Contains(got.Impact, "Restart every API server") {
		t.Errorf("unexpected finding %+v", got)
	}
	if d, code := diagnose(t, c, "kubeconfigs/kuota"); code != 1 || d.severityOf(finding) != "Error" {
		t.Errorf("kuota doctor: got exit code %d and %+v, want 1 and the finding %s", code, d, finding)
	}

	restart()
	clustertest.Eventually(t, 2*time.Minute, condition("Enforced"))
	clustertest.Eventually(t, waitLimit, func(context.Context) error { return rejected() })
	console.noFinding(t, finding)
}
