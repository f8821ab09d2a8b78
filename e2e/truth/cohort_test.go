package truth_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// The nodes of each pool. Quota is not bound by them, and Jobs have no pods.
const (
	nodeGPUs = 16
	gpuVCPUs = 8  // of a node, for each GPU
	gpuGiB   = 64 // of a node, for each GPU
)

// pools are the instance types of the nodes, and so the ResourceFlavors.
var pools = []string{"truth.a", "truth.b", "truth.c"}

// classes are the priority classes, the lowest first. A task without one has priority 0.
var classes = []string{"low-priority", "mid-priority", "high-priority", "top-priority"}

// classSuffix ends the names of Kuota's priority classes. Pages leave it out.
const classSuffix = "-priority"

const noClass = -1

// task is one Job.
type task struct {
	name  string
	team  int // index in the cohort's teams
	pods  int32
	each  quota.Resources // of one pod
	class int             // index in classes, or noClass
	pool  string          // that its node selector requires; empty for any
}

func (k task) String() string {
	return fmt.Sprintf("%s(%s, %d× %s, class %d, pool %q)", k.name, teamName(k.team), k.pods, amountsText(k.each), k.class, k.pool)
}

// cohort is the teams of one seed, what they share beside their quota, and what is
// submitted, a second apart.
type cohort struct {
	seed        uint64
	teams       []*v1alpha1.ComputeAllocation
	unallocated map[string]resources.Amount // GPUs by pool, with their vCPUs and memory
	departments []department
	in          []int // the department of each team; root for none
	tasks       []task
}

// department is a Cohort below the one of a seed. Its amounts are GPUs by pool, with their
// vCPUs and memory. Limits without a pool are none.
type department struct {
	parent                      int // index in the cohort's departments; root for none
	weight                      int64
	reserve, borrowing, lending map[string]resources.Amount
}

const root = -1

// level returns how far a department is below the root.
func (s *cohort) level(i int) int {
	if i == root {
		return 0
	}
	return 1 + s.level(s.departments[i].parent)
}

func teamName(i int) string { return string(rune('a' + i)) }

// instance is a cohort on the cluster. A slot is the prefix of the names of its
// objects; one instance has it at a time. The instance of kuotaSlot is made of
// ComputeAllocations, and has Kuota's one cohort.
type instance struct {
	*cohort
	slot   string
	client client.Client
	// ready are the resources of the nodes that Kuota would allocate: the Cohort has
	// what is left of them.
	ready map[string]quota.Resources
	teams []*v1alpha1.ComputeAllocation // as they are now
	// lag is the longest time that Kueue took to create a Workload: on a busy machine it
	// takes longer until nothing changes any more.
	lag time.Duration
}

// instanceTypes is the catalog of the nodes.
var instanceTypes = catalog.New(catalog.Input{Nodes: nodes(), InstanceTypeLabel: catalog.InstanceTypeLabel})

func nodes() (list []corev1.Node) {
	for _, name := range pools {
		has := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(strconv.Itoa(gpuVCPUs * nodeGPUs)),
			corev1.ResourceMemory: resource.MustParse(strconv.Itoa(gpuGiB*nodeGPUs) + "Gi"),
			catalog.GPU:           resource.MustParse(strconv.Itoa(nodeGPUs)),
		}
		list = append(list, node(name, name, has))
	}
	return list
}

// node returns a node that KWOK plays the kubelet of.
func node(name, pool string, has corev1.ResourceList) corev1.Node {
	has[corev1.ResourcePods] = resource.MustParse("500")
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", catalog.InstanceTypeLabel: pool},
		},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

