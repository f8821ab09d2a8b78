package preemptionloops_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/podless"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	gpu          = corev1.ResourceName("nvidia.com/gpu")
	instanceType = "lab.loop" // of all nodes, and the name of the only pool
	nodeGPUs     = 16
	nodes        = 4
)

// level is one of three priority classes.
type level int

const (
	low level = iota
	mid
	high
)

func (l level) class() string { return "lab-" + [...]string{"low", "mid", "high"}[l] }

// value is the priority of the class's tasks.
func (l level) value() int32 { return int32(10 * (l + 1)) }

// team is one ClusterQueue of a setting, in GPUs.
type team struct {
	name    string
	quota   resources.Amount
	weight  int32
	percent int32 // borrow limit; below 0 is without limit
	within  v1alpha1.WithinTeam
}

// task is one Job of one pod.
type task struct {
	name  string
	team  int // index in the setting's teams
	gpus  int64
	level level
	after time.Duration // since the submission before it
	runs  time.Duration // since it is resumed; 0 is until the end of the test
	ends  time.Duration // how long its pods take to end; 0 is podless.PodsEnd
}

// setting is one cohort and what is submitted to it.
type setting struct {
	name        string // prefix of all its objects
	teams       []team
	unallocated resources.Amount // GPUs that the Cohort lends
	tasks       []task
	pods        bool // whether the Job controller creates pods
}

func (s setting) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", s.name)
	for _, m := range s.teams {
		fmt.Fprintf(&b, " %s quota=%d weight=%d borrow=%d%% within=%s;", m.name, m.quota, m.weight, m.percent, m.within)
	}
	fmt.Fprintf(&b, " unallocated=%d; tasks", s.unallocated)
	for _, k := range s.tasks {
		fmt.Fprintf(&b, " +%.1fs %s=%s/%d/%s", k.after.Seconds(), k.name, s.teams[k.team].name, k.gpus, strings.TrimPrefix(k.level.class(), "lab-"))
		if k.runs > 0 {
			fmt.Fprintf(&b, "/runs%.0fs", k.runs.Seconds())
		}
	}
	return b.String()
}

func (s setting) naming() desired.Naming {
	naming := desired.DefaultNaming
	naming.Prefix, naming.Cohort = s.name+"-", s.name
	return naming
}

func (s setting) namespace(team int) string { return s.naming().Namespace(s.teams[team].name) }

// pool is the catalog of a cluster with nodes of one instance type.
var pool = catalog.New(catalog.Input{Nodes: []corev1.Node{*node(0)}, InstanceTypeLabel: catalog.InstanceTypeLabel})

// node returns a node that KWOK plays the kubelet of.
func node(i int) *corev1.Node {
	name := fmt.Sprintf("%s-%d", instanceType, i)
	has := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(strconv.Itoa(8 * nodeGPUs)),
		corev1.ResourceMemory: resource.MustParse(strconv.Itoa(64*nodeGPUs) + "Gi"),
		corev1.ResourcePods:   resource.MustParse("500"),
		gpu:                   resource.MustParse(strconv.Itoa(nodeGPUs)),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", catalog.InstanceTypeLabel: instanceType},
		},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

// furnish creates what all settings share: the nodes and the priority classes.
func furnish(t testing.TB, c *clustertest.Cluster) {
	t.Helper()
	var objects []client.Object
	for i := range nodes {
		objects = append(objects, node(i))
	}
	for _, l := range []level{low, mid, high} {
		objects = append(objects, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.class()}, Value: l.value()})
	}
	for _, object := range objects {
		if err := c.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

// allocation returns the allocation that the team's objects are built from.
func (m team) allocation() *v1alpha1.ComputeAllocation {
	sharing := v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: m.percent < 0}
	if m.percent >= 0 {
		sharing.BorrowLimitPercent = &m.percent
	}
	return &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec: v1alpha1.ComputeAllocationSpec{
			Activation:      v1alpha1.Active,
			FairShareWeight: m.weight,
			Quota:           []v1alpha1.QuotaRow{{InstanceType: instanceType, Quantities: v1alpha1.Quantities{Accelerators: ptr.To(int64(m.quota))}}},
			Sharing:         sharing,
			Preemption:      v1alpha1.Preemption{WithinTeam: m.within},
		},
	}
}

// create applies the setting's objects as Kuota would for its allocations.
func (s setting) create(ctx context.Context, c client.Client) error {
	var wanted []runtime.ApplyConfiguration
	allocated := quota.Resources{}
	for _, m := range s.teams {
		objects, errs := desired.Build(m.allocation(), pool, s.naming(), desired.ByPriority)
		if len(errs) > 0 {
			return fmt.Errorf("build team %s of %s: %v", m.name, s.name, errs)
		}
		for _, p := range objects.Quota.Pools {
			allocated.Add(p.Nominal)
		}
		for _, f := range objects.Flavors {
			wanted = append(wanted, f)
		}
		wanted = append(wanted, objects.Namespace, objects.ClusterQueue, objects.LocalQueue)
	}
	ready := func(string) quota.Resources {
		free := quota.Resources{string(gpu): s.unallocated}
		free.Add(allocated)
		return free
	}
	cohorts, _ := desired.FlatTree(s.naming(), ready, quota.PoolResources{instanceType: allocated}).Cohorts()
	for _, cohort := range cohorts {
		wanted = append(wanted, cohort)
	}
	for _, object := range wanted {
		if err := c.Apply(ctx, object, client.FieldOwner("lab"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply objects of %s: %w", s.name, err)
		}
	}
	return nil
}

// job returns the Job of a task.
func (s setting) job(k task) *batchv1.Job {
	yes, one, never := true, int32(1), int32(0)
	m := s.teams[k.team]
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(k.gpus, resource.DecimalSI)}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.name, Namespace: s.namespace(k.team),
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": s.naming().LocalQueue(m.name), desired.PriorityClassLabel: k.level.class()},
		},
		Spec: batchv1.JobSpec{
			Suspend: &yes, Parallelism: &one, Completions: &one, BackoffLimit: &never,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64), // KWOK would wait it out
					RestartPolicy:                 corev1.RestartPolicyNever,
					Containers:                    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}},
				},
			},
		},
	}
	if !s.pods {
		podless.SetUp(job, k.runs, k.ends)
	}
	return job
}

// submit creates the setting's Jobs, each after its gap.
func (s setting) submit(ctx context.Context, c client.Client) error {
	for _, k := range s.tasks {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(k.after):
		}
		if err := c.Create(ctx, s.job(k)); err != nil {
			return fmt.Errorf("submit %s to %s: %w", k.name, s.name, err)
		}
	}
	return nil
}

// remove deletes the setting's objects, and returns when its ClusterQueues are
// deleted. Namespaces follow in their own time.
func (s setting) remove(ctx context.Context, c client.Client) error {
	background := metav1.DeletePropagationBackground
	for i, m := range s.teams {
		if err := c.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(s.namespace(i)), &client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{PropagationPolicy: &background}}); err != nil {
			return err
		}
		for _, object := range []client.Object{
			&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: s.naming().LocalQueue(m.name), Namespace: s.namespace(i)}},
			&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.naming().ClusterQueue(m.name)}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace(i)}},
		} {
			if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
				return err
			}
		}
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: s.name}})); err != nil {
		return err
	}
	for _, m := range s.teams {
		queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.naming().ClusterQueue(m.name)}}
		for !apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(queue), queue)) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("ClusterQueue %s still exists: %w", queue.Name, ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
