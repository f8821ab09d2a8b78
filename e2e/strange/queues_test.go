package strange_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = "nvidia.com/gpu"

// queuesManifest has two ClusterQueues, each with a LocalQueue in one namespace, and a team with
// three queues: its own, a share of its quota and a share with quota.
const queuesManifest = `
{apiVersion: v1, kind: Namespace, metadata: {name: duo}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: ml.mixes}, spec: {nodeLabels: {node.kubernetes.io/instance-type: ml.mixes}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: duo-cpu}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu, memory, nvidia.com/gpu], flavors: [{name: ml.mixes, resources: [{name: cpu, nominalQuota: 100}, {name: memory, nominalQuota: 1000Gi}, {name: nvidia.com/gpu, nominalQuota: 2}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: duo-gpu}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu, memory, nvidia.com/gpu], flavors: [{name: ml.mixes, resources: [{name: cpu, nominalQuota: 100}, {name: memory, nominalQuota: 1000Gi}, {name: nvidia.com/gpu, nominalQuota: 6}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: cpu-queue, namespace: duo}, spec: {clusterQueue: duo-cpu}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: gpu-queue, namespace: duo}, spec: {clusterQueue: duo-gpu}}
---
{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: duo-cpu}, spec: {management: Observe, clusterQueueName: duo-cpu, localQueueName: cpu-queue, namespace: duo}}
---
{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: duo-gpu}, spec: {management: Observe, clusterQueueName: duo-gpu, localQueueName: gpu-queue, namespace: duo}}
---
{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: mixed}, spec: {quota: [{instanceType: ml.mixes, accelerators: 4}], shares: [{name: nightly, weight: 3}, {name: batch, weight: 2, quota: [{instanceType: ml.mixes, accelerators: 3}]}]}}
`

// queueFigures are what pages show of a team, or of a queue.
type queueFigures struct{ Nominal, Used, Running, Waiting int64 }

// TestQueuesOfOneNamespace compares every page with Kueue's status while two teams share a
// namespace and another has several queues: after each random mix of tasks.
func TestQueuesOfOneNamespace(t *testing.T) {
	mixes := 6
	if clustertest.Verify {
		mixes = 200
	}
	l := newLab(t)
	c := clustertest.Get(t)
	podless.Run(t, c)
	c.Node(t, "mixes-0", map[string]string{"node.kubernetes.io/instance-type": "ml.mixes"}, clustertest.Resources(map[corev1.ResourceName]string{"cpu": "400", "memory": "4000Gi", gpu: "16", "pods": "500"}))
	c.Apply(t, queuesManifest)
	clustertest.Eventually(t, settleLimit, func(ctx context.Context) error {
		var a v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "mixed"}, &a); err != nil || len(a.Status.Shares) != 1 {
			return fmt.Errorf("team mixed has the status %+v (%v), want one share with quota", a.Status, err)
		}
		return nil
	})
	own := desired.DefaultNaming.Namespace("mixed")
	queues := []client.ObjectKey{
		{Namespace: "duo", Name: "cpu-queue"}, {Namespace: "duo", Name: "gpu-queue"}, {Namespace: own, Name: desired.DefaultNaming.LocalQueue("mixed")},
		{Namespace: own, Name: desired.DefaultNaming.ShareQueue("mixed", "nightly")}, {Namespace: own, Name: desired.DefaultNaming.ShareQueue("mixed", "batch")},
	}
	random := rand.New(rand.NewPCG(1, 2))
	var jobs []*batchv1.Job
	for mix := range mixes {
		for range 1 + random.IntN(6) {
			jobs = append(jobs, jobIn(queues[random.IntN(len(queues))], fmt.Sprintf("mix-%d-%d", mix, len(jobs)), int64(1+random.IntN(3))))
			if err := c.Client.Create(t.Context(), jobs[len(jobs)-1]); err != nil {
				t.Fatal(err)
			}
		}
		for len(jobs) > 25 || len(jobs) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(jobs))
			if err := c.Client.Delete(t.Context(), jobs[i], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
			jobs = slices.Delete(jobs, i, i+1)
		}
		clustertest.Eventually(t, settleLimit, func(ctx context.Context) error {
			want, err := l.byKueue(ctx, len(jobs))
			if err != nil {
				return err
			}
			got, err := l.byPages(ctx)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("mix %d: the pages differ from Kueue's status (-want +got):\n%s", mix, diff)
			}
			return nil
		})
	}
	t.Logf("%d mixes", mixes)
}

// jobIn returns a Job that waits in a LocalQueue, and runs until it is deleted.
func jobIn(queue client.ObjectKey, name string, gpus int64) *batchv1.Job {
	requests := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI), "cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: queue.Namespace, Labels: map[string]string{"kueue.x-k8s.io/queue-name": queue.Name}},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/none", Resources: corev1.ResourceRequirements{Requests: requests, Limits: corev1.ResourceList{gpu: requests[gpu]}}}},
		}}},
	}
	podless.SetUp(job, 0, 1)
	return job
}

