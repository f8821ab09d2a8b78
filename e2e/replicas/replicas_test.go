package replicas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// teams is how many allocations are changed.
const teams = 10

// TestLeaderKilledPausedAndStopped disturbs the leader in all ways while two replicas
// serve, during saves, changes and tasks.
func TestLeaderKilledPausedAndStopped(t *testing.T) {
	plan := planOf()
	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	database := historytest.Start(t).Database(t)
	recorded := watchVersions(t, c)
	a := consoles.New(t, c, "a", database)
	a.WaitReady()
	a.WaitLeads(takeoverTime)
	b := consoles.New(t, c, "b", database)
	b.WaitReady()
	began := time.Now()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	saves := &saver{client: consoles.SignIn(t, a), replicas: []*consoles.Replica{a, b}}
	load.Go(func() { saves.run(ctx, t) })
	changed := make([]string, teams)
	for i := range changed {
		changed[i] = newTeam(t, c, "changed", 1)
	}
	load.Go(func() { change(ctx, t, c, changed, plan.changes) })
	waiting := newWaitingTasks(t, c)
	load.Go(func() { changePriorities(ctx, t, c, waiting, plan.tasks) })
	busy := newTeam(t, c, "busy", 4)
	jobs := 0
	load.Go(func() { jobs = submit(ctx, t, c, busy) })

	leads, follows := a, b
	swap := func(how string, took time.Duration) {
		t.Logf("leader %s: the other replica leads after %s", how, took.Round(time.Millisecond))
		leads, follows = follows, leads
	}
	store, err := history.Open(t.Context(), database, history.Options{})
	must(t, err)
	defer store.Close()
	// settle waits until the new leader records versions and history, as it does some
	// seconds after it took over. Otherwise two gaps become one.
	settle := func() {
		t.Helper()
		ready := time.Now()
		recorded.waitForAll(t, c, changed)
		clustertest.Eventually(t, patience, func(ctx context.Context) error {
			if until, err := store.SampledUntil(ctx); err != nil || !until.After(ready) {
				return fmt.Errorf("history ends at %s (%v)", until, err)
			}
			return nil
		})
	}
	disturbances := 0
	for i := range max(plan.kills, plan.pauses, plan.stops) {
		if i < plan.kills {
			leads.End(syscall.SIGKILL)
			swap("killed", follows.WaitLeads(takeoverTime))
			disturbances++
			follows.Start()
			follows.WaitReady()
			settle()
		}
		if i < plan.pauses {
			paused := time.Now()
			leads.Signal(syscall.SIGSTOP)
			took := follows.WaitLeads(takeoverTime)
			time.Sleep(time.Until(paused.Add(plan.pause))) // the condition under test is this time
			leads.Signal(syscall.SIGCONT)
			swap("paused", took)
			disturbances++
			follows.WaitEnd(endTime) // it sees that another one leads
			follows.Start()
			follows.WaitReady()
			settle()
		}
		if i < plan.stops {
			leads.End(syscall.SIGTERM)
			swap("stopped", follows.WaitLeads(handoverTime))
			disturbances++
			follows.Start()
			follows.WaitReady()
			settle()
		}
	}
	stop()
	load.Wait()

	t.Logf("%d saves, %d tasks", len(saves.saved), jobs)
	if len(saves.saved) == 0 || jobs == 0 {
		t.Fatal("nothing was saved or submitted")
	}
	all := append(append([]string{busy}, changed...), saves.saved...)
	checkApplied(t, c, all)
	recorded.check(t, c, all)
	consoles.CheckTasks(t, store, busy, began, jobs)
	consoles.CheckGaps(t, store, began, disturbances, maxGap)
	consoles.CheckIntervals(t, database)
}

// TestThousandAllocationsOfTwoReplicas measures how long 1,000 teams that are created at once take to become ready, with two replicas.
func TestThousandAllocationsOfTwoReplicas(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	c := clustertest.Get(t)
	database := historytest.Start(t).Database(t)
	a, b := consoles.New(t, c, "a", database), consoles.New(t, c, "b", database)
	a.WaitReady()
	b.WaitReady()
	began := time.Now()
	c.ReadyTeams(t, 1000)
	fmt.Printf("figure thousand_allocations_two_replicas %.1f s\n", time.Since(began).Seconds())
}

func allocation(ctx context.Context, c *clustertest.Cluster, team string) (a v1alpha1.ComputeAllocation, err error) {
	return a, c.Client.Get(ctx, client.ObjectKey{Name: team}, &a)
}

