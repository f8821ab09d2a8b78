package uninstall_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/uninstall"
	"kuota.dev/kuota/governance/controllers/loopguard"

	"github.com/google/go-cmp/cmp"
)

const soon = time.Minute

func TestMain(m *testing.M) { clustertest.Main(m) }

const install = `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: training, weight: 60}]
  idleCompute: {shareUnallocated: true}
  pools: [{name: small, match: {instanceTypes: [ml.g5.2xlarge, ml.g6.12xlarge]}}]
---
apiVersion: kuota.dev/v1alpha1
kind: Department
metadata: {name: research}
spec:
  members: [{kind: User, name: head@example.com, role: Admin}]
  quota: [{pool: small, accelerators: 2}, {instanceType: ml.p5.48xlarge, accelerators: 2}]
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: stays}
spec:
  members: [{kind: User, name: mia@example.com}]
  quota: [{pool: small, accelerators: 2}, {instanceType: ml.p5.48xlarge, accelerators: 2}]
  preemption: {withinTeam: Never}
  sharing: {strategy: Lend}
`

func job(name string, gpus int) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: hyperpod-ns-stays, labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-stays-localqueue, kueue.x-k8s.io/priority-class: training-priority}}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: %d}}}]}
`, name, gpus)
}

// remainder returns the objects that uninstalling Kuota must not change.
func remainder(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	spec := func(resource string) string {
		return c.Kubectl(t, "", "get", resource, "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.labels} {.spec} {.value}{"\n"}{end}`)
	}
	var all []string
	for _, resource := range []string{"clusterqueues", "localqueues", "resourceflavors", "workloadpriorityclasses"} {
		all = append(all, spec(resource))
	}
	all = append(all,
		// Not the name of the Cohort: without the policy Kuota lends nothing.
		c.Kubectl(t, "", "get", "cohorts", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec}{end}"),
		c.Kubectl(t, "", "get", "nodes", "-L", "kuota.dev/pool", "--no-headers", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.kuota\.dev/pool}{"\n"}{end}`),
		c.Kubectl(t, "", "get", "namespace", "hyperpod-ns-stays", "-o", "jsonpath={.metadata.uid} {.metadata.labels} {.metadata.annotations.kuota\\.dev/team}"),
		c.Kubectl(t, "", "get", "rolebindings", "kuota-members", "kuota-elastic", "-n", "hyperpod-ns-stays", "-o", "jsonpath={.items[*].metadata.uid}"),
		c.Kubectl(t, "", "get", "pods", "-n", "hyperpod-ns-stays", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.phase}"),
		c.Kubectl(t, "", "get", "workloads", "-n", "hyperpod-ns-stays", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].spec.priority}"),
	)
	return strings.Join(all, "\n")
}

// waitInstalled applies the CRDs' objects, and waits until they are ready.
func waitInstalled(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error { // the CRDs may not be served yet
		out, err := c.TryKubectl(install, "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	c.Kubectl(t, "", "wait", "--for=condition=Ready", "clusterpolicy/default", "department/research", "computeallocation/stays", "--timeout=180s")
}

// waitLending waits until the Cohort lends of all nodes.
func waitLending(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out := c.Kubectl(t, "", "get", "cohorts", "-o", "jsonpath={.items[*].spec}"); !strings.Contains(out, `{"name":"nvidia.com/gpu","nominalQuota":"12"}`) {
			return fmt.Errorf("the Cohort lends %s, want 12 GPUs of two nodes", out)
		}
		return nil
	})
}

// waitUninstalled waits until the CRDs are deleted, and a running controller could have
// reacted.
func waitUninstalled(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "crd", "computeallocations.kuota.dev", "clusterpolicies.kuota.dev"); err == nil || strings.Contains(out, "kuota.dev ") {
			return fmt.Errorf("CRDs exist: %s", out)
		}
		return nil
	})
	time.Sleep(3 * time.Second) // a controller that finalizes the team would have started by now
}

// waitRunning waits until the pods of a Job run.
func waitRunning(t *testing.T, c *clustertest.Cluster, name string) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := c.TryKubectl("", "get", "pods", "-l", "batch.kubernetes.io/job-name="+name, "-n", "hyperpod-ns-stays", "-o", "jsonpath={.items[*].status.phase}")
		if err != nil || out != "Running" {
			return fmt.Errorf("pods of %s are %q (%v), want Running", name, out, err)
		}
		return nil
	})
}

// admitTask creates a Job, waits until it runs, and deletes it and its Workload.
func admitTask(t *testing.T, c *clustertest.Cluster, name string) {
	t.Helper()
	c.Kubectl(t, job(name, 1), "create", "-f", "-")
	waitRunning(t, c, name)
	c.Kubectl(t, "", "delete", "job", name, "-n", "hyperpod-ns-stays", "--cascade=foreground")
	clustertest.Eventually(t, soon, func(context.Context) error { // the deletion does not wait for it
		if out := c.Kubectl(t, "", "get", "workloads", "-n", "hyperpod-ns-stays", "-o", "name"); strings.Contains(out, "/job-"+name+"-") {
			return fmt.Errorf("the Workload of %s is still there: %s", name, out)
		}
		return nil
	})
}

// Deleting the CRDs by hand, and uninstalling by command, changes no object of Kueue
// and no task, although the console runs. Installing Kuota again in between adopts the
// objects.
func TestUninstall(t *testing.T) {
	c := clustertest.Get(t)
	startConsole(t, c)
	waitInstalled(t, c)
	c.Kubectl(t, job("runs", 1), "create", "-f", "-")
	c.Kubectl(t, job("waits", 100), "create", "-f", "-")
	waitRunning(t, c, "runs")
	c.Kubectl(t, strings.Replace(job("after", 1), "metadata: {", `metadata: {annotations: {kueue.x-k8s.io/admission-gated-by: "example.com/gate,kuota.dev/after-ok-x"}, `, 1), "create", "-f", "-")
	grow(t, c, "train")
	waitLending(t, c)
	before := remainder(t, c)

	crds := filepath.Join(clustertest.Root(), "deploy", "crds")
	c.Kubectl(t, "", "delete", "-f", crds, "--timeout=180s") // a definition that is still being deleted cannot be applied
	waitUninstalled(t, c)
	if diff := cmp.Diff(before, remainder(t, c)); diff != "" {
		t.Fatalf("deleting the CRDs by hand changes (-before +after):\n%s", diff)
	}
	admitTask(t, c, "after-crds")

	c.Kubectl(t, "", "apply", "--server-side", "-f", crds)
	waitInstalled(t, c)
	waitLending(t, c)
	if diff := cmp.Diff(before, remainder(t, c)); diff != "" {
		t.Errorf("installing again changes (-before +after):\n%s", diff)
	}
	deleteParts(t, c)
	grow(t, c, "train-again")
	before = remainder(t, c)

	// A Workload that the loop guard of a deleted console holds.
	waits := strings.TrimSpace(c.Kubectl(t, "", "get", "workloads", "-n", "hyperpod-ns-stays", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`))
	waits = waits[strings.Index(waits, "job-waits"):]
	waits, _, _ = strings.Cut(waits, "\n")
	mark := loopguard.Mark{Identity: "deleted-console", Preemptor: "x", Since: time.Now(), Until: time.Now().Add(time.Hour)}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}, "spec": {"active": false}}`, loopguard.MarkAnnotation, mark)
	c.Kubectl(t, "", "patch", "workload", waits, "-n", "hyperpod-ns-stays", "--type=merge", "-p", patch)

	var planned, done bytes.Buffer
	if err := uninstall.Run(t.Context(), c.Client, uninstall.Options{DryRun: true, Out: &planned}); err != nil {
		t.Fatal(err)
	}
	if out := c.Kubectl(t, "", "get", "validatingadmissionpolicies", "-o", "name"); !strings.Contains(out, "kuota-workloads") {
		t.Fatalf("the dry run deleted policies: %s", out)
	}
	if err := uninstall.Run(t.Context(), c.Client, uninstall.Options{Out: &done}); err != nil {
		t.Fatal(err)
	}
	waitUninstalled(t, c)
	if want := strings.NewReplacer("would delete", "delete", "would remove", "remove", "would release", "release").Replace(planned.String()); want != done.String() {
		t.Errorf("the dry run prints\n%s\nand the run\n%s", want, done.String())
	}
	last := -1
	for _, text := range []string{"delete ClusterRole kuota-department-delegate", "delete ClusterRoleBinding kuota-department-delegates", "delete ValidatingAdmissionPolicyBinding kuota-departments", "delete ValidatingAdmissionPolicyBinding kuota-enforcement-jobs", "delete ValidatingAdmissionPolicy kuota-workloads", "delete ClusterRoleBinding kuota-console", "delete RoleBinding kuota-department", "release Workload hyperpod-ns-stays/" + waits, "remove the finalizers of train-again", "remove the finalizers of stays", "delete CustomResourceDefinition"} {
		at := strings.Index(done.String(), text)
		if at < last {
			t.Errorf("%q is missing or too early:\n%s", text, done.String())
		}
		last = at
	}
	if out := c.Kubectl(t, "", "get", "workload", waits, "-n", "hyperpod-ns-stays", "-o", "jsonpath={.spec.active} {.metadata.annotations}"); !strings.HasPrefix(out, "true") || strings.Contains(out, loopguard.MarkAnnotation) {
		t.Errorf("the held Workload was not released: %s", out)
	}
	if out := c.Kubectl(t, "", "get", "job", "after", "-n", "hyperpod-ns-stays", "-o", "jsonpath={.metadata.annotations}"); !strings.Contains(out, `"example.com/gate"`) {
		t.Errorf("the gate of Kuota was not removed, or another one: %s", out)
	}
	if diff := cmp.Diff(before, remainder(t, c)); diff != "" {
		t.Errorf("uninstalling changes (-before +after):\n%s", diff)
	}
	for _, kind := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "clusterrolebindings"} {
		if out := c.Kubectl(t, "", "get", kind, "-o", "name"); strings.Contains(out, "kuota-console") || strings.Contains(out, "kuota-enforcement") || strings.Contains(out, "changed-by") {
			t.Errorf("objects still exist: %s", out)
		}
	}
	admitTask(t, c, "after-uninstall")
	if err := uninstall.Run(t.Context(), c.Client, uninstall.Options{Out: &done}); err != nil {
		t.Errorf("Run fails the second time: %v", err)
	}
}
