package behavior_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

const configKey = "controller_manager_config.yaml"

// fairSharing enables or disables fair sharing in Kueue's configuration, and
// restores the previous configuration when the test ends. Kueue reads it only at
// its start.
func fairSharing(t *testing.T, on bool) {
	t.Helper()
	c := setup(t)
	before := kueueConfig(t, c)
	var config map[string]any
	if err := yaml.Unmarshal([]byte(before), &config); err != nil {
		t.Fatal(err)
	}
	if _, enabled := config["fairSharing"]; enabled == on {
		return
	}
	delete(config, "fairSharing")
	if on {
		config["fairSharing"] = map[string]any{"preemptionStrategies": []string{"LessThanOrEqualToFinalShare", "LessThanInitialShare"}}
	}
	after, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	configure(t, c, string(after), on)
	t.Cleanup(func() { configure(t, c, before, !on) })
}

// configure writes Kueue's configuration, restarts Kueue, and waits until it runs
// with that configuration.
func configure(t *testing.T, c *clustertest.Cluster, text string, fair bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	probe := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("probe")}}
	if err := c.Client.Create(ctx, probe); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Client.Delete(ctx, probe) }()

	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-manager-config"}}
	patch(ctx, t, c, config, map[string]any{"data": map[string]any{configKey: text}})
	// Where Kueue runs in a Deployment, only a changed pod template restarts it.
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"}}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err == nil {
		patch(ctx, t, c, deployment, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{"kuota.dev/restarted": time.Now().UTC().Format(time.RFC3339Nano)},
		}}}})
	} else if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	wait(t, ctx, func() error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(probe), probe); err != nil {
			return err
		}
		if meta.FindStatusCondition(probe.Status.Conditions, kueue.ClusterQueueActive) == nil {
			return fmt.Errorf("ClusterQueue %s: got no condition Active from Kueue, want one", probe.Name)
		}
		if got := probe.Status.FairSharing != nil; got != fair {
			return fmt.Errorf("fair sharing enabled: got %t, want %t", got, fair)
		}
		// Kueue's webhooks answer a moment later, and every create needs them.
		return c.Client.Create(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: probe.Name + "-2"}}, client.DryRunAll)
	})
}

func kueueConfig(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	var config corev1.ConfigMap
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "kueue-system", Name: "kueue-manager-config"}, &config); err != nil {
		t.Fatal(err)
	}
	return config.Data[configKey]
}

func patch(ctx context.Context, t *testing.T, c *clustertest.Cluster, object client.Object, change any) {
	t.Helper()
	text, err := yaml.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", text)); err != nil {
		t.Fatal(err)
	}
}

// wait waits until check returns nil, for states that belong to no scenario. It
// fails the test with the last error when ctx is done.
func wait(t *testing.T, ctx context.Context, check func() error) {
	t.Helper()
	var last error
	for {
		err := check()
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", limit, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
