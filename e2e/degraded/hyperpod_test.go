package degraded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestReadOnlyWithHyperPodAddOn checks that the console starts and writes nothing
// while HyperPod's task governance add-on is installed. Once the add-on is removed,
// the controllers reconcile the allocations that were created in the meantime.
func TestReadOnlyWithHyperPodAddOn(t *testing.T) {
	c := clustertest.Get(t)
	remove := addOn(t, c)
	console := start(t, c, false)
	clustertest.Eventually(t, waitLimit, func(context.Context) error { return console.teams.Ready() })
	if reason := console.connection.ReadOnlyReason(); !strings.Contains(reason, "--take-over") {
		t.Fatalf("read-only reason: got %q, want it to contain --take-over", reason)
	}
	if _, err := console.connection.ClientAs(admin); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("write client: got error %v, want Forbidden", err)
	}
	if finding := console.finding(t, "read-only"); !strings.Contains(finding.Impact, "HyperPod") || !strings.Contains(finding.Fix, cluster.HyperPodPolicy) {
		t.Errorf("unexpected finding %+v", finding)
	}
	team := clustertest.Name("theirs")
	c.Apply(t, fmt.Sprintf(oneTeam, team))
	for range 20 { // longer than a controller takes to reconcile otherwise
		time.Sleep(100 * time.Millisecond)
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a); err != nil || len(a.Finalizers) > 0 || len(a.Status.Conditions) > 0 {
			t.Fatalf("got %+v and error %v, want an allocation without finalizers and conditions", a, err)
		}
	}
	remove()
	clustertest.Eventually(t, waitLimit, ready(c, team))
	console.noFinding(t, "read-only")
}

// TestTakeOver checks that a console with --take-over writes although the add-on is
// installed.
func TestTakeOver(t *testing.T) {
	c := clustertest.Get(t)
	addOn(t, c)
	team := clustertest.Name("taken")
	c.Apply(t, fmt.Sprintf(oneTeam, team))
	console := start(t, c, false, func(o *cluster.Options) { o.TakeOver = true })
	clustertest.Eventually(t, waitLimit, ready(c, team))
	if reason := console.connection.ReadOnlyReason(); reason != "" {
		t.Errorf("read-only reason: got %q, want none", reason)
	}
	if _, err := console.connection.ClientAs(admin); err != nil {
		t.Errorf("write client: %v", err)
	}
}

const oneTeam = `{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}}`

// addOn creates the admission policy of HyperPod's add-on. It is deleted when the
// caller calls remove, and when the test ends.
func addOn(t *testing.T, c *clustertest.Cluster) (remove func()) {
	t.Helper()
	c.Apply(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hyperpod-task-governance-admission-policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]}
  validations: [{expression: "true"}]
`)
	remove = func() {
		c.Kubectl(t, "", "delete", "--ignore-not-found", "validatingadmissionpolicy", "hyperpod-task-governance-admission-policy")
	}
	t.Cleanup(remove)
	return remove
}

// ready returns a check that returns nil once the team is ready.
func ready(c *clustertest.Cluster, team string) func(context.Context) error {
	return func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return errors.New("got condition Ready not True, want True")
		}
		return nil
	}
}
