package bypasses_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/reconcile"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const soon = 30 * time.Second

func TestMain(m *testing.M) { clustertest.Main(m) }

var current *clustertest.Cluster

// controllers runs Kuota's, once for all tests.
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

// place is a governed namespace of a team with four GPUs.
type place struct {
	*clustertest.Cluster
	team, namespace, queue string
}

// governed makes a policy that enforces, and a team.
func governed(t *testing.T) place {
	t.Helper()
	current = clustertest.Get(t)
	if err := controllers(); err != nil {
		t.Fatal(err)
	}
	team := clustertest.Name("held")
	p := place{current, team, "hyperpod-ns-" + team, "hyperpod-ns-" + team + "-localqueue"}
	p.enforce(t, v1alpha1.RequireQueue)
	p.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]}}`, team))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := p.TryKubectl("", "get", "events", "-n", p.namespace, "-o", "custom-columns=KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message")
			t.Logf("events:\n%s", out)
		}
		_, _ = p.TryKubectl("", "annotate", "computeallocation", team, "kuota.dev/drain=true")
		_, _ = p.TryKubectl("", "delete", "computeallocation", team, "--wait=false")
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := p.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", a.Status.Conditions)
		}
		return nil
	})
	return p
}

// enforce sets the policy, and waits until it acts.
func (p place) enforce(t *testing.T, how v1alpha1.Enforcement) {
	t.Helper()
	p.Apply(t, fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: training, weight: 60}, {name: dev, weight: 10}]
  enforcement: %s
  pools: [{name: small, match: {instanceTypes: [ml.g5.2xlarge, ml.g6.12xlarge]}}]
`, how))
	p.settled(t)
}

// settled waits until the policy is in force, with Kueue as it is now.
func (p place) settled(t *testing.T, integrations ...string) {
	t.Helper()
	clustertest.Eventually(t, time.Minute, func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := p.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("the policy is not in force: %+v", policy.Status.Conditions)
		}
		for _, name := range integrations {
			if policy.Status.Kueue == nil || !strings.Contains(" "+strings.Join(policy.Status.Kueue.Integrations, " ")+" ", " "+name+" ") {
				return fmt.Errorf("Kueue is seen with %+v", policy.Status.Kueue)
			}
		}
		return nil
	})
}

// refused has the API server refuse an object, with a text.
func (p place) refused(t *testing.T, manifest string, texts ...string) {
	t.Helper()
	out, err := p.TryKubectl(p.fill(manifest), "create", "-f", "-")
	if err == nil {
		t.Errorf("taken: %s", out)
		return
	}
	for _, text := range append(texts, "kuota-enforcement-") {
		if text = p.fill(text); !strings.Contains(out, text) {
			t.Errorf("the refusal says %q, want %q", out, text)
		}
	}
}

// taken has the API server take an object.
func (p place) taken(t *testing.T, manifest string) {
	t.Helper()
	p.Kubectl(t, p.fill(manifest), "create", "-f", "-")
}

// fill writes what differs between places into a text.
func (p place) fill(text string) string {
	return strings.NewReplacer("NAMESPACE", p.namespace, "QUEUE", p.queue).Replace(text)
}

// running waits until some pods run that a selector finds.
func (p place) running(t *testing.T, selector string, want int) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := p.TryKubectl("", "get", "pods", "-n", p.namespace, "-l", selector, "-o", "jsonpath={.items[*].status.phase}")
		if err != nil {
			return err
		}
		if n := strings.Count(out, "Running"); n != want {
			return fmt.Errorf("%d pods of %s run (%s), want %d", n, selector, out, want)
		}
		return nil
	})
}
