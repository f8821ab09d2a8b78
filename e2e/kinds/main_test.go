package kinds_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/dependencies"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) {
	if !clustertest.Verify { // the other operators take a while to build and to start
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.name != "JobSet" })
	}
	var operators []string
	for _, k := range kinds {
		if !slices.Contains(operators, k.operator) {
			operators = append(operators, k.operator)
		}
	}
	if servicesRun {
		operators = append(operators, servicesOperator)
	}
	clustertest.MainWith(m, clustertest.Options{Kinds: operators})
}

const soon = clustertest.Patience

var current *clustertest.Cluster

// console contains the parts of the console that the tests use.
type console struct {
	actions *actions.Service
	submit  *submit.Service
	history *history.Store
	// capacity has the figures of teams.
	capacity *capacity.Service
}

// running starts the console once for all tests.
var running = sync.OnceValues(func() (c console, err error) {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(current.Console, cluster.Options{Log: log, NoSessions: true})
	if err != nil {
		return c, err
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		return c, err
	}
	if c.history, err = history.Open(context.Background(), filepath.Join(current.Dir, "history.db"), history.Options{}); err != nil {
		return c, err
	}
	permission, audits := &access.Service{Cluster: connection}, &audit.Recorder{Cluster: connection, Log: log}
	service := queries.New(connection, permission)
	c.actions = &actions.Service{Cluster: connection, Access: permission, Tasks: service, Audit: audits}
	c.submit = &submit.Service{Cluster: connection, Access: permission, Audit: audits, Tasks: service, Naming: desired.DefaultNaming}
	c.capacity = &capacity.Service{Cluster: connection, Tasks: service, Naming: desired.DefaultNaming}
	successors := &dependencies.Reconciler{Now: time.Now, Ending: func(_ context.Context, key tasks.Key) (dependencies.Ending, error) {
		if t := service.Index.ByKey(key); t == nil || !t.State.Finished() {
			return dependencies.NotEnded, nil
		}
		return dependencies.Failed, nil
	}}
	if err := successors.SetupWithManager(connection.Manager, nil, nil); err != nil {
		return c, err
	}
	records := &recorder.Recorder{Store: c.history, Cluster: connection, Tasks: service, Capacity: c.capacity, Log: log}
	records.Observe()
	for _, run := range []func(context.Context) error{connection.Run, records.Run} {
		go func() {
			if err := run(context.Background()); err != nil {
				panic(err)
			}
		}()
	}
	return c, nil
})

// team is a team with four GPUs that neither lends nor borrows, and one member.
type team struct {
	console
	*clustertest.Cluster
	t                      *testing.T
	name, namespace, queue string
	member                 governance.User
}

// newTeam creates a policy that requires queues and a team, and waits until the member may
// create all of the kinds.
func newTeam(t *testing.T) team {
	t.Helper()
	return newTeamWith(t, map[string]int{"training": 60, "dev": 10}, "sharing: {strategy: DontLend}, quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]")
}

