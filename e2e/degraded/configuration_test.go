package degraded_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
)

const image = "x:v0.19.2"

// add returns an edit that adds addition to Kueue's configuration. The edit fails the
// test when addition changes nothing.
func add(t *testing.T, addition kueueconfig.Addition) func(string) string {
	return func(text string) string {
		wanted, err := kueueconfig.Add(kueueconfig.Current{Text: text, Image: image}, addition)
		if err != nil || !wanted.ConfigChanged {
			t.Errorf("add %+v: got changed %t and error %v, want a change", addition, wanted.ConfigChanged, err)
		}
		return wanted.Text
	}
}

// TestMissingConfiguration checks that the settings page reports missing parts of
// Kueue's configuration, and that Kueue starts with the patch that it shows.
func TestMissingConfiguration(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, false)
	if finding := console.finding(t, "pods"); !strings.Contains(finding.Fix, "+  - pod") {
		t.Errorf("unexpected finding %+v", finding)
	}
	c.Configure(t, func(text string) string {
		for _, line := range []string{"  UnadmittedWorkloadsObservability: true\n", "  UnadmittedWorkloadsExplicitStatus: true\n", "  SchedulingEquivalenceHashing: false\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("configuration: got\n%s\nwant it to contain %q", text, line)
			}
			text = strings.Replace(text, line, "", 1)
		}
		return strings.Replace(text, "featureGates:\n", "featureGates:\n  VisibilityOnDemand: false\n", 1)
	})
	for id, want := range map[string]string{
		"reasons": "+  UnadmittedWorkloadsObservability: true", "hashing": "+  SchedulingEquivalenceHashing: false", "visibility": "+  VisibilityOnDemand: true",
	} {
		if finding := console.finding(t, id); !strings.Contains(finding.Fix, want) {
			t.Errorf("patch of %s: got\n%s\nwant it to contain %q", id, finding.Fix, want)
		}
	}
	c.Configure(t, add(t, kueueconfig.Addition{
		Frameworks: []string{"pod"}, Exclude: []string{"ephemeral-storage"},
		Gates: map[string]bool{kueueconfig.GateReasons: true, kueueconfig.GateExplicitStatus: true, kueueconfig.GateHashing: false, kueueconfig.GateVisibility: true},
	}))
	for _, id := range []string{"pods", "reasons", "hashing", "visibility"} {
		console.noFinding(t, id)
	}
}

// TestFairSharingDiffersFromPolicy checks that a console that does not manage Kueue
// reports that fair sharing in Kueue differs from the policy.
func TestFairSharingDiffersFromPolicy(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, false)
	console.noFinding(t, "policy") // no policy, and Kueue without fair sharing
	c.Apply(t, `{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {taskPrioritization: FirstComeFirstServe, idleCompute: {strategy: FairShare}}}`)
	defer c.Kubectl(t, "", "delete", "clusterpolicy", "default")
	if finding := console.finding(t, "policy"); !strings.Contains(finding.Fix, "+fairSharing:") || !strings.Contains(finding.Impact, "Fair sharing is switched on") {
		t.Errorf("unexpected finding %+v", finding)
	}
}

// TestUncoveredResource checks that the settings page reports a resource that no
// queue covers, with the tasks that are pending for it, and a resource that a queue
// covers but Kueue's configuration excludes.
func TestUncoveredResource(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, false)
	c.Apply(t, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: narrow}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 1}, {name: memory, nominalQuota: 1Gi}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: narrow, namespace: default}
spec: {clusterQueue: narrow}
---
apiVersion: batch/v1
kind: Job
metadata: {name: stuck, namespace: default, labels: {kueue.x-k8s.io/queue-name: narrow}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: x, resources: {requests: {cpu: 1, memory: 1Gi, example.com/nic: 1}, limits: {example.com/nic: 1}}}]
`)
	defer c.Kubectl(t, "", "delete", "job/stuck", "localqueue/narrow", "clusterqueue/narrow", "resourceflavor/plain", "--namespace=default")
	clustertest.Eventually(t, waitLimit, reportsUncovered(console, "example.com/nic (1 task requests it)"))
	if finding := console.finding(t, "uncovered"); !strings.Contains(finding.Fix, "- example.com/nic") {
		t.Errorf("got patch\n%s\nwant it to add example.com/nic", finding.Fix)
	}
	c.Configure(t, add(t, kueueconfig.Addition{Exclude: []string{"mem"}}))
	if finding := console.finding(t, "excluded"); !strings.Contains(finding.Impact, "memory") || !strings.Contains(finding.Fix, "-  - mem\n") {
		t.Errorf("unexpected finding %+v", finding)
	}
	c.Configure(t, add(t, kueueconfig.Addition{Unexclude: []string{"mem"}}))
	console.noFinding(t, "excluded")
}

// TestWithoutPermission removes the permission to change Kueue's configuration, and
// then the permission to read it, and checks that the settings page reports each.
func TestWithoutPermission(t *testing.T) {
	c := clustertest.Get(t)
	defer c.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(clustertest.Root(), "deploy", "rbac", "console.yaml"))
	console := start(t, c, true)
	console.noFinding(t, "permission")
	c.Kubectl(t, "", "--namespace=kueue-system", "patch", "role", "kuota-kueue-configuration", "--type=json",
		`--patch=[{"op":"replace","path":"/rules/0/verbs","value":["get"]},{"op":"replace","path":"/rules/1/verbs","value":["get"]}]`)
	if finding := console.finding(t, "permission"); !strings.Contains(finding.Fix, "--manage-kueue=false") {
		t.Errorf("unexpected finding %+v", finding)
	}
	c.Kubectl(t, "", "--namespace=kueue-system", "delete", "role", "kuota-kueue-configuration")
	if finding := console.finding(t, "kueue-forbidden"); !strings.Contains(finding.Fix, "console.yaml") {
		t.Errorf("unexpected finding %+v", finding)
	}
}

// TestAdmissionPoliciesMissing checks that the settings page reports missing
// admission policies, and that only admins can read it.
func TestAdmissionPoliciesMissing(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, true)
	for _, id := range []string{"enforcement", "members", "departments", "changed-by"} {
		console.noFinding(t, id)
	}
	for id, file := range map[string]string{"enforcement": "enforcement.yaml", "members": "members.yaml", "departments": "departments.yaml", "changed-by": "changed-by.yaml"} {
		path := filepath.Join(clustertest.Root(), "deploy", "rbac", file)
		c.Kubectl(t, "", "delete", "--ignore-not-found", "-f", path)
		console.finding(t, id)
		c.Kubectl(t, "", "apply", "--server-side", "-f", path)
		console.noFinding(t, id)
	}
	stranger := governance.User{Name: "stranger"}
	if _, err := console.settings.Report(t.Context(), stranger); governance.KindOf(err) != governance.NotFound {
		t.Errorf("report for a user who is no admin: got error %v, want NotFound", err)
	}
	if console.settings.CanView(t.Context(), stranger) || !console.settings.CanView(t.Context(), admin) {
		t.Error("CanView: got true for a user who is no admin or false for an admin")
	}
}
