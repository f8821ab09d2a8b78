package advice_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/advice"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = "nvidia.com/gpu"

var (
	now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	fr  = quota.FlavorResource{Flavor: "p5", Resource: gpu}
)

// given is a cluster with one flavor, as snapshot and as input of package explain.
type given struct {
	snapshot *simulate.Snapshot
	cluster  *explain.Cluster
	saved    func(string, quota.Resources) (quota.Resolved, bool) // of the Input

	pods       map[types.UID][]explain.NodePod // on nodes, by Workload
	constraint explain.Constraint              // of the verdict; empty for the one that explain finds
	asked      []*simulate.Question            // in the order of the last search
	shownAfter int                             // how many were asked before the first change was shown
}

func newGiven() *given {
	return &given{
		snapshot: &simulate.Snapshot{Time: now, Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}}},
		cluster: &explain.Cluster{Now: now, LocalQueue: "queue", Queues: map[string]*explain.Queue{}, Flavors: map[string]kueue.ResourceFlavorSpec{"p5": {}},
			PriorityClasses: []explain.PriorityClass{{Name: "low", Priority: 10}, {Name: "middle", Priority: 50}, {Name: "high", Priority: 100}, {Name: "urgent", Priority: 200}}},
	}
}

// team adds a queue that borrows at most limit GPUs.
func (g *given) team(name string, gpus, limit resources.Amount) {
	g.snapshot.Namespaces = append(g.snapshot.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	g.snapshot.ClusterQueues = append(g.snapshot.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
		Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: []kueue.ResourceQuota{{
			Name: gpu, NominalQuota: *resource.NewQuantity(int64(gpus), resource.DecimalSI), BorrowingLimit: resource.NewQuantity(int64(limit), resource.DecimalSI)}}}}}},
	}})
	g.snapshot.LocalQueues = append(g.snapshot.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)}})
	g.cluster.Queues[name] = &explain.Queue{Name: name, Cohort: "kuota", Flavors: []string{"p5"}, Resources: []string{gpu},
		Limits: map[quota.FlavorResource]explain.Limit{fr: {Nominal: gpus, BorrowingLimit: &limit}}, Usage: quota.FlavorResourceQuantities{}}
}

func (g *given) task(team, name string, pods int32, gpus int64, priority int32, age time.Duration) *kueue.Workload {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(team + "-" + name), CreationTimestamp: metav1.NewTime(now.Add(-age))},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To(priority), Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: pods, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}}}}}},
	}
	g.snapshot.Workloads = append(g.snapshot.Workloads, w)
	return w
}

func (g *given) running(team, name string, gpus int64, priority int32, age time.Duration) {
	w := g.task(team, name, 1, gpus, priority, age)
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(team), PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: "p5"}, ResourceUsage: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}}}}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)), Reason: condition})
	}
	usage := quota.FlavorResourceQuantities{fr: resources.Amount(gpus)}
	g.cluster.Admitted = append(g.cluster.Admitted, &explain.AdmittedWorkload{Name: name, Namespace: team, Queue: team, Priority: priority, QuotaReservedAt: now.Add(-age), UID: string(w.UID), WorkloadUID: string(w.UID), Usage: usage})
	g.cluster.Queues[team].Usage[fr] += resources.Amount(gpus)
}

// nodes adds nodes of p5 with some GPUs each.
func (g *given) nodes(count int, gpus resources.Amount) {
	for range count {
		has := quota.Resources{gpu: gpus, "pods": 110}
		g.cluster.Nodes = append(g.cluster.Nodes, explain.Node{Name: fmt.Sprint("node-", len(g.cluster.Nodes)), Ready: true, Allocatable: has, Free: has})
	}
}

// bind binds a pod of the last task to a node.
func (g *given) bind(node int, gpus resources.Amount) {
	n := &g.cluster.Nodes[node]
	n.Free = maps.Clone(n.Free)
	n.Free[gpu], n.Free["pods"] = n.Free[gpu].Minus(gpus), n.Free["pods"].Minus(1)
	uid := g.snapshot.Workloads[len(g.snapshot.Workloads)-1].UID
	if g.pods == nil {
		g.pods = map[types.UID][]explain.NodePod{}
	}
	g.pods[uid] = append(g.pods[uid], explain.NodePod{Node: n.Name, Requests: quota.Resources{gpu: gpus}})
}

