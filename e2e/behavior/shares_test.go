package behavior_test

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A share that gets quota takes its waiting tasks along, and its admitted ones stay in the team's
// queue until they end. When it loses the quota, its ClusterQueue stays until its tasks have ended.
func shareGetsQuota(t *testing.T) {
	s := newScenario(t, 1, 8)
	share := func(quota int64) option {
		return func(spec *v1alpha1.ComputeAllocationSpec, pool string) {
			batch := v1alpha1.Share{Name: "batch", Weight: 1}
			if quota > 0 {
				batch.Quota = []v1alpha1.WindowQuota{{InstanceType: pool, Accelerators: &quota}}
			}
			spec.Shares = []v1alpha1.Share{batch}
		}
	}
	m := s.newTeam("a", gpus(2), sharing(v1alpha1.DontLend), share(0))
	own := desired.DefaultNaming.ShareClusterQueue(m.name, "batch")
	submit := func(name string) *task {
		k := m.jobOf(name, 1, "")
		k.job.Labels["kueue.x-k8s.io/queue-name"] = desired.DefaultNaming.ShareQueue(m.name, "batch")
		if err := m.cluster.Client.Create(t.Context(), k.job); err != nil {
			t.Fatal(err)
		}
		m.tasks = append(m.tasks, k)
		return k
	}
	admittedBy := func(k *task, queue string) {
		t.Helper()
		m.await(func() error {
			w, err := k.workload()
			switch {
			case err != nil:
				return err
			case w.Status.Admission == nil && queue != "":
				return fmt.Errorf("%s is not admitted, want by %s", k.name, queue)
			case w.Status.Admission != nil && string(w.Status.Admission.ClusterQueue) != queue:
				return fmt.Errorf("%s is admitted by %s, want %q", k.name, w.Status.Admission.ClusterQueue, queue)
			}
			return nil
		})
	}
	end := func(k *task) {
		t.Helper()
		if err := m.cluster.Client.Delete(t.Context(), k.job, client.PropagationPolicy("Background")); err != nil {
			t.Fatal(err)
		}
	}
	first, second := submit("first"), submit("second")
	admittedBy(first, m.queueName())
	admittedBy(second, m.queueName())
	third := submit("third")
	third.hasConditions("QuotaReserved=False")

	m.update(share(1))
	admittedBy(third, own)
	m.uses(2, 0)
	fourth := submit("fourth")
	fourth.hasConditions("QuotaReserved=False")
	end(third)
	admittedBy(fourth, own)
	fifth := submit("fifth")
	end(first) // the room of the team is not that of the share
	m.uses(1, 0)
	fifth.hasConditions("QuotaReserved=False")

	m.update(share(0))
	admittedBy(fifth, m.queueName())
	admittedBy(fourth, own)
	end(fourth)
	m.await(func() error {
		err := m.cluster.Client.Get(t.Context(), client.ObjectKey{Name: own}, &kueue.ClusterQueue{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("ClusterQueue %s still exists (%v)", own, err)
		}
		return nil
	})
}
