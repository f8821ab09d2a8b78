package degraded_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueueconfig"
)

const image = "x:v0.19.2"

// add makes of a configuration what a patch says.
func add(t *testing.T, more kueueconfig.Addition) func(string) string {
	return func(text string) string {
		wanted, err := kueueconfig.Add(kueueconfig.Current{Text: text, Image: image}, more)
		if err != nil || !wanted.ConfigChanged {
			t.Errorf("%+v cannot be added, or is there: %v", more, err)
		}
		return wanted.Text
	}
}

// Kueue without parts of its configuration is told of, and what the settings
// say to type closes the gap: Kueue starts with it.
func TestConfiguration(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, false)
	if gap := console.gap(t, "pods"); !strings.Contains(gap.Fix, "+  - pod") {
		t.Errorf("the gap is %+v", gap)
	}
	c.Configure(t, func(text string) string {
		for _, line := range []string{"  UnadmittedWorkloadsObservability: true\n", "  UnadmittedWorkloadsExplicitStatus: true\n", "  SchedulingEquivalenceHashing: false\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("%q is not in\n%s", line, text)
			}
			text = strings.Replace(text, line, "", 1)
		}
		return strings.Replace(text, "featureGates:\n", "featureGates:\n  VisibilityOnDemand: false\n", 1)
	})
	for id, want := range map[string]string{
		"reasons": "+  UnadmittedWorkloadsObservability: true", "hashing": "+  SchedulingEquivalenceHashing: false", "visibility": "+  VisibilityOnDemand: true",
	} {
		if gap := console.gap(t, id); !strings.Contains(gap.Fix, want) {
			t.Errorf("the patch of %s is\n%s", id, gap.Fix)
		}
	}
	c.Configure(t, add(t, kueueconfig.Addition{
		Frameworks: []string{"pod"}, Exclude: []string{"ephemeral-storage"},
		Gates: map[string]bool{kueueconfig.GateReasons: true, kueueconfig.GateExplicitStatus: true, kueueconfig.GateHashing: false, kueueconfig.GateVisibility: true},
	}))
	for _, id := range []string{"pods", "reasons", "hashing", "visibility"} {
		console.closed(t, id)
	}
}

// Where the console leaves Kueue alone, fair sharing the other way is told of.
func TestFairSharingTheOtherWay(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, false)
	console.closed(t, "policy") // no policy, and Kueue without fair sharing
	c.Apply(t, `{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {taskPrioritization: FirstComeFirstServe, idleCompute: {strategy: FairShare}}}`)
	defer c.Kubectl(t, "", "delete", "clusterpolicy", "default")
	if gap := console.gap(t, "policy"); !strings.Contains(gap.Fix, "+fairSharing:") || !strings.Contains(gap.Impact, "Fair sharing is switched on") {
		t.Errorf("the gap is %+v", gap)
	}
}

// A resource that no queue covers is named, with the tasks that wait for it, and
// so is one that a queue covers and Kueue leaves out of its count.
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
	clustertest.Eventually(t, soon, told(console, "example.com/nic (1 task requests it)"))
	if gap := console.gap(t, "uncovered"); !strings.Contains(gap.Fix, "- example.com/nic") {
		t.Errorf("the patch is\n%s", gap.Fix)
	}
	c.Configure(t, add(t, kueueconfig.Addition{Exclude: []string{"mem"}}))
	if gap := console.gap(t, "excluded"); !strings.Contains(gap.Impact, "memory") || !strings.Contains(gap.Fix, "-  - mem\n") {
		t.Errorf("the gap is %+v", gap)
	}
	c.Configure(t, add(t, kueueconfig.Addition{Unexclude: []string{"mem"}}))
	console.closed(t, "excluded")
}

// Without the right to change Kueue's configuration, and then without that to
// read it, the settings say so.
func TestWithoutPermission(t *testing.T) {
	c := clustertest.Get(t)
	defer c.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(clustertest.Root(), "deploy", "rbac", "console.yaml"))
	console := start(t, c, true)
	console.closed(t, "permission")
	c.Kubectl(t, "", "--namespace=kueue-system", "patch", "role", "kuota-kueue-configuration", "--type=json",
		`--patch=[{"op":"replace","path":"/rules/0/verbs","value":["get"]},{"op":"replace","path":"/rules/1/verbs","value":["get"]}]`)
	if gap := console.gap(t, "permission"); !strings.Contains(gap.Fix, "--manage-kueue=false") {
		t.Errorf("the gap is %+v", gap)
	}
	c.Kubectl(t, "", "--namespace=kueue-system", "delete", "role", "kuota-kueue-configuration")
	if gap := console.gap(t, "kueue-forbidden"); !strings.Contains(gap.Fix, "console.yaml") {
		t.Errorf("the gap is %+v", gap)
	}
}

// Admission policies that are missing are named, and nobody but an admin sees
// any of this.
func TestAdmissionPoliciesMissing(t *testing.T) {
	c := clustertest.Get(t)
	console := start(t, c, true)
	for _, id := range []string{"enforcement", "members", "changed-by"} {
		console.closed(t, id)
	}
	for id, file := range map[string]string{"enforcement": "enforcement.yaml", "members": "members.yaml", "changed-by": "changed-by.yaml"} {
		path := filepath.Join(clustertest.Root(), "deploy", "rbac", file)
		c.Kubectl(t, "", "delete", "--ignore-not-found", "-f", path)
		console.gap(t, id)
		c.Kubectl(t, "", "apply", "--server-side", "-f", path)
		console.closed(t, id)
	}
	somebody := governance.User{Name: "somebody"}
	if _, err := console.settings.Report(t.Context(), somebody); governance.KindOf(err) != governance.NotFound {
		t.Errorf("somebody is answered %v", err)
	}
	if console.settings.CanView(t.Context(), somebody) || !console.settings.CanView(t.Context(), boss) {
		t.Error("the way to the settings is shown to others than admins")
	}
}
