package bypasses_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const waitLimit = clustertest.Patience

func TestMain(m *testing.M) { clustertest.Main(m) }

var current *clustertest.Cluster

// controllers starts Kuota's controllers once for all tests.
var controllers = sync.OnceValue(func() error {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(current.Console, cluster.Options{Log: log})
	if err != nil {
		return err
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall}); err != nil {
		return err
	}
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return nil
})

// namespace is the governed namespace of a team with four GPUs.
type namespace struct {
	*clustertest.Cluster
	team, name, queue string
}

// newNamespace creates a policy that requires queues and a team, and returns the
// team's namespace once the team is ready.
func newNamespace(t *testing.T) namespace {
	t.Helper()
	current = clustertest.Get(t)
	if err := controllers(); err != nil {
		t.Fatal(err)
	}
	team := clustertest.Name("governed")
	ns := namespace{current, team, "hyperpod-ns-" + team, "hyperpod-ns-" + team + "-localqueue"}
	ns.enforce(t, v1alpha1.RequireQueue)
	ns.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]}}`, team))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := ns.TryKubectl("", "get", "events", "-n", ns.name, "-o", "custom-columns=KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message")
			t.Logf("events:\n%s", out)
		}
		_, _ = ns.TryKubectl("", "annotate", "computeallocation", team, "kuota.dev/drain=true")
		_, _ = ns.TryKubectl("", "delete", "computeallocation", team, "--wait=false")
	})
	clustertest.Eventually(t, waitLimit, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := ns.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", a.Status.Conditions)
		}
		return nil
	})
	return ns
}

// enforce applies the policy with this enforcement and waits until it is active.
func (ns namespace) enforce(t *testing.T, enforcement v1alpha1.Enforcement) {
	t.Helper()
	ns.enforceWith(t, enforcement, "")
}

// enforceWith is enforce with more priority classes, in flow YAML.
func (ns namespace) enforceWith(t *testing.T, enforcement v1alpha1.Enforcement, classes string) {
	t.Helper()
	ns.Apply(t, fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: training, weight: 60}, {name: dev, weight: 10}%s]
  enforcement: %s
  pools: [{name: small, match: {instanceTypes: [ml.g5.2xlarge, ml.g6.12xlarge]}}]
`, classes, enforcement))
	ns.waitForPolicy(t)
}

// waitForPolicy waits until the policy is active and its status lists these
// integrations of Kueue.
func (ns namespace) waitForPolicy(t *testing.T, integrations ...string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := ns.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("got conditions %+v, want Ready at generation %d", policy.Status.Conditions, policy.Generation)
		}
		for _, name := range integrations {
			if policy.Status.Kueue == nil || !strings.Contains(" "+strings.Join(policy.Status.Kueue.Integrations, " ")+" ", " "+name+" ") {
				return fmt.Errorf("got Kueue status %+v, want integration %s", policy.Status.Kueue, name)
			}
		}
		return nil
	})
}

// rejects checks that the API server rejects an object with a message that contains
// texts.
func (ns namespace) rejects(t *testing.T, manifest string, texts ...string) {
	t.Helper()
	err := ns.TryCreate(t.Context(), ns.fill(manifest))
	if err == nil {
		t.Errorf("accepted, want a rejection:\n%s", ns.fill(manifest))
		return
	}
	for _, text := range append(texts, "kuota-enforcement-") {
		if text = ns.fill(text); !strings.Contains(err.Error(), text) {
			t.Errorf("rejection: got %q, want it to contain %q", err, text)
		}
	}
}

// accepts checks that the API server accepts an object.
func (ns namespace) accepts(t *testing.T, manifest string) {
	t.Helper()
	ns.CreateNew(t, ns.fill(manifest))
}

// fill replaces the placeholders NAMESPACE and QUEUE in text.
func (ns namespace) fill(text string) string {
	return strings.NewReplacer("NAMESPACE", ns.name, "QUEUE", ns.queue).Replace(text)
}

// running waits until want pods that match selector run.
func (ns namespace) running(t *testing.T, selector string, want int) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "get", "pods", "-n", ns.name, "-l", selector, "-o", "jsonpath={.items[*].status.phase}")
		if err != nil {
			return err
		}
		if n := strings.Count(out, "Running"); n != want {
			return fmt.Errorf("%s: got %d running pods (%s), want %d", selector, n, out, want)
		}
		return nil
	})
}
