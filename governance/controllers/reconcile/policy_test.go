package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// rankingSoon bounds how long a change of the ranking may take: it ends some seconds
// after the last task got its priority.
const rankingSoon = clustertest.Patience

// setPolicy creates or updates the ClusterPolicy, and deletes it when the test ends.
// Tests that use it cannot run in parallel.
func setPolicy(t *testing.T, c *clustertest.Cluster, spec v1alpha1.ClusterPolicySpec) {
	t.Helper()
	clustertest.Eventually(t, rankingSoon, func(ctx context.Context) error {
		policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
		_, err := controllerutil.CreateOrUpdate(ctx, c.Client, policy, func() error {
			if policy.DeletionTimestamp != nil { // after the current change of the ranking
				return fmt.Errorf("the policy of an earlier test is being deleted")
			}
			policy.Spec = spec
			return nil
		})
		return err
	})
	t.Cleanup(func() {
		_ = client.IgnoreNotFound(c.Client.Delete(context.Background(), &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}))
	})
}

// policyIs waits until a condition of the policy has this status for the current
// generation and its message contains text, and returns the policy.
func policyIs(t *testing.T, c *clustertest.Cluster, name string, status metav1.ConditionStatus, text string) v1alpha1.ClusterPolicy {
	t.Helper()
	var policy v1alpha1.ClusterPolicy
	defer func() {
		if !t.Failed() {
			return
		}
		t.Logf("the policy's conditions are %+v", policy.Status.Conditions)
		out, _ := c.TryKubectl("", "get", "deployments,pods", "-n", "kueue-system", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.generation} {.spec.nodeName} {.status}{"\n"}{end}`)
		t.Logf("Kueue's Deployment and pods are\n%s", out)
	}()
	clustertest.Eventually(t, rankingSoon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		got := meta.FindStatusCondition(policy.Status.Conditions, name)
		if got == nil || got.ObservedGeneration != policy.Generation || got.Status != status || !strings.Contains(got.Message, text) {
			return fmt.Errorf("%s is %+v, want %s with %q", name, got, status, text)
		}
		return nil
	})
	return policy
}

func class(name string, weight int32) v1alpha1.PriorityClass {
	return v1alpha1.PriorityClass{Name: name, Weight: &weight}
}

func ranking(classes ...v1alpha1.PriorityClass) v1alpha1.ClusterPolicySpec {
	return v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.TaskRanking, PriorityClasses: classes, Enforcement: v1alpha1.EnforcementNone}
}

func classValue(t *testing.T, c *clustertest.Cluster, name string) (value int32, found bool) {
	t.Helper()
	var object kueue.WorkloadPriorityClass
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return object.Value, err == nil
}

// submitWith creates a Workload of a team that requests GPUs and has no Job.
func submitWith(t *testing.T, c *clustertest.Cluster, team, name, class string, priority int32, gpus string) {
	t.Helper()
	workload := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: name}}
	workload.Spec.QueueName = kueue.LocalQueueName("hyperpod-ns-" + team + "-localqueue")
	workload.Spec.Priority = &priority
	if class != "" {
		workload.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(class)
	}
	workload.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
			Limits:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
		}}},
	}}}}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { return c.Client.Create(ctx, workload) })
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), workload) })
}

// The value of a WorkloadPriorityClass is the weight of the class, or 0 under
// FirstComeFirstServe. A class that the policy drops is deleted unless unfinished
// tasks use it. The same is true of numbers.
func TestPriorityClasses(t *testing.T) {
	c := setup(t)
	spec := ranking(class("urgent", 90), class("slow-priority", 10))
	spec.NumericPriorities = true
	setPolicy(t, c, spec)
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "ranked")
	for name, want := range map[string]int32{"urgent-priority": 90, "slow-priority": 10, "kuota-priority-0": 0, "kuota-priority-42": 42, "kuota-priority-99": 99} {
		if value, found := classValue(t, c, name); !found || value != want {
			t.Errorf("value of %s is %d (found: %v), want %d", name, value, found, want)
		}
	}

	team := clustertest.Name("classes")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	submitWith(t, c, team, "waits", "urgent-priority", 90, "100")
	submitWith(t, c, team, "numbered", "kuota-priority-42", 42, "100")

	spec.TaskPrioritization = v1alpha1.FirstComeFirstServe
	setPolicy(t, c, spec)
	policy := policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "have no effect")
	for _, name := range []string{"urgent-priority", "kuota-priority-42"} {
		if value, found := classValue(t, c, name); !found || value != 0 {
			t.Errorf("under FirstComeFirstServe the value of %s is %d (found: %v), want 0", name, value, found)
		}
	}
	if *policy.Spec.PriorityClasses[0].Weight != 90 {
		t.Errorf("the weights in the spec changed: %+v", policy.Spec.PriorityClasses)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return err
		}
		if p := queue.Spec.Preemption; p.WithinClusterQueue != kueue.PreemptionPolicyNever || p.BorrowWithinCohort.Policy != kueue.BorrowWithinCohortPolicyLowerPriority {
			return fmt.Errorf("under FirstComeFirstServe the queue preempts: %+v", p)
		}
		return nil
	})

	setPolicy(t, c, ranking(class("other", 5)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "kuota-priority-42 (1 unfinished tasks), urgent-priority (1 unfinished tasks)")
	for name, want := range map[string]bool{"slow-priority": false, "kuota-priority-41": false, "urgent-priority": true, "kuota-priority-42": true} {
		if value, found := classValue(t, c, name); found != want || found && value == 0 {
			t.Errorf("%s exists: %v, with value %d; want %v, with its weight", name, found, value, want)
		}
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		policy := &v1alpha1.ClusterPolicy{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, policy); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationDropClasses, "urgent,kuota-priority-42")
		return c.Client.Update(ctx, policy)
	})
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "ranked")
	if _, found := classValue(t, c, "urgent-priority"); found {
		t.Error("a class still exists although the annotation confirmed its deletion")
	}
}

// A change of a weight updates pending tasks, and preemption is enabled again after it.
func TestChangeOfWeight(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("rerank")
	setPolicy(t, c, ranking(class("rerank", 10)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for i := range 20 {
		submitWith(t, c, team, fmt.Sprintf("waits-%d", i), "rerank-priority", 10, "100")
	}
	setPolicy(t, c, ranking(class("rerank", 40)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionUnknown, "")
	policy := policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "")
	if policy.Status.Ranking == nil || policy.Status.Ranking.Step != v1alpha1.RankingSettled || policy.Status.Ranking.Remaining != 0 {
		t.Errorf("status.ranking is %+v", policy.Status.Ranking)
	}
	var tasks kueue.WorkloadList
	if err := c.Client.List(t.Context(), &tasks, client.InNamespace("hyperpod-ns-"+team)); err != nil {
		t.Fatal(err)
	}
	for i := range tasks.Items {
		if p := tasks.Items[i].Spec.Priority; p == nil || *p != 40 {
			t.Errorf("%s has priority %v", tasks.Items[i].Name, p)
		}
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var queue kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}, &queue); err != nil {
			return err
		}
		if p := queue.Spec.Preemption; p.WithinClusterQueue != kueue.PreemptionPolicyLowerPriority || p.BorrowWithinCohort.Policy != kueue.BorrowWithinCohortPolicyLowerPriority {
			return fmt.Errorf("preemption after the change is %+v", p)
		}
		return nil
	})
}

// A WorkloadPriorityClass of another manager stays unchanged, and the condition
// reports it.
func TestForeignPriorityClass(t *testing.T) {
	c := setup(t)
	foreign := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "theirs-priority"}, Value: 7}
	if err := c.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), foreign) })
	setPolicy(t, c, ranking(class("theirs", 90), class("ours", 80)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionFalse, "theirs-priority exists and is not managed by Kuota")
	if value, _ := classValue(t, c, "theirs-priority"); value != 7 {
		t.Errorf("the value of the foreign class is %d, want 7", value)
	}
	if value, _ := classValue(t, c, "ours-priority"); value != 80 {
		t.Errorf("the value of ours is %d, want 80", value)
	}
	if err := c.Client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "")
	if value, _ := classValue(t, c, "theirs-priority"); value != 90 {
		t.Errorf("without the foreign class the value is %d, want 90", value)
	}
}

// A manual change or deletion of a class is corrected.
func TestPriorityClassDrift(t *testing.T) {
	c := setup(t)
	setPolicy(t, c, ranking(class("drift", 50)))
	policyIs(t, c, v1alpha1.ConditionPriorityClasses, metav1.ConditionTrue, "")
	object := &kueue.WorkloadPriorityClass{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "drift-priority"}, object); err != nil {
		t.Fatal(err)
	}
	object.Value = 3
	if err := c.Client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, rankingSoon, func(ctx context.Context) error {
		if value, _ := classValue(t, c, "drift-priority"); value != 50 {
			return fmt.Errorf("value is %d, want 50", value)
		}
		return nil
	})
	if err := c.Client.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, rankingSoon, func(ctx context.Context) error {
		return c.Client.Get(ctx, client.ObjectKey{Name: "drift-priority"}, &kueue.WorkloadPriorityClass{})
	})
}

// cohortHas returns the Cohort's nominal quota of a resource in a pool.
func cohortHas(t *testing.T, c *clustertest.Cluster, pool, name string) (amount int64, found bool) {
	t.Helper()
	var cohort kueue.Cohort
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "shared-pool"}, &cohort); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, false
		}
		t.Fatal(err)
	}
	for _, group := range cohort.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if string(flavor.Name) == pool && string(r.Name) == name {
					return r.NominalQuota.Value(), true
				}
			}
		}
	}
	return 0, false
}

// The Cohort's quota follows the quota of teams and the ready nodes. Together they
// never exceed the capacity.
func TestUnallocated(t *testing.T) {
	c := setup(t)
	const pool = "ml.p5.48xlarge" // two nodes of 8 GPUs
	waitLent := func(want int64) {
		t.Helper()
		clustertest.Eventually(t, soon, func(context.Context) error {
			if got, _ := cohortHas(t, c, pool, "nvidia.com/gpu"); got != want {
				return fmt.Errorf("%d GPUs are lent, want %d", got, want)
			}
			return nil
		})
	}
	spec := ranking()
	spec.IdleCompute.ShareUnallocated = true
	setPolicy(t, c, spec)
	team := clustertest.Name("unallocated")
	policyIs(t, c, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: pool, Quantities: accelerators(4)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	waitLent(12)
	policyIs(t, c, v1alpha1.ConditionShareUnallocated, metav1.ConditionTrue, "lends")

	stopWatching := watchSum(t, c, pool, 16)
	for _, n := range []int64{10, 2, 16, 4} {
		setQuota(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: pool, Quantities: accelerators(n)}))
		waitLent(16 - n)
	}
	stopWatching()

	node := anyNode(t, c, pool)
	cordon := func(on bool) {
		patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %v}}`, on)
		if err := c.Client.Patch(t.Context(), node.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = c.Client.Patch(context.Background(), node.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"unschedulable": null}}`)))
	})
	cordon(true)
	waitLent(4)
	cordon(false)
	waitLent(12)

	var cohort kueue.Cohort // a parent that is set is removed: it would lend and borrow beyond the Cohort
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.Cohort}, &cohort); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Patch(t.Context(), &cohort, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"parentName": "root"}}`))); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(&cohort), &cohort); err != nil || cohort.Spec.ParentName != "" {
			return fmt.Errorf("the Cohort is in cohort %q (%v)", cohort.Spec.ParentName, err)
		}
		return nil
	})

	spec.IdleCompute.ShareUnallocated = false
	setPolicy(t, c, spec)
	clustertest.Eventually(t, soon, func(context.Context) error {
		if _, found := cohortHas(t, c, pool, "nvidia.com/gpu"); found {
			return fmt.Errorf("the Cohort still has quota")
		}
		return nil
	})
}

