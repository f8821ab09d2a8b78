package kinds_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/history/recorder"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) {
	if os.Getenv("KUOTA_VERIFY") == "" { // the other operators take a while to build and to start
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
	records := &recorder.Recorder{Store: c.history, Cluster: connection, Tasks: service, Capacity: &capacity.Service{Cluster: connection, Tasks: service, Naming: desired.DefaultNaming}, Log: log}
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
	current = clustertest.Get(t)
	c, err := running()
	if err != nil {
		t.Fatal(err)
	}
	name := clustertest.Name("kinds")
	of := team{console: c, Cluster: current, t: t, name: name, namespace: desired.DefaultNaming.Namespace(name), member: governance.User{Name: name + "@example.com"}}
	of.queue = of.namespace + "-localqueue"
	of.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: training, weight: 60}, {name: dev, weight: 10}]
  pools: [{name: small, match: {instanceTypes: [ml.g5.2xlarge, ml.g6.12xlarge]}}]
`)
	of.Apply(t, fmt.Sprintf("{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {sharing: {strategy: DontLend}, quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}], members: [{kind: User, name: %s}]}}", name, of.member.Name))
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
			if err := of.create(k.manifest(object{name: "try", pods: 1, metadata: of.labels("dev")}), "--dry-run=server"); err != nil {
				return err
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

// runs waits until this many pods of an object run, and no others exist.
func (of team) runs(t *testing.T, k kind, name string, want int) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := of.TryKubectl("", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(k.pods, name), "-o", "jsonpath={.items[*].status.phase}")
		if phases := strings.Fields(out); err != nil || len(phases) != want || strings.Count(out, "Running") != want {
			return fmt.Errorf("%s: got pods %q (%v), want %d that run", name, out, err, want)
		}
		return nil
	})
}

func (of team) at(k kind, name string) tasks.Address {
	return tasks.Address{Namespace: of.namespace, Kind: k.name, Name: name}
}
