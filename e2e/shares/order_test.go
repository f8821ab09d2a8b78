package shares_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestOrder checks that the console shows the tasks of a team with shares in the order in
// which Kueue admits them: those of the share with less usage first, whatever their
// priority, and by priority within a share.
func TestOrder(t *testing.T) {
	c, _ := setup(t)
	podless.Run(t, c)
	countUsage(t, c, orderHalfLife)
	t.Run("a new team", func(t *testing.T) { checkOrder(t, createTeam(t, c, 1, twoShares...)) })
	t.Run("an existing team", func(t *testing.T) {
		team := createTeam(t, c, 1)
		shares, err := json.Marshal(map[string]any{"spec": map[string]any{"shares": twoShares}})
		if err != nil {
			t.Fatal(err)
		}
		c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", string(shares))
		checkOrder(t, team)
	})
}

const orderHalfLife = 10 * time.Second

var twoShares = []v1alpha1.Share{{Name: "busy", Weight: 1}, {Name: "idle", Weight: 1}}

// checkOrder checks the order of the tasks of a team with twoShares and one GPU.
func checkOrder(t *testing.T, team string) {
	c, service := setup(t)
	admissions := watchAdmissions(t, c, team)
	submit := func(share string, i int, class string, runs time.Duration) *batchv1.Job {
		t.Helper()
		job := job(team, share, i)
		job.Labels[desired.PriorityClassLabel] = desired.PriorityClassName(class)
		podless.SetUp(job, runs, 0)
		if err := c.Client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		return job
	}

	// One task of share busy uses the only GPU until its share has used much.
	running := submit("busy", 0, "training", 0)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if usage := decayedUsage(t, c, team, "busy"); usage["busy"] < 0.7 {
			return fmt.Errorf("the decayed usage is %v", usage)
		}
		return nil
	})
	const short = orderHalfLife / 20
	submit("busy", 1, "dev", short)
	submit("busy", 2, "training", short)
	submit("idle", 1, "dev", short)
	submit("idle", 2, "training", short)
	want := []string{"idle-2", "idle-1", "busy-2", "busy-1"}

	reader := governance.User{Name: member}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		scope, err := service.Scope(ctx, reader)
		if err != nil {
			return err
		}
		head, of, err := service.HeadWithin(ctx, scope, team, len(want)+1, 0)
		if err != nil {
			return err
		}
		var shown []string
		for _, task := range head {
			shown = append(shown, task.Name)
		}
		if diff := cmp.Diff(want, shown); diff != "" || of != len(want) {
			return fmt.Errorf("the page of the team shows the first tasks of %d (-want +got):\n%s", of, diff)
		}
		for i, name := range want {
			d, err := service.Detail(ctx, reader, desired.DefaultNaming.Namespace(team), "Job", name, "")
			if err != nil {
				return err
			}
			if d.ClusterQueuePosition != i+1 || d.ClusterQueueLength != len(want) || !d.ByUsage || !d.ByKueue {
				return fmt.Errorf("the page of %s shows %+v, want position %d of %d", name, d.QueuePosition, i+1, len(want))
			}
		}
		return nil
	})

	if err := c.Client.Delete(t.Context(), running, client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if diff := cmp.Diff(append([]string{"busy-0"}, want...), admissions()); diff != "" {
			return fmt.Errorf("Kueue admitted (-want +got):\n%s", diff)
		}
		return nil
	})
}

// watchAdmissions returns a function that returns the Jobs of a team that Kueue has
// admitted, in the order of their first admission.
func watchAdmissions(t *testing.T, c *clustertest.Cluster, team string) func() []string {
	t.Helper()
	var mu sync.Mutex
	var jobs []string
	watchWorkloads(t, c, team, func(w *kueue.Workload) {
		mu.Lock()
		defer mu.Unlock()
		if job := w.OwnerReferences[0].Name; meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(jobs)
	}
}