func anyNode(t *testing.T, c *clustertest.Cluster, instanceType string) *corev1.Node {
	t.Helper()
	var nodes corev1.NodeList
	if err := c.Client.List(t.Context(), &nodes, client.MatchingLabels{"node.kubernetes.io/instance-type": instanceType}); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) == 0 {
		t.Fatalf("no node of type %s", instanceType)
	}
	return &nodes.Items[0]
}

func setQuota(t *testing.T, c *clustertest.Cluster, team string, spec v1alpha1.ComputeAllocationSpec) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var allocation v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		allocation.Spec = spec
		return c.Client.Update(ctx, &allocation)
	})
}

// watchSum watches the quota of all queues and the Cohort in a pool. stop fails the
// test if their sum ever exceeded physical GPUs, in the order of resourceVersions.
func watchSum(t *testing.T, c *clustertest.Cluster, pool string, physical int64) (stop func()) {
	t.Helper()
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	queues, err := watcher.Watch(ctx, &kueue.ClusterQueueList{})
	if err != nil {
		t.Fatal(err)
	}
	cohorts, err := watcher.Watch(ctx, &kueue.CohortList{})
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		version int64
		name    string
		gpus    int64
	}
	var changes []change
	done := make(chan struct{})
	record := func(object client.Object, groups []kueue.ResourceGroup, deleted bool) {
		var version, gpus int64
		fmt.Sscan(object.GetResourceVersion(), &version)
		for _, group := range groups {
			for _, flavor := range group.Flavors {
				for _, r := range flavor.Resources {
					if string(flavor.Name) == pool && r.Name == "nvidia.com/gpu" && !deleted {
						gpus = r.NominalQuota.Value()
					}
				}
			}
		}
		changes = append(changes, change{version, fmt.Sprintf("%T %s", object, object.GetName()), gpus})
	}
	go func() {
		defer close(done)
		q, h := queues.ResultChan(), cohorts.ResultChan()
		for q != nil || h != nil {
			select {
			case event, ok := <-q:
				if !ok {
					q = nil
				} else if queue, ok := event.Object.(*kueue.ClusterQueue); ok {
					record(queue, queue.Spec.ResourceGroups, event.Type == "DELETED")
				}
			case event, ok := <-h:
				if !ok {
					h = nil
				} else if cohort, ok := event.Object.(*kueue.Cohort); ok {
					record(cohort, cohort.Spec.ResourceGroups, event.Type == "DELETED")
				}
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-done
		sortChanges := func(a, b change) int { return int(a.version - b.version) }
		slices.SortFunc(changes, sortChanges)
		has := map[string]int64{}
		if len(changes) < 8 {
			t.Errorf("got %d changes, want at least 8", len(changes))
		}
		for _, ch := range changes {
			has[ch.name] = ch.gpus
			sum := int64(0)
			for _, n := range has {
				sum += n
			}
			if sum > physical {
				t.Errorf("the quota sums up to %d of %d GPUs: %v", sum, physical, has)
			}
		}
	}
}
