package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestPython runs the example of docs/python.md for a team with two shares and three priority
// classes, and then all other methods of the module. Kueue's own admissions are the order of starts.
func TestPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	c := clustertest.Get(t)
	noPolicy(t)
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  numericPriorities: true
  priorityClasses: [{name: high, weight: 90}, {name: mid, weight: 50}, {name: low, weight: 10}]
`)
	address, team := console(t), clustertest.Name("python")
	deleteTeamAtEnd(t, team)
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("conditions of the policy %+v", policy.Status.Conditions)
		}
		return nil
	})
	// Within the team nothing is preempted, as in a queue of AWS Batch.
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 1}]
  sharing: {strategy: DontLend}
  preemption: {withinTeam: Never}
  shares: [{name: highpri, weight: 5}, {name: lowpri, weight: 1}]
  members: [{kind: Group, name: vision-team}]
`)
	waitForQueues(t, c, team)
	token := personToken(t, "ada")
	waitForSubmitForm(t, user(t, address, "ada"), team, "ml.p5.48xlarge")
	admitted := watchAdmissions(t, c, team)
	folder := filepath.Join(clustertest.Root(), "python")
	run := func(arguments ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "python3", arguments...)
		command.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1", "XDG_CONFIG_HOME="+t.TempDir(),
			"KUOTA_SERVER="+address, "KUOTA_TOKEN="+token, "KUOTA_TEAM="+team, "KUOTA_IMAGE=example.com/train:1")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %.40s: %v\n%s", arguments[0], err, out)
		}
		if strings.Contains(string(out), token) {
			t.Error("the token is printed")
		}
		return string(out)
	}

	out := run(filepath.Join(folder, "examples", "batch.py"))
	t.Logf("the example prints:\n%s", out)
	if diff := cmp.Diff([]string{"mid", "low", "high", "low"}, inSnapshots(out)); diff != "" {
		t.Errorf("the snapshots have (-want +got):\n%s\n%s", diff, out)
	}
	if !strings.Contains(out, "<Job hyperpod-ns-"+team+"/job/low Running>") {
		t.Errorf("the last line is not the running task:\n%s", out)
	}
	if diff := cmp.Diff([]string{"first", "mid", "high", "low"}, admitted()); diff != "" {
		t.Errorf("Kueue admitted (-want +got):\n%s", diff)
	}

	out = run("-c", pythonMethods)
	t.Logf("the other methods print:\n%s", out)
	if diff := cmp.Diff([]string{"high-2", "mid-2", "low-2"}, inSnapshots(out)); diff != "" {
		t.Errorf("the snapshot has (-want +got):\n%s\n%s", diff, out)
	}
	if diff := cmp.Diff([]string{"first", "mid", "high", "low", "fills", "high-2", "mid-2", "low-2", "low-3"}, admitted()); diff != "" {
		t.Errorf("Kueue admitted (-want +got):\n%s", diff)
	}
}

