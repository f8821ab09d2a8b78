package shares_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

var halfLife = flag.Duration("half-life", 30*time.Second, "the half-life of usage; a task takes a tenth of it")

const (
	slots  = 23                // the sum of the weights
	member = "ada@example.com" // of each team
	gpu    = corev1.ResourceName("nvidia.com/gpu")
	// backlog is how many tasks of a share wait. New ones are submitted a few at a time
	// rather than for each that ends: Kueue 0.19 requeues tasks that did not fit once a
	// second, and one that is submitted just before gets the quota without a comparison.
	backlog     = 40
	submitEvery = 2 * time.Second
)

// example is that of AWS: the weight factors 1, 3 and 5 of a scheduling policy of AWS
// Batch are the weights 1/1, 1/3 and 1/5, times 15.
var example = []v1alpha1.Share{{Name: "highpri", Weight: 15}, {Name: "midpri", Weight: 5}, {Name: "lowpri", Weight: 3}}

// TestProportion checks AWS's example: over ten half-lives the GPU time of saturated
// shares is in proportion to their weights.
func TestProportion(t *testing.T) {
	c := setupLong(t)
	team := createTeam(t, c, slots, example...)
	meter := newMeter(t, c, team)
	defer meter.saturate(t, c, team, "highpri", "midpri", "lowpri")()
	meter.awaitSaturation(t)

	before, began := meter.gpuTime(), time.Now()
	time.Sleep(10 * *halfLife)
	window, took := meter.gpuTime(), time.Since(began)
	var total time.Duration
	for share := range window {
		window[share] -= before[share]
		total += window[share]
	}
	used := total.Seconds() / took.Seconds()
	t.Logf("figure slots_used %.2f", used)
	if used < 0.85*slots {
		t.Errorf("the tasks used %.2f of %d GPUs: this machine does not saturate them, try a longer -half-life", used, slots)
	}
	for _, share := range example {
		got := slots * window[share.Name].Seconds() / total.Seconds()
		t.Logf("figure parts_%s %.2f", share.Name, got)
		if math.Abs(got-float64(share.Weight)) > 0.1*float64(share.Weight) {
			t.Errorf("%s had %.2f of %d parts of the GPU time, want %d within 10 %%", share.Name, got, slots, share.Weight)
		}
	}
}

// TestCatchUp checks that a share that was idle has its part of the decayed usage within
// two half-lives.
func TestCatchUp(t *testing.T) {
	c := setupLong(t)
	team := createTeam(t, c, slots, example...)
	meter := newMeter(t, c, team)
	defer meter.saturate(t, c, team, "midpri", "lowpri")()
	time.Sleep(4 * *halfLife)

	shares := []string{"highpri", "midpri", "lowpri"}
	t.Logf("before: %v", decayedUsage(t, c, team, shares...))
	began := time.Now()
	defer meter.saturate(t, c, team, "highpri")()
	clustertest.Eventually(t, 2**halfLife, func(context.Context) error {
		usage := decayedUsage(t, c, team, shares...)
		for _, share := range example {
			if usage["highpri"]/15 < 0.9*usage[share.Name]/float64(share.Weight) {
				return fmt.Errorf("the decayed usage is %v", usage)
			}
		}
		return nil
	})
	t.Logf("figure catch_up_half_lives %.2f", time.Since(began).Seconds()/halfLife.Seconds())
}

// setupLong returns a cluster that runs the Jobs of a measurement, and whose policy
// counts the usage of shares.
func setupLong(t *testing.T) *clustertest.Cluster {
	t.Helper()
	clustertest.OnlyVerify(t)
	c, _ := setup(t)
	podless.Run(t, c)
	countUsage(t, c, *halfLife)
	return c
}

// countUsage creates a policy that counts the usage of shares with a half-life, and waits
// until Kueue does.
func countUsage(t *testing.T, c *clustertest.Cluster, halfLife time.Duration) {
	t.Helper()
	policy := &v1alpha1.ClusterPolicy{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterPolicy"}, ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	policy.Spec.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{
		UsageHalfLifeTime: &metav1.Duration{Duration: halfLife}, UsageSamplingInterval: &metav1.Duration{Duration: time.Second},
	}
	weight := func(n int32) *int32 { return &n }
	policy.Spec.TaskPrioritization = v1alpha1.TaskRanking
	policy.Spec.PriorityClasses = []v1alpha1.PriorityClass{{Name: "training", Weight: weight(60)}, {Name: "dev", Weight: weight(10)}}
	c.Apply(t, asYAML(t, policy))
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("conditions %+v", policy.Status.Conditions)
		}
		return nil
	})
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// createTeam creates a team with shares and GPUs, and waits until it is ready.
func createTeam(t *testing.T, c *clustertest.Cluster, quota int64, shares ...v1alpha1.Share) string {
	t.Helper()
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("shares")}}
	allocation.Spec.QueueingStrategy = string(kueue.StrictFIFO) // the next task is tried at once, not each second
	allocation.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: &quota}}}
	allocation.Spec.Shares, allocation.Spec.Sharing.Strategy = shares, v1alpha1.DontLend
	allocation.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: member}}
	if err := c.Client.Create(t.Context(), allocation); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(allocation), allocation); err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive} {
			if !meta.IsStatusConditionTrue(allocation.Status.Conditions, condition) {
				return fmt.Errorf("conditions %+v", allocation.Status.Conditions)
			}
		}
		return nil
	})
	return allocation.Name
}

// job returns a task of one GPU, 4 vCPU and 16 GiB.
func job(team, share string, i int) *batchv1.Job {
	yes := true
	requests := corev1.ResourceList{gpu: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", share, i), Namespace: desired.DefaultNaming.Namespace(team),
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.ShareQueue(team, share)},
		},
		Spec: batchv1.JobSpec{
			Suspend: &yes,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "train", Image: "example.com/train:1",
					Resources: corev1.ResourceRequirements{Requests: requests, Limits: corev1.ResourceList{gpu: requests[gpu]}}}},
			}},
		},
	}
	podless.SetUp(job, *halfLife/10, 0)
	return job
}

// decayedUsage returns the GPUs of shares in the status of its LocalQueue.
func decayedUsage(t *testing.T, c *clustertest.Cluster, team string, shares ...string) map[string]float64 {
	t.Helper()
	usage := map[string]float64{}
	for _, share := range shares {
		var queue kueue.LocalQueue
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: desired.DefaultNaming.Namespace(team), Name: desired.DefaultNaming.ShareQueue(team, share)}, &queue); err != nil {
			t.Fatal(err)
		}
		if s := queue.Status.FairSharing; s != nil && s.AdmissionFairSharingStatus != nil {
			consumed := s.AdmissionFairSharingStatus.ConsumedResources[gpu]
			usage[share] = consumed.AsApproximateFloat64()
		}
	}
	return usage
}

// shareOf returns the share of a LocalQueue.
func shareOf(queue string) string { return queue[strings.LastIndex(queue, "-")+1:] }
