package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/deploy/charttest"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"sigs.k8s.io/yaml"
)

// The field and the migration of the next version, which exists only in this test.
const (
	nextField     = "next"
	nextMigration = "-- +goose Up\nALTER TABLE tasks ADD COLUMN next TEXT NOT NULL DEFAULT 'x';\nCREATE TABLE next (id BIGINT PRIMARY KEY);\n"
	nextVersion   = "90000"
)

// task returns a Job of the team. Its pod runs for this long.
func task(name string, gpus int, runs string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: hyperpod-ns-charted, labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-charted-localqueue, kueue.x-k8s.io/priority-class: training-priority}}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: %s}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: %d}}}]}
`, name, runs, gpus)
}

// runTasks starts a task that runs and one that waits.
func (i *installation) runTasks(t *testing.T) {
	t.Helper()
	i.Kubectl(t, task("runs", 1, "1h")+"---"+task("waits", 500, "1h"), "apply", "-f", "-")
	i.waitPhase(t, "runs", "Running")
}

func (i *installation) waitPhase(t *testing.T, job, phase string) {
	t.Helper()
	clustertest.Eventually(t, limit, func(context.Context) error {
		out, err := i.TryKubectl("", "get", "pods", "-n", "hyperpod-ns-charted", "-l", "batch.kubernetes.io/job-name="+job, "-o", "jsonpath={.items[*].status.phase}")
		if err != nil || out != phase {
			return fmt.Errorf("the pods of %s are %q (%v), want %s", job, out, err, phase)
		}
		return nil
	})
}

// tasks returns what shows that no task was evicted, lost or started again.
func (i *installation) tasks(t *testing.T) string {
	t.Helper()
	text := i.Kubectl(t, "", "get", "pods", "-n", "hyperpod-ns-charted", "-l", "batch.kubernetes.io/job-name=runs", "-o", `jsonpath={range .items[*]}Pod {.metadata.uid} {.status.phase}{"\n"}{end}`) +
		i.Kubectl(t, "", "get", "jobs", "runs", "waits", "-n", "hyperpod-ns-charted", "-o", `jsonpath={range .items[*]}Job {.metadata.name} {.metadata.uid} suspend {.spec.suspend}{"\n"}{end}`)
	for line := range strings.Lines(i.Kubectl(t, "", "get", "workloads", "-n", "hyperpod-ns-charted", "-o", `jsonpath={range .items[*]}Workload of {.metadata.ownerReferences[0].name} {.metadata.uid} {.spec.priority} {.spec.active} evicted {.status.conditions[?(@.type=="Evicted")].status}{"\n"}{end}`)) {
		if strings.Contains(line, " of runs ") || strings.Contains(line, " of waits ") {
			text += line
		}
	}
	return text
}

// check fails the test if a task differs from before.
func (i *installation) check(t *testing.T, before, step string) {
	t.Helper()
	if diff := cmp.Diff(before, i.tasks(t)); diff != "" {
		t.Errorf("%s changes tasks (-before +after):\n%s", step, diff)
	}
}

// nextChart returns the chart with a CRD that has one more field.
func nextChart(t *testing.T) *chart.Chart {
	t.Helper()
	next, err := charttest.Load()
	if err != nil {
		t.Fatal(err)
	}
	next.Metadata.Version += "-next"
	found := false
	for _, file := range next.Files {
		if filepath.Base(file.Name) != "kuota.dev_computeallocations.yaml" {
			continue
		}
		crd := parse(t, string(file.Data))
		for _, version := range crd["spec"].(map[string]any)["versions"].([]any) {
			schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			spec := schema["properties"].(map[string]any)["spec"].(map[string]any)
			spec["properties"].(map[string]any)[nextField] = map[string]any{"type": "string"}
			found = true
		}
		if file.Data, err = yaml.Marshal(crd); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatal("the chart has no CRD of allocations")
	}
	return next
}

// buildNext builds the console of the next version: its type has the field, and its
// history the migration.
func buildNext(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	write := func(file, text string) {
		copied := filepath.Join(dir, fmt.Sprint(len(replace)))
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(charttest.Root(), file)] = copied
	}
	const types = "governance/api/v1alpha1/computeallocation_types.go"
	source, err := os.ReadFile(filepath.Join(charttest.Root(), types))
	if err != nil {
		t.Fatal(err)
	}
	spec := regexp.MustCompile(`(?m)^type ComputeAllocationSpec struct \{$`)
	if !spec.Match(source) {
		t.Fatalf("%s has no ComputeAllocationSpec", types)
	}
	write(types, spec.ReplaceAllString(string(source), "$0\n\tNext string `json:\""+nextField+",omitempty\"`\n"))
	for _, database := range []string{"sqlite", "postgres"} {
		write("governance/record/history/migrations/"+database+"/"+nextVersion+"_next.sql", nextMigration)
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", overlay)
}

