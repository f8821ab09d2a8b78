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

// Where HyperPod's own add-on governs, the console starts and writes nothing;
// once the add-on is gone, it does what it was asked for meanwhile.
func TestGovernedElsewhere(t *testing.T) {
	c := clustertest.Get(t)
	gone := addOn(t, c)
	console := start(t, c, false)
	clustertest.Eventually(t, soon, func(context.Context) error { return console.teams.Ready() })
	if why := console.connection.ReadOnlyReason(); !strings.Contains(why, "--take-over") {
		t.Fatalf("it says %q", why)
	}
	if _, err := console.connection.ClientAs(boss); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("a person writes: %v", err)
	}
	if gap := console.gap(t, "read-only"); !strings.Contains(gap.Impact, "HyperPod") || !strings.Contains(gap.Fix, cluster.HyperPodPolicy) {
		t.Errorf("the gap is %+v", gap)
	}
	team := clustertest.Name("theirs")
	c.Apply(t, fmt.Sprintf(oneTeam, team))
	for range 20 { // for as long as a controller takes otherwise, and longer
		time.Sleep(100 * time.Millisecond)
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a); err != nil || len(a.Finalizers) > 0 || len(a.Status.Conditions) > 0 {
			t.Fatalf("a controller wrote: %v, %+v", err, a)
		}
	}
	gone()
	clustertest.Eventually(t, soon, ready(c, team))
	console.closed(t, "read-only")
}

// A console that is told to takes over, while the add-on is there.
func TestTakeOver(t *testing.T) {
	c := clustertest.Get(t)
	addOn(t, c)
	team := clustertest.Name("taken")
	c.Apply(t, fmt.Sprintf(oneTeam, team))
	console := start(t, c, false, func(o *cluster.Options) { o.TakeOver = true })
	clustertest.Eventually(t, soon, ready(c, team))
	if why := console.connection.ReadOnlyReason(); why != "" {
		t.Errorf("it says %q", why)
	}
	if _, err := console.connection.ClientAs(boss); err != nil {
		t.Errorf("nobody writes: %v", err)
	}
}

const oneTeam = `{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}}`

// addOn has the admission policy that HyperPod's add-on makes, until gone is
// called or the test ends.
func addOn(t *testing.T, c *clustertest.Cluster) (gone func()) {
	t.Helper()
	c.Apply(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hyperpod-task-governance-admission-policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]}
  validations: [{expression: "true"}]
`)
	gone = func() {
		c.Kubectl(t, "", "delete", "--ignore-not-found", "validatingadmissionpolicy", "hyperpod-task-governance-admission-policy")
	}
	t.Cleanup(gone)
	return gone
}

// ready finds nothing wrong once a team is ready.
func ready(c *clustertest.Cluster, team string) func(context.Context) error {
	return func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return errors.New("the team is not ready")
		}
		return nil
	}
}
