package capacity

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const g5 = "ml.g5.12xlarge" // 4 GPUs, 48 vCPU, 192 GiB

// world is the input of a snapshot that a test builds.
type world struct{ in input }

func newWorld() *world {
	return &world{input{at: time.Unix(1_800_000_000, 0), cohort: "shared-pool", typeLabel: catalog.InstanceTypeLabel, occupied: index.ClusterUsage{
		Nodes: map[string]index.NodeUsage{}, Queues: map[string]quota.FlavorResourceQuantities{}, Growth: map[string]quota.FlavorResourceQuantities{}, Places: map[tasks.Place]index.TaskCount{},
	}}}
}

func (w *world) node(name string, ready bool, gpus resources.Amount) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	capacity := corev1.ResourceList{"cpu": resource.MustParse("48"), "memory": resource.MustParse("192Gi"), catalog.GPU: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	w.in.nodes.Items = append(w.in.nodes.Items, corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{catalog.InstanceTypeLabel: g5}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: "kubelet stopped posting node status"}}},
	})
	return &w.in.nodes.Items[len(w.in.nodes.Items)-1]
}

func (w *world) team(name string, gpus, used resources.Amount) {
	w.in.allocations = append(w.in.allocations, &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.ComputeAllocationStatus{Namespace: "ns-" + name},
	})
	w.queue(name, name, gpus, used)
}

func (w *world) queue(name, team string, gpus, used resources.Amount) {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{CohortName: "shared-pool", ResourceGroups: []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{catalog.GPU},
		Flavors:          []kueue.FlavorQuotas{{Name: g5, Resources: []kueue.ResourceQuota{{Name: catalog.GPU, NominalQuota: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}}}},
	}}}}
	if team != "" {
		q.Labels = map[string]string{desired.LabelTeam: team}
	}
	w.in.queues = append(w.in.queues, q)
	w.in.occupied.Queues[name] = quota.FlavorResourceQuantities{{Flavor: g5, Resource: catalog.GPU}: used}
}

// pods binds a pod to a node: of an admitted task in the namespace or, if it is
// empty, outside of Kueue.
func (w *world) pods(node, namespace string, gpus resources.Amount) {
	on, ok := w.in.occupied.Nodes[node]
	if !ok {
		on = index.NodeUsage{Requests: quota.Resources{}, Admitted: map[tasks.Place]quota.Resources{}}
	}
	on.Pods++
	on.Requests.Add(quota.Resources{catalog.GPU: gpus})
	if place := (tasks.Place{Namespace: namespace}); namespace != "" {
		if on.Admitted[place] == nil {
			on.Admitted[place] = quota.Resources{}
		}
		on.Admitted[place].Add(quota.Resources{catalog.GPU: gpus})
	}
	w.in.occupied.Nodes[node] = on
}

func (w *world) sum() *Snapshot {
	w.in.catalog = catalog.New(catalog.Input{Nodes: w.in.nodes.Items, InstanceTypeLabel: catalog.InstanceTypeLabel})
	return w.in.sum()
}

func (s *Snapshot) gpus(pool string) usage.PoolUsage {
	for _, p := range s.Pools {
		for _, c := range p.Resources {
			if p.Name == pool && c.Resource == catalog.GPU {
				return c.PoolUsage
			}
		}
	}
	return usage.PoolUsage{}
}

func (t TeamSnapshot) gpus() (sum usage.TeamUsage) {
	for _, c := range t.Resources {
		if c.Resource == catalog.GPU {
			sum.Add(c.TeamUsage)
		}
	}
	return sum
}