// upgradeTo upgrades the release to a version of the chart. force takes fields over from
// the manager that applied the raw manifests.
func (i *installation) upgradeTo(t *testing.T, version *chart.Chart, values string, force bool) {
	t.Helper()
	upgrade := action.NewUpgrade(i.config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout, upgrade.ForceConflicts = i.namespace, kube.HookOnlyStrategy, limit, force
	if _, err := upgrade.RunWithContext(t.Context(), i.name, version, parse(t, values)); err != nil {
		t.Fatal(err)
	}
}

// next returns the value of the next version's field.
func (i *installation) next(t *testing.T) string {
	t.Helper()
	return i.Kubectl(t, "", "get", "computeallocation", "charted", "-o", "jsonpath={.spec."+nextField+"}")
}

// waitObserved waits until the console has reconciled the team's spec.
func (i *installation) waitObserved(t *testing.T) {
	t.Helper()
	clustertest.Eventually(t, limit, func(context.Context) error {
		out := i.Kubectl(t, "", "get", "computeallocation", "charted", "-o", `jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Ready")].observedGeneration} {.status.conditions[?(@.type=="Ready")].status}`)
		if fields := strings.Fields(out); len(fields) != 3 || fields[0] != fields[1] || fields[2] != "True" {
			return fmt.Errorf("generation, observed generation and Ready are %q", out)
		}
		return nil
	})
}

// waitPast waits until history has a task that ended and was deleted.
func (i *installation) waitPast(t *testing.T, p *process, admin visitor, name string) {
	t.Helper()
	clustertest.Eventually(t, limit, func(context.Context) error {
		status, body := admin.text(t, p.address+"/tasks/hyperpod-ns-charted/job/"+name)
		if status != http.StatusOK || !strings.Contains(body, "past-facts") {
			return fmt.Errorf("the page of the past task %s answers %d", name, status)
		}
		return nil
	})
}

// pastTask runs a task to its end, deletes it, and waits until history has it.
func (i *installation) pastTask(t *testing.T, p *process, admin visitor, name string) {
	t.Helper()
	i.Kubectl(t, task(name, 1, "1s"), "apply", "-f", "-")
	i.Kubectl(t, "", "wait", "--for=condition=Complete", "job/"+name, "-n", "hyperpod-ns-charted", "--timeout=180s")
	clustertest.Eventually(t, limit, func(context.Context) error { // the console has seen it before it is deleted
		if status, _ := admin.text(t, p.address+"/tasks/hyperpod-ns-charted/job/"+name); status != http.StatusOK {
			return fmt.Errorf("the page of the task answers %d", status)
		}
		return nil
	})
	i.Kubectl(t, "", "delete", "job", name, "-n", "hyperpod-ns-charted")
	i.waitPast(t, p, admin, name)
}

// The chart takes over the raw manifests, is upgraded to a next version, which has a
// field and a migration of history of its own, and goes back, while a task runs. The
// earlier console works on the newer schema, and a form that it saves keeps the new
// field.
func TestUpgradeAndRollback(t *testing.T) {
	if onNode() {
		t.Skip("runs without a real node")
	}
	clustertest.OnlyVerify(t)
	restoreManifests(t)
	i := newInstallation(t, "kuota", "kuota-system")
	t.Cleanup(func() {
		uninstall := action.NewUninstall(i.config)
		uninstall.DisableHooks, uninstall.WaitStrategy, uninstall.Timeout, uninstall.IgnoreNotFound = true, kube.HookOnlyStrategy, limit, true
		_, _ = uninstall.Run(i.name)
	})
	kuota, next := build(t), buildNext(t)
	current, err := charttest.Load()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Replace(values, "groups: [admins]", "groups: [kuota-admins]", 1)
	database := filepath.Join(t.TempDir(), "history.db")

	manifests := i.start(t, kuota, i.fromManifests(), database)
	i.Kubectl(t, policy+team, "apply", "-f", "-")
	i.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/charted", "--timeout=180s")
	i.runTasks(t)
	tasks, objects := i.tasks(t), i.teamObjects(t)
	manifests.checkPermissions(t)
	manifests.stop()

	if _, err := i.install(t, values, true, true); err != nil {
		t.Fatal(err)
	}
	charted := i.start(t, kuota, i.fromRelease(t), database)
	admin := visit(t, charted.address+"/policies?signed-in", "admin", nil)
	i.pastTask(t, charted, admin, "under-the-chart")
	i.check(t, tasks, "the step to the chart")
	charted.checkPermissions(t)
	charted.stop()

	i.upgradeTo(t, nextChart(t), values, true)
	upgraded := i.start(t, next, i.fromRelease(t), database)
	i.Kubectl(t, `{"spec": {"next": "kept"}}`, "patch", "computeallocation", "charted", "--type=merge", "--patch-file=/dev/stdin")
	i.waitObserved(t)
	admin = visit(t, upgraded.address+"/policies?signed-in", "admin", nil)
	i.pastTask(t, upgraded, admin, "under-the-next-version")
	if log := upgraded.text(t); !strings.Contains(log, "history tables migrated") {
		t.Error("the next version did not migrate history")
	}
	i.check(t, tasks, "the upgrade")
	upgraded.checkPermissions(t)
	upgraded.stop()
	if got := i.next(t); got != "kept" {
		t.Fatalf("the field of the next version is %q, want kept", got)
	}

	i.upgradeTo(t, current, values+"crds: {install: false}\n", false)
	if got := i.next(t); got != "kept" {
		t.Fatalf("the rollback changed the field of the next version to %q", got)
	}
	back := i.start(t, kuota, i.fromRelease(t), database)
	admin = visit(t, back.address+"/policies?signed-in", "admin", nil)
	if diff := cmp.Diff(strings.ReplaceAll(objects, `"next":"kept"`, ""), strings.ReplaceAll(i.teamObjects(t), `,"next":"kept"`, "")); diff != "" {
		t.Errorf("to the next version and back changes (-before +after):\n%s", diff)
	}
	admin.save(t, back.address+"/policies/allocations/charted/edit", "allocation-form", map[string]string{"weight": "7"}, "saved=")
	i.waitObserved(t)
	if got := i.Kubectl(t, "", "get", "computeallocation", "charted", "-o", "jsonpath={.spec.next} {.spec.fairShareWeight}"); got != "kept 7" {
		t.Errorf("after a save by the earlier console the new field and the weight are %q, want kept 7", got)
	}
	i.pastTask(t, back, admin, "after-the-rollback")
	for _, name := range []string{"under-the-chart", "under-the-next-version"} {
		i.waitPast(t, back, admin, name)
	}
	i.check(t, tasks, "the rollback")
	back.checkPermissions(t)
	if strings.Contains(back.text(t), `"msg":"history cannot be written`) {
		t.Error("the earlier console cannot write history on the newer schema")
	}
	back.stop()

	i.upgradeTo(t, nextChart(t), values, false)
	again := i.start(t, next, i.fromRelease(t), database)
	admin = visit(t, again.address+"/policies?signed-in", "admin", nil)
	i.waitPast(t, again, admin, "after-the-rollback")
	if got := i.next(t); got != "kept" {
		t.Errorf("after the second upgrade the field is %q, want kept", got)
	}
	i.check(t, tasks, "the second upgrade")
}