// furnish creates what all cohorts share: the nodes and the priority classes.
func furnish(t testing.TB, c *clustertest.Cluster) {
	t.Helper()
	var objects []client.Object
	for _, node := range nodes() {
		objects = append(objects, &node)
	}
	for i, name := range classes {
		objects = append(objects, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(10 * (i + 1))})
	}
	for _, object := range objects {
		if err := c.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

// newInstance returns an instance that does not exist yet.
func newInstance(s *cohort, slot string, c client.Client) *instance {
	in := &instance{cohort: s, slot: slot, client: c, ready: map[string]quota.Resources{}}
	for i, a := range s.teams {
		a = a.DeepCopy()
		a.Name = slot + "-" + teamName(i)
		in.teams = append(in.teams, a)
	}
	for pool, gpus := range s.unallocated {
		in.ready[pool] = ofGPUs(gpus)
	}
	for pool, amounts := range in.allocated() {
		if in.ready[pool] == nil {
			in.ready[pool] = quota.Resources{}
		}
		in.ready[pool].Add(amounts)
	}
	return in
}

// ofGPUs returns GPUs with their vCPUs and memory.
func ofGPUs(gpus resources.Amount) quota.Resources {
	return quota.Resources{catalog.GPU: gpus, catalog.CPU: gpus * gpuVCPUs * 1000, catalog.Memory: gpus * gpuGiB * catalog.GiB}
}

const kuotaSlot = "kuota"

func (in *instance) byKuota() bool { return in.slot == kuotaSlot }

func (in *instance) naming() desired.Naming {
	naming := desired.DefaultNaming
	if in.byKuota() {
		return naming
	}
	naming.Prefix, naming.Cohort = "truth-", "truth-"+in.slot
	return naming
}

func (in *instance) namespace(team int) string { return in.naming().Namespace(in.teams[team].Name) }

func (in *instance) queue(team int) string { return in.naming().ClusterQueue(in.teams[team].Name) }

// resolved returns the quota of a team.
func (in *instance) resolved(team int) quota.Resolved {
	r, errs := quota.Resolve(&in.teams[team].Spec, instanceTypes)
	if len(errs) > 0 {
		panic(fmt.Sprintf("seed %d, team %s: %v", in.seed, teamName(team), errs))
	}
	return r
}

// allocated returns the sum of all quota, by pool.
func (in *instance) allocated() map[string]quota.Resources {
	sum := map[string]quota.Resources{}
	for i := range in.teams {
		for _, p := range in.resolved(i).Pools {
			if sum[p.Name] == nil {
				sum[p.Name] = quota.Resources{}
			}
			sum[p.Name].Add(p.Nominal)
		}
	}
	return sum
}

// apply writes the objects of the teams and the Cohort, as Kuota's controllers would.
func (in *instance) apply(ctx context.Context, teams ...int) error {
	if in.byKuota() {
		return in.allocate(ctx, teams)
	}
	var wanted []runtime.ApplyConfiguration
	cohorts, _ := desired.FlatTree(in.naming(), func(pool string) quota.Resources { return in.ready[pool] }, in.allocated()).Cohorts()
	for _, cohort := range cohorts {
		wanted = append(wanted, cohort)
	}
	for i := range in.departments {
		wanted = append(wanted, in.department(i))
	}
	for _, i := range teams {
		objects, errs := desired.Build(in.teams[i], instanceTypes, in.naming(), desired.ByPriority)
		if len(errs) > 0 {
			return fmt.Errorf("build team %s: %v", in.teams[i].Name, errs)
		}
		for _, f := range objects.Flavors {
			wanted = append(wanted, f)
		}
		if of := in.in[i]; of != root {
			objects.ClusterQueue.Spec.WithCohortName(kueue.CohortReference(in.departmentName(of)))
		}
		wanted = append(wanted, objects.Namespace, objects.ClusterQueue, objects.LocalQueue)
	}
	for _, object := range wanted {
		if err := in.client.Apply(ctx, object, client.FieldOwner("truth"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}

// departmentName returns the name of the Cohort of a department.
func (in *instance) departmentName(i int) string {
	if i == root {
		return in.naming().Cohort
	}
	return fmt.Sprintf("%s-d%d", in.naming().Cohort, i)
}

// department returns the Cohort of a department.
func (in *instance) department(i int) *applykueue.CohortApplyConfiguration {
	d, names := in.departments[i], []string{catalog.GPU, catalog.CPU, catalog.Memory}
	group := applykueue.ResourceGroup()
	for _, name := range names {
		group.WithCoveredResources(corev1.ResourceName(name))
	}
	for _, pool := range slices.Sorted(maps.Keys(d.reserve)) {
		flavor := applykueue.FlavorQuotas().WithName(kueue.ResourceFlavorReference(pool))
		for _, name := range names {
			r := applykueue.ResourceQuota().WithName(corev1.ResourceName(name)).WithNominalQuota(ofGPUs(d.reserve[pool])[name].Quantity(name))
			if limit, ok := d.borrowing[pool]; ok {
				r.WithBorrowingLimit(ofGPUs(limit)[name].Quantity(name))
			}
			if limit, ok := d.lending[pool]; ok {
				r.WithLendingLimit(ofGPUs(limit)[name].Quantity(name))
			}
			flavor.WithResources(r)
		}
		group.WithFlavors(flavor)
	}
	spec := applykueue.CohortSpec().WithParentName(kueue.CohortReference(in.departmentName(d.parent))).WithResourceGroups(group).
		WithFairSharing(applykueue.FairSharing().WithWeight(*resource.NewQuantity(d.weight, resource.DecimalSI)))
	return applykueue.Cohort(in.departmentName(i)).WithSpec(spec)
}

// job returns the Job of a task.
func (in *instance) job(k task) *batchv1.Job {
	requests := corev1.ResourceList{}
	for name, amount := range k.each {
		requests[corev1.ResourceName(name)] = amount.Quantity(name)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.name, Namespace: in.namespace(k.team),
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": in.naming().LocalQueue(in.teams[k.team].Name)},
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: &k.pods, Completions: &k.pods, BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
			}},
		},
	}
	if k.class != noClass {
		job.Labels[desired.PriorityClassLabel] = classes[k.class]
	}
	if k.pool != "" {
		job.Spec.Template.Spec.NodeSelector = map[string]string{catalog.InstanceTypeLabel: k.pool}
	}
	podless.SetUp(job, 0, 0)
	return job
}

// submit creates the Jobs at least a second apart. Kueue compares creation times of
// Workloads in seconds, so each Workload must be of another second, also where Kueue
// takes a while to create it.
func (in *instance) submit(ctx context.Context, w *watcher) error {
	for _, k := range in.tasks {
		next := time.Now().Truncate(time.Second).Add(time.Second + 100*time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(next)):
		}
		err := in.client.Create(ctx, in.job(k))
		for apierrors.IsInternalError(err) && ctx.Err() == nil { // the API server lost its connection to Kueue's webhook
			time.Sleep(time.Second)
			err = in.client.Create(ctx, in.job(k))
		}
		if err != nil {
			return fmt.Errorf("submit %s: %w", k.name, err)
		}
		created := time.Now()
		if err := until(ctx, func() error {
			if _, ok := w.workloads(in)[k.name]; !ok {
				return fmt.Errorf("Kueue has not created a Workload for %s", k.name)
			}
			return nil
		}); err != nil {
			return err
		}
		in.lag = max(in.lag, time.Since(created))
	}
	return nil
}