// OnNodes implements advice.Pods.
func (g *given) OnNodes(w *kueue.Workload) []explain.NodePod { return g.pods[w.UID] }

// Sets implements advice.Pods.
func (g *given) Sets(w *kueue.Workload) (sets []explain.PodSet) {
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		requests := quota.Resources{}
		for name, amount := range set.Template.Spec.Containers[0].Resources.Requests {
			requests[string(name)] = resources.Amount(amount.Value())
		}
		sets = append(sets, explain.PodSet{Name: string(set.Name), Count: set.Count, MinCount: ptr.Deref(set.MinCount, set.Count), Requests: requests, Spec: &set.Template.Spec})
	}
	return sets
}

// find returns the advice about a task.
func (g *given) find(t *testing.T, w *kueue.Workload) advice.Advice {
	t.Helper()
	g.cluster.Queue = g.cluster.Queues[w.Namespace]
	q := explain.Task{Namespace: w.Namespace, Priority: *w.Spec.Priority, PodSets: g.Sets(w)}
	in := advice.Input{Snapshot: g.snapshot, Workload: types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, Task: q, Cluster: g.cluster, Verdict: explain.Why(q, g.cluster), Saved: g.saved, Pods: g}
	if g.constraint != "" {
		in.Verdict.Constraint = g.constraint
	}
	e := &engine.Engine{}
	var last advice.Advice
	err := advice.Find(t.Context(), in, func(ctx context.Context, q *simulate.Question) (*simulate.Report, error) {
		g.asked = append(g.asked, q)
		return e.Answer(ctx, g.snapshot, q)
	}, func(a advice.Advice) {
		if last = a; len(a.Changes) > 0 && g.shownAfter == 0 {
			g.shownAfter = len(g.asked)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Done {
		t.Fatal("the search is not reported as done")
	}
	return last
}

// TestFind has a team whose quota is used, and an older task of the same team ahead:
// what is enough for one task alone starts the older one.
func TestFind(t *testing.T) {
	g := newGiven()
	g.team("vision", 4, 2)
	g.team("speech", 8, 0)
	g.running("vision", "a", 4, 50, time.Hour)
	g.running("speech", "b", 4, 50, time.Hour)
	g.task("vision", "older", 1, 2, 50, time.Hour)
	waiting := g.task("vision", "waits", 2, 2, 50, time.Minute)
	a := g.find(t, waiting)
	if a.Starts {
		t.Errorf("it starts without a change: %+v", a)
	}
	if g.shownAfter != 1 {
		t.Errorf("%d questions were asked before a change was shown, want 1", g.shownAfter)
	}
	var got []explain.Change
	for _, c := range a.Changes {
		got = append(got, c.Change)
	}
	// The older task takes the 2 GPUs that the team may borrow.
	want := []explain.Change{
		{Kind: explain.HigherPriorityClass, PriorityClass: "high", Priority: 100, Borrowed: quota.FlavorResourceQuantities{fr: 2}},
		{Kind: explain.TasksEnd, Tasks: []explain.AdmittedWorkload{*g.cluster.Admitted[0]}, Borrowed: quota.FlavorResourceQuantities{fr: 2}},
		{Kind: explain.RaiseNominalQuota, Quotas: []explain.QuotaChange{{FlavorResource: fr, From: 4, To: 8}}, Borrowed: quota.FlavorResourceQuantities{fr: 2}},
	}
	for i := range want {
		want[i].Verified, want[i].Minimal = true, true
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("changes differ (-want +got):\n%s", diff)
	}
}

// TestFindOfAShare finds changes of the quota of a share, where the task waits in one.
func TestFindOfAShare(t *testing.T) {
	for _, share := range []string{"", "nightly"} {
		g := newGiven()
		g.team("vision", 4, 0)
		g.cluster.Queues["vision"].Share = share
		a := g.find(t, g.task("vision", "waits", 1, 6, 50, time.Minute))
		i := slices.IndexFunc(a.Changes, func(c advice.Change) bool { return c.Kind == explain.RaiseNominalQuota })
		if i < 0 || a.Changes[i].Share != share || !a.Changes[i].Verified {
			t.Errorf("share %q: got %+v", share, a.Changes)
		}
	}
}

// TestFindOfNeverBorrowing has a team whose strategy is without borrowing: a borrowing limit
// needs another strategy, with which the team also lends.
func TestFindOfNeverBorrowing(t *testing.T) {
	g := newGiven()
	g.team("vision", 4, 0)
	g.team("speech", 8, 0)
	g.cluster.Queues["vision"].NeverBorrows = true
	g.snapshot.ClusterQueues[0].Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = resource.NewQuantity(0, resource.DecimalSI)
	a := g.find(t, g.task("vision", "waits", 1, 6, 50, time.Minute))
	for _, c := range a.Changes {
		if c.LendAndBorrow != (c.Kind == explain.RaiseBorrowingLimit) || !c.Verified {
			t.Errorf("got %+v", c.Change)
		}
		if c.Kind != explain.RaiseBorrowingLimit {
			continue
		}
		if r := c.Question.Change.ClusterQueues[0].Spec.ResourceGroups[0].Flavors[0].Resources[0]; r.LendingLimit != nil || r.BorrowingLimit.Value() != 2 {
			t.Errorf("simulated with lending limit %v and borrowing limit %v, want none and 2", r.LendingLimit, r.BorrowingLimit)
		}
		return
	}
	t.Errorf("no borrowing limit is offered: %+v", a.Changes)
}

// TestFindStarts has a task that Kueue preempts another one for: no change is needed.
// The instant answer says so, or something else.
func TestFindStarts(t *testing.T) {
	for _, constraint := range []explain.Constraint{explain.Preempting, explain.Quota} {
		g := newGiven()
		g.constraint = constraint
		g.team("vision", 4, 0)
		g.running("vision", "a", 4, 10, time.Hour)
		a := g.find(t, g.task("vision", "waits", 1, 4, 50, time.Minute))
		if !a.Starts || len(a.Changes) > 0 || len(a.Preempts) != 1 || a.Preempts[0].Workload != "vision/a" {
			t.Errorf("%s: advice %+v, want a start that preempts vision/a", constraint, a)
		}
		if unchanged := g.asked[0].Change.Empty(); unchanged != (constraint == explain.Preempting) {
			t.Errorf("%s: the first question is about the cluster as it is: %t", constraint, unchanged)
		}
	}
}

// A change is offered only if the pods of the task find nodes with it: on those that are
// free, or that tasks leave for it. Where there are no nodes it is not called verified.
func TestFindOnNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes int
		each  resources.Amount
		pods  int32
		gpus  int64
		used  bool // a task of the team uses 4 GPUs of the first nodes
		want  []explain.ChangeKind
		needs []string
	}{
		"no node is large enough":            {nodes: 16, each: 1, pods: 1, gpus: 2},
		"more than all nodes have":           {nodes: 4, each: 4, pods: 32, gpus: 1, want: []explain.ChangeKind{explain.FewerPods}},
		"nodes are free":                     {nodes: 4, each: 4, pods: 8, gpus: 1, want: []explain.ChangeKind{explain.RaiseNominalQuota, explain.FewerPods}},
		"only the nodes of another task fit": {nodes: 1, each: 4, pods: 1, gpus: 4, used: true, want: []explain.ChangeKind{explain.HigherPriorityClass, explain.TasksEnd}},
		"enough is free, but on no one node": {nodes: 8, each: 2, pods: 1, gpus: 4},
		"there are no nodes":                 {nodes: 0, pods: 8, gpus: 1, want: []explain.ChangeKind{explain.RaiseNominalQuota, explain.FewerPods}, needs: []string{"p5"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGiven()
			g.cluster.Nodes = []explain.Node{}
			g.nodes(tc.nodes, tc.each)
			g.team("vision", 4, 0)
			if tc.used {
				g.running("vision", "a", 4, 50, time.Hour)
				g.bind(0, 4)
			}
			a := g.find(t, g.task("vision", "waits", tc.pods, tc.gpus, 50, time.Minute))
			var got []explain.ChangeKind
			for _, c := range a.Changes {
				got = append(got, c.Kind)
				if c.Verified != (tc.needs == nil) || !slices.Equal(c.NeedsNodes, tc.needs) {
					t.Errorf("%s: verified %t, needs nodes of %v", c.Kind, c.Verified, c.NeedsNodes)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes differ (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	memory = "memory"
	gib    = resources.Amount(1) << 30
)

// TestFindMinimal has a task ahead that waits for memory: quota for both tasks would be
// enough, but quota without memory leaves the one ahead waiting. Memory that follows
// from the GPUs of the allocation does not.
func TestFindMinimal(t *testing.T) {
	for name, tc := range map[string]struct {
		saved    func(string, quota.Resources) (quota.Resolved, bool)
		wantGPUs resources.Amount
	}{
		"without an allocation": {wantGPUs: 3},
		"memory follows": {wantGPUs: 5, saved: func(pool string, typed quota.Resources) (quota.Resolved, bool) {
			gpus := max(2, typed[gpu])
			nominal := quota.Resources{gpu: gpus, memory: max(typed[memory], gpus*64*gib)}
			return quota.Resolved{Pools: []quota.FlavorQuotas{{Name: pool, Nominal: nominal, BorrowingLimit: quota.Resources{gpu: 0, memory: 0}}}}, true
		}},
	} {
		t.Run(name, func(t *testing.T) { testMinimal(t, tc.saved, tc.wantGPUs) })
	}
}

func testMinimal(t *testing.T, saved func(string, quota.Resources) (quota.Resolved, bool), wantGPUs resources.Amount) {
	t.Helper()
	g := newGiven()
	g.saved = saved
	g.team("vision", 2, 0)
	g.running("vision", "a", 1, 100, time.Hour)
	g.task("vision", "ahead", 1, 2, 50, time.Hour)
	waiting := g.task("vision", "waits", 1, 2, 10, time.Minute)

	group := &g.snapshot.ClusterQueues[0].Spec.ResourceGroups[0]
	group.CoveredResources = append(group.CoveredResources, memory)
	group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: memory, NominalQuota: *resource.NewQuantity(128*int64(gib), resource.BinarySI), BorrowingLimit: resource.NewQuantity(0, resource.BinarySI)})
	queue, mem := g.cluster.Queues["vision"], quota.FlavorResource{Flavor: "p5", Resource: memory}
	queue.Resources, queue.Limits[mem] = append(queue.Resources, memory), explain.Limit{Nominal: 128 * gib, BorrowingLimit: ptr.To[resources.Amount](0)}
	for i, request := range []resources.Amount{16, 128, 64} {
		w := g.snapshot.Workloads[i]
		amount := *resource.NewQuantity(int64(request*gib), resource.BinarySI)
		if w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[memory] = amount; w.Status.Admission != nil {
			assigned := w.Status.Admission.PodSetAssignments[0]
			assigned.Flavors[memory], assigned.ResourceUsage[memory] = "p5", amount
			g.cluster.Admitted[0].Usage[mem] = request * gib
			queue.Usage[mem] = request * gib
		}
	}

	a := g.find(t, waiting)
	i := slices.IndexFunc(a.Changes, func(c advice.Change) bool { return c.Kind == explain.RaiseNominalQuota })
	if i < 0 {
		t.Fatalf("got %+v, want a higher quota", a.Changes)
	}
	want := []explain.QuotaChange{{FlavorResource: fr, From: 2, To: wantGPUs}}
	if diff := cmp.Diff(want, a.Changes[i].Quotas); diff != "" || !a.Changes[i].Minimal {
		t.Errorf("minimal %t; quota differs (-want +got):\n%s", a.Changes[i].Minimal, diff)
	}
}