// byKueue returns the figures of Kueue's status, of teams and of the shares with quota, or an
// error while Kueue has not counted all Jobs.
func (l *lab) byKueue(ctx context.Context, jobs int) (map[string]queueFigures, error) {
	var queues kueue.ClusterQueueList
	if err := l.cluster.List(ctx, &queues); err != nil {
		return nil, err
	}
	found, counted := map[string]queueFigures{}, int64(0)
	for _, q := range queues.Items {
		names := []string{q.Name}
		if team := q.Labels[desired.LabelTeam]; team != "" {
			names = []string{team}
		}
		if share := q.Labels[desired.LabelShare]; share != "" {
			names = append(names, names[0]+"/"+share)
		}
		of := queueFigures{Running: int64(q.Status.AdmittedWorkloads), Waiting: int64(q.Status.PendingWorkloads), Nominal: clustertest.GPUs(q.Spec.ResourceGroups, "ml.mixes")}
		counted += of.Running + of.Waiting
		for _, flavor := range q.Status.FlavorsReservation {
			for _, r := range flavor.Resources {
				if r.Name == gpu {
					of.Used += r.Total.Value()
				}
			}
		}
		for _, name := range names {
			sum := found[name]
			found[name] = queueFigures{sum.Nominal + of.Nominal, sum.Used + of.Used, sum.Running + of.Running, sum.Waiting + of.Waiting}
		}
	}
	if counted != int64(jobs) {
		return nil, fmt.Errorf("Kueue counts %d of %d tasks", counted, jobs)
	}
	return found, nil
}

// byPages returns the same figures as the pages show them.
func (l *lab) byPages(ctx context.Context) (map[string]queueFigures, error) {
	found := map[string]queueFigures{}
	var teams struct {
		Teams []struct {
			Name                       string
			Allocated, Used            *json.Number
			RunningTasks, WaitingTasks int64
		}
	}
	if err := l.json(ctx, "/teams.json?resource="+gpu, &teams); err != nil {
		return nil, err
	}
	for _, team := range teams.Teams {
		of := queueFigures{Running: team.RunningTasks, Waiting: team.WaitingTasks}
		of.Nominal, _ = strconv.ParseInt(team.Allocated.String(), 10, 64)
		of.Used, _ = strconv.ParseInt(team.Used.String(), 10, 64)
		found[team.Name] = of
	}

	// The list of tasks, by team.
	all, err := l.tasks(ctx, []string{"duo", desired.DefaultNaming.Namespace("mixed")})
	if err != nil {
		return nil, err
	}
	listed := map[string]queueFigures{}
	for _, one := range all {
		of := listed[one.Team]
		if one.Status == "Pending" || one.Status == "Preempted" {
			of.Waiting++
		} else {
			of.Running++
		}
		listed[one.Team] = of
	}
	for name, of := range found {
		if got := listed[name]; got.Running != of.Running || got.Waiting != of.Waiting {
			return nil, fmt.Errorf("team %s has %d running and %d waiting tasks on /teams, %d and %d on /tasks", name, of.Running, of.Waiting, got.Running, got.Waiting)
		}
	}

	// The allocations.
	var allocations struct {
		Allocations []struct {
			Name  string
			Quota []struct{ Resources map[string]*json.Number }
		}
	}
	if err := l.json(ctx, "/policies.json", &allocations); err != nil {
		return nil, err
	}
	for _, a := range allocations.Allocations {
		sum := int64(0)
		for _, pool := range a.Quota {
			if n := pool.Resources[gpu]; n != nil {
				of, _ := n.Int64()
				sum += of
			}
		}
		if sum != found[a.Name].Nominal {
			return nil, fmt.Errorf("team %s has %d GPUs on /teams, %d on /policies", a.Name, found[a.Name].Nominal, sum)
		}
	}

	// The table of shares on the team's page.
	page, err := l.get(ctx, "/teams/mixed")
	if err != nil {
		return nil, err
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(string(page.body)))
	if err != nil {
		return nil, err
	}
	row := document.Find("#inside-" + desired.DefaultNaming.ShareQueue("mixed", "batch") + " td")
	if row.Length() < 4 {
		return nil, fmt.Errorf("the page of team mixed shows no share batch: %d, %d cells", page.status, row.Length())
	}
	share := queueFigures{}
	if _, err := fmt.Sscanf(row.First().Text(), "%d of %d GPUs", &share.Used, &share.Nominal); err != nil {
		return nil, fmt.Errorf("the quota of share batch is %q: %w", row.First().Text(), err)
	}
	share.Running, _ = strconv.ParseInt(row.Eq(row.Length()-2).Text(), 10, 64)
	share.Waiting, _ = strconv.ParseInt(row.Last().Text(), 10, 64)
	found["mixed/batch"] = share
	return found, nil
}