// newTeam creates an allocation, and returns its name.
func newTeam(t *testing.T, c *clustertest.Cluster, prefix string, accelerators int) string {
	t.Helper()
	name := clustertest.Name(prefix)
	c.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {fairShareWeight: 1, quota: [{instanceType: ml.g5.2xlarge, accelerators: %d}]}}`, name, accelerators))
	clustertest.Eventually(t, patience, func(ctx context.Context) error { return applied(ctx, c, name) })
	return name
}

// change changes one allocation after the other, perSecond times a second, until ctx
// ends.
func change(ctx context.Context, t *testing.T, c *clustertest.Cluster, names []string, perSecond int) {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for n := 2; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		object := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: names[n%len(names)]}}
		patch := fmt.Sprintf(`{"spec":{"fairShareWeight":%d,"quota":[{"instanceType":"ml.g5.2xlarge","accelerators":%d}]}}`, 1+n/len(names)%90, 1+rand.IntN(2))
		if err := c.Client.Patch(context.WithoutCancel(ctx), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Errorf("change %s: %v", object.Name, err)
			return
		}
	}
}

// newWaitingTasks returns the keys of twenty Workloads of a team on hold.
func newWaitingTasks(t *testing.T, c *clustertest.Cluster) (keys []client.ObjectKey) {
	t.Helper()
	team := clustertest.Name("waiting")
	c.Apply(t, fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: %s}, spec: {fairShareWeight: 1, activation: Hold, quota: [{instanceType: ml.trn1.32xlarge, accelerators: 1}]}}`, team))
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		return c.Client.Get(ctx, client.ObjectKey{Namespace: desired.DefaultNaming.Namespace(team), Name: desired.DefaultNaming.LocalQueue(team)}, &kueue.LocalQueue{})
	})
	for i := range 20 {
		must(t, c.TryApply(t.Context(), job(team, i, "aws.amazon.com/neurondevice")))
	}
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		var list kueue.WorkloadList
		err := c.Client.List(ctx, &list, client.InNamespace(desired.DefaultNaming.Namespace(team)))
		if err == nil && len(list.Items) != 20 {
			err = fmt.Errorf("%d Workloads, want 20", len(list.Items))
		}
		keys = nil
		for i := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
		return err
	})
	return keys
}

// changePriorities changes the priority of one Workload after the other, perSecond
// times a second, until ctx ends. Their order changes with it.
func changePriorities(ctx context.Context, t *testing.T, c *clustertest.Cluster, keys []client.ObjectKey, perSecond int) {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		key := keys[n%len(keys)]
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		patch := fmt.Sprintf(`{"spec":{"priority":%d}}`, rand.IntN(1_000_000))
		if err := c.Client.Patch(context.WithoutCancel(ctx), w, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Errorf("change %s: %v", key, err)
			return
		}
	}
}

// submit submits tasks that run for a second, until ctx ends, and returns how many.
func submit(ctx context.Context, t *testing.T, c *clustertest.Cluster, team string) (submitted int) {
	namespace := desired.DefaultNaming.Namespace(team)
	for ctx.Err() == nil {
		if err := c.TryApply(context.WithoutCancel(ctx), job(team, submitted, "nvidia.com/gpu")); err != nil {
			t.Errorf("submit a task: %v", err)
			return submitted
		}
		submitted++
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		var jobs batchv1.JobList
		if err := c.Client.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range jobs.Items {
			if jobs.Items[i].Status.Succeeded == 0 {
				return fmt.Errorf("task %s is not complete", jobs.Items[i].Name)
			}
		}
		return nil
	})
	return submitted
}

// job returns the manifest of the i-th task of a team, which runs for a second.
func job(team string, i int, accelerator string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: task-%d, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1s}}
    spec:
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
      containers: [{name: train, image: example.com/train:1, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {%s: 1}}}]
`, i, desired.DefaultNaming.Namespace(team), desired.DefaultNaming.LocalQueue(team), accelerator)
}

// checkApplied fails the test unless the controllers applied the last spec of each
// allocation.
func checkApplied(t *testing.T, c *clustertest.Cluster, names []string) {
	t.Helper()
	for _, name := range names {
		clustertest.Eventually(t, patience, func(ctx context.Context) error { return applied(ctx, c, name) })
	}
}

// applied returns nil if the ClusterQueue of an allocation has its quota and weight.
func applied(ctx context.Context, c *clustertest.Cluster, name string) error {
	a, err := allocation(ctx, c, name)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != a.Generation {
		return fmt.Errorf("allocation %s, generation %d: Ready is %+v", name, a.Generation, ready)
	}
	var queue kueue.ClusterQueue
	if err := c.Client.Get(ctx, client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(name)}, &queue); err != nil {
		return err
	}
	for _, resource := range queue.Spec.ResourceGroups[0].Flavors[0].Resources {
		if resource.Name == "nvidia.com/gpu" && resource.NominalQuota.Value() != *a.Spec.Quota[0].Accelerators {
			return fmt.Errorf("ClusterQueue of %s: got %s GPUs, want %d", name, &resource.NominalQuota, *a.Spec.Quota[0].Accelerators)
		}
	}
	if weight := queue.Spec.FairSharing.Weight; weight.Value() != int64(a.Spec.FairShareWeight) {
		return fmt.Errorf("ClusterQueue of %s: got weight %s, want %d", name, weight, a.Spec.FairShareWeight)
	}
	return nil
}