// HyperPod's launch example: two teams have a nominal quota of 15 GPUs and use 8, of
// which 2 are borrowed.
func TestLaunchExample(t *testing.T) {
	w := newWorld()
	for i := range 4 {
		w.node(strconv.Itoa(i), true, 4)
	}
	w.team("ml-engineers", 6, 8)
	w.team("research", 9, 0)
	for node := range 2 {
		w.pods(strconv.Itoa(node), "ns-ml-engineers", 4)
	}
	s := w.sum()
	want := usage.PoolUsage{Physical: 16, OwnBound: 6, BorrowedBound: 2, Idle: 8, Nominal: 15, Usage: 8, Borrowed: 2, LentToCohort: 2, LargestFree: 4}
	if diff := cmp.Diff(want, s.gpus(g5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(usage.TeamUsage{Nominal: 9, LentToCohort: 2, LentBound: 2}, s.Teams[1].gpus()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := usage.Percent[resources.Amount](8, 15); got != "53.33 %" {
		t.Errorf("got %s, want 53.33 %%", got)
	}
}

// Of licenses, which no node reports, there is what teams have quota of. They are used from
// admission on, without a node.
func TestLicenses(t *testing.T) {
	w := newWorld()
	w.node("a", true, 4)
	license := quota.FlavorResource{Flavor: g5, Resource: "example.com/license"}
	for name, amounts := range map[string]struct{ quota, used int64 }{"vision": {3, 5}, "speech": {4, 0}} {
		w.team(name, 0, 0)
		group := &w.in.queues[len(w.in.queues)-1].Spec.ResourceGroups[0]
		group.CoveredResources = append(group.CoveredResources, "example.com/license")
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: "example.com/license", NominalQuota: *resource.NewQuantity(amounts.quota, resource.DecimalSI)})
		w.in.occupied.Queues[name][license] = resources.Amount(amounts.used)
	}
	s := w.sum()
	wantPool := usage.PoolUsage{Physical: 7, OwnBound: 3, BorrowedBound: 2, Idle: 2, Nominal: 7, Usage: 5, Borrowed: 2, LentToCohort: 2}
	for _, c := range s.Pools[0].Resources {
		if diff := cmp.Diff(wantPool, c.PoolUsage); c.Resource == license.Resource && (diff != "" || c.Overallocated() != 0) {
			t.Errorf("%d over capacity; pool (-want +got):\n%s", c.Overallocated(), diff)
		}
	}
	wantTeams := map[string]usage.TeamUsage{
		"vision": {Nominal: 3, Usage: 5, Own: 3, Borrowed: 2, OwnBound: 3, BorrowedBound: 2},
		"speech": {Nominal: 4, LentToCohort: 2, LentBound: 2},
	}
	for _, team := range s.Teams {
		for _, c := range team.Resources {
			if diff := cmp.Diff(wantTeams[team.Name], c.TeamUsage); c.Resource == license.Resource && diff != "" {
				t.Errorf("team %s (-want +got):\n%s", team.Name, diff)
			}
		}
	}
}

// Bound, outside, unhealthy and idle add up to physical on nodes in any state.
func TestPartsOfNodes(t *testing.T) {
	w := newWorld()
	w.node("lost", false, 4)
	w.node("devices-missing", true, 1)
	w.node("cordoned", true, 4).Spec.Unschedulable = true
	partitioned := w.node("half-partitioned", true, 2)
	partitioned.Status.Capacity["nvidia.com/mig-1g.5gb"] = resource.MustParse("14")
	w.team("a", 4, 5)
	w.queue("foreign", "", 0, 1)
	w.pods("lost", "ns-a", 3)
	w.pods("devices-missing", "", 1)
	w.pods("cordoned", "ns-a", 1)
	w.pods("cordoned", "elsewhere", 1)
	s := w.sum()
	want := usage.PoolUsage{Physical: 14, OwnBound: 4, BorrowedBound: 1, Outside: 1, Unhealthy: 1 + 3 + 2, Idle: 2, Recovering: 4, Cordoned: 4, Nominal: 4, Usage: 6, Unbound: 1, Borrowed: 2, LargestFree: 2}
	if diff := cmp.Diff(want, s.gpus(g5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Others == nil || s.Others.gpus().Usage != 1 || s.Nodes[0].State != Cordoned || s.Nodes[3].State != Recovering || s.Nodes[3].Message == "" {
		t.Errorf("got others %+v and nodes %+v", s.Others, s.Nodes)
	}
}

// For any input, the parts of each pool add up to its physical amount, and the
// teams add up to the pool.
func TestSnapshotsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 4))
	amount := func(below int64) resources.Amount { return resources.Amount(random.Int64N(below)) }
	for range 300 {
		w := newWorld()
		for i := range 1 + random.IntN(5) {
			w.node(strconv.Itoa(i), random.IntN(4) > 0, amount(6)).Spec.Unschedulable = random.IntN(5) == 0
		}
		for i := range random.IntN(4) {
			w.team("t"+strconv.Itoa(i), amount(9), amount(12))
		}
		w.queue("foreign", "", amount(3), amount(3))
		for range random.IntN(10) {
			namespace := []string{"", "ns-t0", "ns-t1", "elsewhere"}[random.IntN(4)]
			w.pods(strconv.Itoa(random.IntN(5)), namespace, amount(5))
		}
		s := w.sum()
		p := s.gpus(g5)
		if p.OwnBound+p.BorrowedBound+p.Outside+p.Unhealthy+p.Idle != p.Physical {
			t.Fatalf("the parts of %+v do not add up", p)
		}
		teams := s.Teams
		if s.Others != nil {
			teams = append(teams, *s.Others)
		}
		all := sumOf(teams).gpus()
		if all.Usage != p.Usage || all.OwnBound != p.OwnBound || all.BorrowedBound != p.BorrowedBound || all.Borrowed != p.Borrowed || all.LentToCohort != p.LentToCohort || all.Nominal != p.Nominal || p.LentToCohort+p.BorrowedUnallocated > p.Borrowed ||
			all.LentBound > p.BorrowedBound || all.LentBound > all.LentToCohort {
			t.Fatalf("the sum of teams is %+v, their pool is %+v", all, p)
		}
	}
}