// pythonMethods fills the quota, submits the classes from the lowest to the highest, and then gives the
// quota back. The tasks end after a second each.
const pythonMethods = `
import os, time, kuota
team = os.environ["KUOTA_TEAM"]
client = kuota.Client()
low, high = kuota.Queue(team, share="lowpri", client=client), kuota.Queue(team, share="highpri", client=client)

def manifest(name, priority, share):
    return f'''
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  labels: {{kueue.x-k8s.io/priority-class: {priority}-priority, kueue.x-k8s.io/queue-name: hyperpod-ns-{team}-share-{share}}}
spec:
  suspend: true
  template:
    metadata: {{annotations: {{pod-complete.stage.kwok.x-k8s.io/delay: 1s}}}}
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: example.com/train:1
        resources: {{requests: {{cpu: "1", memory: 1Gi, nvidia.com/gpu: "1"}}, limits: {{nvidia.com/gpu: "1"}}}}
'''

for job in low.jobs():
    if job.last_status == "Running":
        job.stop()
        assert job.wait(timeout=120) == "Stopped"
    job.delete()

fills = low.submit("sleep 3600", name="fills", gpus=1, priority_class="mid", env={"A": 1}, time_limit="2h")
fills.wait(timeout=120, until="Running")
assert [job.name for job in low.jobs("Running", mine=True)] == ["fills"]
assert low.check("true", gpus=100).outcome == "Never"
verdict = low.check("true", gpus=1)
assert verdict.outcome == "Waits" and "kind: Job" in verdict.manifest, verdict
assert "kuota-priority-42" in low.check("true", gpus=1, priority=42).manifest
numbered = low.submit("true", name="numbered", gpus=1, priority=42)
listed = lambda: client.call("GET", "/tasks", {"team": team, "class": "0-99"})["tasks"]
assert [(task["name"], task["priorityClass"], task["priority"]) for task in listed()] == [("numbered", "42", 42)], listed()
numbered.set_priority(7)
assert [(task["priorityClass"], task["priority"]) for task in listed()] == [("7", 7)], listed()
numbered.delete()
for wrong in ({"image": "a b"}, {"priority_class": "none"}, {"pool": "none"}, {"nonsense": 1}, {"priority": 100}):
    try:
        low.submit("true", name="wrong", **wrong)
    except kuota.KuotaError as error:
        assert error.status == 422 and error.fields, (wrong, error.status, str(error))
    else:
        raise AssertionError(wrong)

text = manifest("low-2", "low", "lowpri") + "---" + manifest("mid-2", "low", "lowpri")
last, middle = low.submit_manifest(text)
middle.set_class("mid")
try:
    middle.set_class("none")
except ValueError as error:
    assert "high, mid, low" in str(error), error
else:
    raise AssertionError("there is no class none")
first = high.submit_manifest(manifest("high-2", "high", "highpri"))[0]
snapshot = low.snapshot()
print(snapshot)
assert "<td>high-2</td>" in snapshot._repr_html_()
assert len(low.snapshot(limit=1).rows) == 1
deadline = time.monotonic() + 30
while not (why := last.why()).position.startswith("2nd") and time.monotonic() < deadline:
    time.sleep(0.1)  # until Kueue has the class of mid-2
assert why.status == "Pending" and why.headline and why.position.startswith("2nd of 2"), why  # of its share
print(why)
try:
    last.wait(timeout=1, until="Running")
except TimeoutError as error:
    assert "low-2 is Pending" in str(error)
else:
    raise AssertionError("low-2 started")

fills.stop()
assert fills.wait(timeout=120) == "Stopped"
assert last.wait(timeout=120) == "Succeeded"
again = last.again()
assert again.name == "low-3" and again.wait(timeout=120) == "Succeeded"
fills.resume()
fills.wait(timeout=120, until="Running")
assert fills in low.jobs()
fills.delete()
try:
    for _ in range(120):
        fills.status()
        kuota.time.sleep(1)
except kuota.KuotaError as error:
    assert error.status == 404, error
else:
    raise AssertionError("fills was not deleted")
try:
    kuota.Queue("none", client=client).submit("true")
except kuota.KuotaError as error:
    assert error.status in (403, 404), error
`

// snapshotRow matches a row of a printed snapshot.
var snapshotRow = regexp.MustCompile(`(?m)^(?:\d+|-) +(\S+) +(?:low|mid|high) `)

// inSnapshots returns the names in the printed snapshots.
func inSnapshots(out string) (names []string) {
	for _, row := range snapshotRow.FindAllStringSubmatch(out, -1) {
		names = append(names, row[1])
	}
	return names
}

// watchAdmissions returns a function that returns the Jobs of a team in the order in which Kueue admitted
// them first.
func watchAdmissions(t *testing.T, c *clustertest.Cluster, team string) func() []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	informers, err := cache.New(c.Config, cache.Options{Scheme: cluster.Scheme, DefaultNamespaces: map[string]cache.Config{desired.DefaultNaming.Namespace(team): {}}})
	must(t, err)
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, &kueue.Workload{})
	must(t, err)
	var mu sync.Mutex
	var jobs []string
	observe := func(object any) {
		w := object.(*kueue.Workload)
		mu.Lock()
		defer mu.Unlock()
		if job := w.OwnerReferences[0].Name; meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, object any) { observe(object) }})
	must(t, err)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(jobs)
	}
}