// nudge lets Kueue try all waiting tasks again, by quota of a resource that no task
// requests. Kueue does not always do that when quota becomes free (0.19), so that a task
// may wait that would start with any change of the cohort.
func (in *instance) nudge(ctx context.Context) error {
	var queue kueue.ClusterQueue
	if err := in.client.Get(ctx, client.ObjectKey{Name: in.queue(0)}, &queue); err != nil {
		return err
	}
	patch := client.MergeFrom(queue.DeepCopy())
	for i := range queue.Spec.ResourceGroups {
		for j := range queue.Spec.ResourceGroups[i].Flavors {
			for k, r := range queue.Spec.ResourceGroups[i].Flavors[j].Resources {
				if r.Name == catalog.Network {
					queue.Spec.ResourceGroups[i].Flavors[j].Resources[k].NominalQuota.Add(resource.MustParse("1"))
				}
			}
		}
	}
	return in.client.Patch(ctx, &queue, patch)
}

// remove deletes all objects but the namespaces, and returns when they are deleted.
func (in *instance) remove(ctx context.Context, w *watcher) error {
	for i := range in.teams {
		if err := in.client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(in.namespace(i)), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	if err := until(ctx, func() error {
		if left := w.workloads(in); len(left) > 0 {
			return fmt.Errorf("%d Workloads still exist", len(left))
		}
		return nil
	}); err != nil {
		return err
	}
	if in.byKuota() {
		return in.release(ctx)
	}
	var objects []client.Object
	for i := range in.teams {
		objects = append(objects,
			&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: in.naming().LocalQueue(in.teams[i].Name), Namespace: in.namespace(i)}},
			&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: in.queue(i)}})
	}
	for i := root; i < len(in.departments); i++ {
		objects = append(objects, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: in.departmentName(i)}})
	}
	for _, object := range objects {
		if err := client.IgnoreNotFound(in.client.Delete(ctx, object)); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := until(ctx, func() error {
			if err := in.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s still exists: %v", object.GetName(), err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// until calls check until it returns nil.
func until(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// String returns the cohort in one line, for a miss.
func (s *cohort) String() string {
	var b strings.Builder
	for i, a := range s.teams {
		fmt.Fprintf(&b, "team %s weight=%d %s", teamName(i), a.Spec.FairShareWeight, a.Spec.Sharing.Strategy)
		switch {
		case a.Spec.Sharing.Unlimited:
			b.WriteString(" unlimited")
		case a.Spec.Sharing.BorrowLimitPercent != nil:
			fmt.Fprintf(&b, " %d%%", *a.Spec.Sharing.BorrowLimitPercent)
		}
		fmt.Fprintf(&b, " within=%s reclaim=%s borrow=%s %s:", a.Spec.Preemption.WithinTeam, a.Spec.Preemption.ReclaimWithinCohort, a.Spec.Preemption.BorrowWithinCohort, a.Spec.QueueingStrategy)
		r, _ := quota.Resolve(&a.Spec, instanceTypes)
		for _, p := range r.Pools {
			fmt.Fprintf(&b, " %s %s", p.Name, amountsText(p.Nominal))
		}
		b.WriteString("; ")
	}
	for i, d := range s.departments {
		fmt.Fprintf(&b, "department %d in %d weight=%d reserve %v borrowing %v lending %v; ", i, d.parent, d.weight, d.reserve, d.borrowing, d.lending)
	}
	fmt.Fprintf(&b, "teams in %v; unallocated %v; tasks", s.in, s.unallocated)
	for _, k := range s.tasks {
		b.WriteString(" " + k.String())
	}
	return b.String()
}

func amountsText(r quota.Resources) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name] > 0 {
			parts = append(parts, quota.Amount(name, r[name]))
		}
	}
	return strings.Join(parts, "/")
}
