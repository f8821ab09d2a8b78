package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Kueue's configuration, and how long a restart of Kueue may take.
const (
	kueueNamespace = "kueue-system"
	configKey      = "controller_manager_config.yaml"
	rolledAt       = "clustertest/rolled"
	rollLimit      = Patience
)

// Configure edits Kueue's configuration the way an admin does: it writes the
// ConfigMap, restarts the Deployment, and returns when Kueue runs with the text
// that edit returned. It restarts Kueue even when edit changes nothing, because
// Kueue may not have loaded an earlier edit. The configuration stays until the next
// edit. No other test that needs Kueue may run at the same time.
func (c *Cluster) Configure(t testing.TB, edit func(text string) string) {
	t.Helper()
	ctx := t.Context()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var config corev1.ConfigMap
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: kueueNamespace, Name: "kueue-manager-config"}, &config); err != nil {
			return err
		}
		config.Data[configKey] = edit(config.Data[configKey])
		return c.Client.Update(ctx, &config)
	})
	if err != nil {
		t.Fatalf("write Kueue's configuration: %v", err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kueueNamespace, Name: "kueue-controller-manager"}}
	mark := Name("roll")
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, rolledAt, mark)
	if err := c.Client.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatalf("roll Kueue's Deployment out: %v", err)
	}
	defer func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(c.Dir, "logs", "kueue.log"))
			t.Logf("last 2000 bytes of Kueue's log:\n%s", log[max(0, len(log)-2000):])
		}
	}()
	Eventually(t, rollLimit, func(ctx context.Context) error {
		if err := c.rolled(mark); err != nil {
			return err
		}
		return c.answers(ctx)
	})
}

// rolled returns an error until Kueue is ready with the pod template that has mark.
// The local cluster writes that template to a file once Kueue reports ready.
func (c *Cluster) rolled(mark string) error {
	running, err := os.ReadFile(filepath.Join(c.Dir, "run", "kueue-template.json"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(running), mark) {
		return errors.New("rollout pending: Kueue has not restarted")
	}
	return nil
}

// answers returns an error until Kueue's webhooks answer, which is a moment after
// Kueue reports ready. A ClusterQueue has both a mutating and a validating webhook.
func (c *Cluster) answers(ctx context.Context) error {
	probe := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: Name("probe")}}
	return c.Client.Create(ctx, probe, client.DryRunAll)
}

// ReadyTeams creates teams as CreateTeams does, and waits until they are ready.
func (c *Cluster) ReadyTeams(t testing.TB, teams int) string {
	t.Helper()
	prefix := c.CreateTeams(t, teams, 0)
	c.AwaitTeams(t, prefix, teams, func(a *v1alpha1.ComputeAllocation) bool {
		return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
	})
	return prefix
}

// CreateTeams creates allocations of 4 GPUs by 16 clients, and returns the prefix of their names. A
// name is the prefix, a hyphen and a number from 0. Team i is in the department
// prefix-d(i mod departments), which has 8 GPUs more than its teams, unless departments is 0.
func (c *Cluster) CreateTeams(t testing.TB, teams, departments int) string {
	t.Helper()
	prefix := Name("m")
	began := time.Now()
	labels := map[string]string{"test": prefix}
	gpus := func(n int) []v1alpha1.QuotaRow {
		return []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(n))}}}
	}
	for i := range departments {
		department := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-d%d", prefix, i), Labels: labels}, Spec: v1alpha1.DepartmentSpec{Quota: gpus(4 * (teams/departments + 2))}}
		if err := c.Client.Create(t.Context(), department); err != nil {
			t.Error(err)
		}
	}
	var creating sync.WaitGroup
	for worker := range 16 {
		creating.Go(func() {
			for i := worker; i < teams; i += 16 {
				allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: labels}, Spec: v1alpha1.ComputeAllocationSpec{Quota: gpus(4)}}
				if departments > 0 {
					allocation.Spec.Department = fmt.Sprintf("%s-d%d", prefix, i%departments)
				}
				if err := c.Client.Create(t.Context(), allocation); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	t.Logf("created after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		_ = c.Client.DeleteAllOf(context.Background(), &v1alpha1.ComputeAllocation{}, client.MatchingLabels(labels))
		_ = c.Client.DeleteAllOf(context.Background(), &v1alpha1.Department{}, client.MatchingLabels(labels))
	})
	return prefix
}

// AwaitTeams waits until all of the teams that CreateTeams created are as is says.
func (c *Cluster) AwaitTeams(t testing.TB, prefix string, teams int, is func(*v1alpha1.ComputeAllocation) bool) {
	t.Helper()
	Eventually(t, 20*time.Minute, func(ctx context.Context) error {
		time.Sleep(max(time.Second, time.Duration(teams)*time.Millisecond)) // poll slowly: the list loads the API server too
		var list v1alpha1.ComputeAllocationList
		if err := c.Client.List(ctx, &list, client.MatchingLabels{"test": prefix}); err != nil {
			return err
		}
		n := 0
		for i := range list.Items {
			if is(&list.Items[i]) {
				n++
			}
		}
		if n < teams {
			return fmt.Errorf("got %d teams, want %d", n, teams)
		}
		return nil
	})
}