// A team of a department borrows of another team in it, of its reserve, and of another
// department's. All queues below the root count.
func TestDepartments(t *testing.T) {
	w := newWorld()
	for i := range 3 {
		w.node(strconv.Itoa(i), true, 4)
	}
	for _, c := range []struct {
		name, parent string
		gpus         int64
	}{{"shared-pool", "", 1}, {"research", "shared-pool", 2}, {"products", "shared-pool", 0}} {
		w.in.cohorts.Items = append(w.in.cohorts.Items, kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(c.parent), ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{catalog.GPU},
			Flavors:          []kueue.FlavorQuotas{{Name: g5, Resources: []kueue.ResourceQuota{{Name: catalog.GPU, NominalQuota: *resource.NewQuantity(c.gpus, resource.DecimalSI)}}}},
		}}}})
	}
	for i, cohort := range []kueue.CohortReference{"research", "research", "products", "elsewhere"} {
		w.team(string("abcd"[i]), 2, 0)
		w.in.queues[i].Spec.CohortName = cohort
	}
	w.in.occupied.Queues["a"] = quota.FlavorResourceQuantities{{Flavor: g5, Resource: catalog.GPU}: 8}
	s := w.sum()
	want := usage.PoolUsage{Physical: 12, Idle: 12, Nominal: 8, Usage: 8, Unbound: 8, Borrowed: 6, LentToCohort: 3, BorrowedUnallocated: 1, BorrowedReserve: 2, Unallocated: 1, Reserve: 2, LargestFree: 4}
	if diff := cmp.Diff(want, s.gpus(g5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, want := range []resources.Amount{0, 2, 1, 0} {
		if lent := s.Teams[i].gpus().LentToCohort; lent != want {
			t.Errorf("team %s lends %d, want %d", s.Teams[i].Name, lent, want)
		}
	}
}

// Two teams share a namespace: each task counts for the team of its queue, and so do its
// pods, with Kueue's label of 0.17 or without.
func TestTeamsInOneNamespace(t *testing.T) {
	x := index.New(func() time.Time { return taskstest.Start })
	for i := range 6 {
		team := []string{"cpu", "gpu", "gpu"}[i%3]
		w := taskstest.Workload("duo", fmt.Sprint("t", i), "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...)
		if i >= 3 {
			w = taskstest.UsingGPUs(taskstest.Workload("duo", fmt.Sprint("t", i), "", 0, taskstest.Start, taskstest.Admitted(taskstest.Start)...), team, 1)
		}
		w.Spec.QueueName = kueue.LocalQueueName(team + "-local")
		x.SetWorkload(w, false)
		if i < 3 {
			continue
		}
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "duo", Name: w.Name, UID: types.UID(w.Name), Labels: map[string]string{"kueue.x-k8s.io/podset": "main"}, OwnerReferences: w.OwnerReferences},
			Spec:       corev1.PodSpec{NodeName: "0", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{catalog.GPU: resource.MustParse("1")}}}}},
		}
		if i == 4 {
			p.Labels["kueue.x-k8s.io/local-queue-name"] = team + "-local"
		}
		x.SetPod(x.PodOf(p))
	}
	w := newWorld()
	w.node("0", true, 4)
	for _, team := range []string{"cpu", "gpu"} {
		w.team(team, 2, 0)
		w.in.allocations[len(w.in.allocations)-1].Status.Namespace = "duo"
		w.in.localQueues = append(w.in.localQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "duo", Name: team + "-local"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team)}})
	}
	w.in.occupied = x.ClusterUsage()
	s := w.sum()
	type figures struct {
		Running, Waiting int
		OwnBound         resources.Amount
	}
	for i, want := range []figures{{1, 1, 1}, {2, 2, 2}} {
		team := s.Teams[i]
		if got := (figures{team.Running, team.Waiting, team.gpus().OwnBound}); got != want {
			t.Errorf("team %s has %+v, want %+v", team.Name, got, want)
		}
	}
	for i := range 6 {
		x.DeleteWorkload(x.Find("duo", "Job", fmt.Sprint("t", i), "").Main)
	}
	if left := x.ClusterUsage().Places; len(left) != 0 {
		t.Errorf("without tasks %+v are left", left)
	}
}

// Growth is part of a team's usage and of the pool's, also for a reader who does not see
// the team.
func TestGrowth(t *testing.T) {
	w := newWorld()
	w.node("0", true, 4)
	w.team("training", 2, 4)
	w.team("other", 2, 0)
	w.in.occupied.Growth["training"] = quota.FlavorResourceQuantities{{Flavor: g5, Resource: catalog.GPU}: 3}
	s := w.sum()
	for name, want := range map[string]resources.Amount{"training": 3, "other": 0} {
		for _, team := range s.Teams {
			if got := team.gpus().Growth; team.Name == name && got != want {
				t.Errorf("growth of %s uses %d GPUs, want %d", name, got, want)
			}
		}
	}
	if pool := s.gpus(g5); pool.Growth != 3 || pool.Usage != 4 {
		t.Errorf("growth uses %d of %d GPUs of the pool, want 3 of 4", pool.Growth, pool.Usage)
	}
	hidden := s.within(access.ScopeOf("ns-other"))
	if got := hidden.Others.gpus().Growth; got != 3 {
		t.Errorf("growth of other teams uses %d GPUs, want 3", got)
	}
}