// newTeamWith is newTeam with other priority classes, by their weights, and another spec
// of the allocation, in flow YAML.
func newTeamWith(t *testing.T, weights map[string]int, allocation string) team {
	t.Helper()
	var classes []string
	for class := range weights {
		classes = append(classes, fmt.Sprintf("{name: %s, weight: %d}", class, weights[class]))
	}
	slices.Sort(classes)
	current = clustertest.Get(t)
	c, err := running()
	if err != nil {
		t.Fatal(err)
	}
	name := clustertest.Name("kinds")
	of := team{console: c, Cluster: current, t: t, name: name, namespace: desired.DefaultNaming.Namespace(name), member: governance.User{Name: name + "@example.com"}}
	of.queue = of.namespace + "-localqueue"
	of.Apply(t, fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [%s]
  pools: [{name: small, match: {instanceTypes: [ml.g5.2xlarge, ml.g6.12xlarge]}}]
`, strings.Join(classes, ", ")))
	of.Apply(t, fmt.Sprintf("{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {%s, members: [{kind: User, name: %s}]}}", name, allocation, of.member.Name))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := of.TryKubectl("", "get", "events", "-n", of.namespace, "-o", "custom-columns=KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message")
			t.Logf("events:\n%s", out)
		}
		_, _ = of.TryKubectl("", "annotate", "computeallocation", name, "kuota.dev/drain=true")
		_, _ = of.TryKubectl("", "delete", "computeallocation", name, "--wait=false")
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := of.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		// Kueue restarts with a new policy.
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("got conditions %+v, want Ready at generation %d", policy.Status.Conditions, policy.Generation)
		}
		for _, k := range kinds {
			if framework, _ := enforcement.TaskKind(k.name); policy.Status.Kueue == nil || !slices.Contains(policy.Status.Kueue.Integrations, framework.Framework) {
				return fmt.Errorf("got Kueue status %+v, want integration %s", policy.Status.Kueue, framework.Framework)
			}
			for class := range weights {
				if err := of.create(k.manifest(object{name: "try", pods: 1, metadata: of.labels(class)}), "--dry-run=server"); err != nil {
					return err
				}
				break // the API server knows all of them, or none
			}
		}
		got, err := of.submit.Team(ctx, of.member, name)
		if err == nil && len(got.Pools) == 0 {
			err = fmt.Errorf("the team has no pools: %+v", got)
		}
		return err
	})
	return of
}

// labels returns the metadata of a task of a priority class.
func (of team) labels(class string) string {
	return fmt.Sprintf("labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: %s-priority},", class)
}

// create creates an object as the member.
func (of team) create(manifest string, args ...string) error {
	return of.kubectl(of.fill(manifest), append([]string{"create", "-f", "-", "--as", of.member.Name}, args...)...)
}

// kubectl returns the output of kubectl as an error if it fails.
func (of team) kubectl(input string, args ...string) error {
	if out, err := of.TryKubectl(input, args...); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return nil
}

// fill replaces the placeholders NAMESPACE and QUEUE in text.
func (of team) fill(text string) string {
	return strings.NewReplacer("NAMESPACE", of.namespace, "QUEUE", of.queue).Replace(text)
}

// is waits until a task has a state for the member, and what check requires.
func (of team) is(t *testing.T, k kind, name string, state tasks.State, check func(queries.Detail) error) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		d, err := of.submit.Tasks.Detail(ctx, of.member, of.namespace, k.name, name, "")
		if err != nil {
			return err
		}
		if d.NoWorkload || d.State != state {
			return fmt.Errorf("%s is %s (%s), want %s", name, d.State, d.Message, state)
		}
		if check == nil {
			return nil
		}
		return check(d)
	})
}

// runs waits until this many pods of an object run, and no others can start.
func (of team) runs(t *testing.T, k kind, name string, want int) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		phases, err := of.phases(k, name)
		if running := slices.DeleteFunc(slices.Clone(phases), func(p string) bool { return p != "Running" }); err != nil || len(phases) != want || len(running) != want {
			return fmt.Errorf("%s: got pods %q (%v), want %d that run", name, phases, err, want)
		}
		return nil
	})
}

// neverStarts checks for two seconds that no pod of an object can start.
func (of team) neverStarts(t *testing.T, k kind, name string) {
	t.Helper()
	for range 40 {
		if phases, err := of.phases(k, name); err != nil || len(phases) > 0 {
			t.Fatalf("%s got pods that can start: %q (%v)", name, phases, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// phases returns the phases of the pods of an object, except those that wait for Kueue.
func (of team) phases(k kind, name string) ([]string, error) {
	out, err := of.TryKubectl("", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(k.pods, name), "-o", `jsonpath={range .items[*]}{.status.phase} {.spec.schedulingGates[*].name}{"\n"}{end}`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	var phases []string
	for line := range strings.Lines(out) {
		if phase, gates, _ := strings.Cut(strings.TrimSpace(line), " "); !k.gated || !strings.Contains(gates, "kueue.x-k8s.io/admission") {
			phases = append(phases, phase)
		}
	}
	return phases, nil
}

// end submits a task of a pod, lets it end, and returns once it has ended. It returns
// false for a kind that never ends.
func (of team) end(t *testing.T, k kind, name string) bool {
	t.Helper()
	if k.ends == never {
		return false
	}
	if err := of.create(k.manifest(object{name: name, pods: 1, metadata: of.labels("dev"), annotations: "pod-complete.stage.kwok.x-k8s.io/delay: 1s,"})); err != nil {
		t.Fatal(err)
	}
	if k.ends == whenPodsEnd {
		of.runs(t, k, name, 1)
		pod := of.Kubectl(t, "", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(k.pods, name), "-o", "name")
		of.Kubectl(t, "", "patch", strings.TrimSpace(pod), "-n", of.namespace, "--subresource=status", "-p", `{"status": {"phase": "Succeeded"}}`)
	}
	state := tasks.Succeeded
	if k.ends == failsWithNoRay {
		state = tasks.Failed
	}
	of.is(t, k, name, state, nil)
	if k.page { // one that was submitted to start after it
		after := tasks.After{UID: of.Kubectl(t, "", "get", k.resource, name, "-n", of.namespace, "-o", "jsonpath={.metadata.uid}"), Any: true}
		gated := fmt.Sprintf("%s annotations: {%s: %s},", of.labels("dev"), tasks.AdmissionGatedByAnnotation, after.Gate())
		if err := of.create(k.manifest(object{name: name + "-next", pods: 1, metadata: gated})); err != nil {
			t.Fatal(err)
		}
		of.runs(t, k, name+"-next", 1)
		of.Kubectl(t, "", "delete", k.resource, name+"-next", "-n", of.namespace)
	}
	return true
}

// remembers checks what history has of the task first after its deletion: it ran three
// times, was preempted by the task third, and was stopped.
func (of team) remembers(t *testing.T, first history.Task) {
	t.Helper()
	if first.Team != of.name || first.PriorityClass != "dev-priority" || first.Preemptions != 1 || first.Requests["nvidia.com/gpu"] != 4 {
		t.Errorf("history has %+v", first)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, events, _, err := of.history.Timeline(ctx, first.UID)
		got := map[string]int{}
		for _, e := range events {
			if got[e.Type]++; e.Type == string(timeline.Preempted) {
				got["by "+e.Preemptor.Name]++
			}
		}
		if err != nil || got["Admitted"] != 3 || got["Preempted"] != 1 || got["by third"] != 1 || got["Evicted"] != 1 {
			return fmt.Errorf("got the events %v (%v), want three admissions, one preemption by third and one eviction", got, err)
		}
		return nil
	})
}

func (of team) at(k kind, name string) tasks.Address {
	return tasks.Address{Namespace: of.namespace, Kind: k.name, Name: name}
}
