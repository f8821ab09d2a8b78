package preview

import (
	"fmt"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	p5  = "ml.p5.48xlarge"
	gpu = "nvidia.com/gpu"
)

func team(name string, gpus int64) v1alpha1.ComputeAllocation {
	return v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: p5, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}}}
}

// lab returns what a cluster with four nodes of eight GPUs has and follows from:
// Kuota's objects as the API server stores them.
func lab(t *testing.T, policy *v1alpha1.ClusterPolicy, teams ...v1alpha1.ComputeAllocation) (*existing, *inputs) {
	t.Helper()
	var nodes []corev1.Node
	for i := range 4 {
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: map[string]string{catalog.InstanceTypeLabel: p5}},
			Status: corev1.NodeStatus{
				Capacity:   corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"), "vpc.amazonaws.com/efa": resource.MustParse("32")},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	in := &inputs{allocations: teams, policy: policy, naming: desired.DefaultNaming, types: catalog.New(catalog.Input{Nodes: nodes, InstanceTypeLabel: catalog.InstanceTypeLabel})}
	is := &existing{queues: map[string]*kueue.ClusterQueue{}, locals: map[types.NamespacedName]*kueue.LocalQueue{}, flavors: map[string]*kueue.ResourceFlavor{}, cohorts: map[string]*kueue.Cohort{}, namespaces: map[string]*corev1.Namespace{}}
	ours := map[string]string{desired.LabelManagedBy: desired.ManagedBy}
	all, err := changeOf(is, &inputs{naming: in.naming, types: in.types}, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.ClusterQueues {
		o.Labels, is.queues[o.Name] = ours, o
	}
	for _, o := range all.LocalQueues {
		o.Labels, is.locals[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = ours, o
	}
	for _, o := range all.Flavors {
		o.Labels, is.flavors[o.Name] = ours, o
	}
	for _, o := range all.Cohorts {
		o.Labels, is.cohorts[o.Name] = ours, o
	}
	for _, o := range all.Namespaces {
		is.namespaces[o.Name] = o
	}
	return is, in
}

// summary describes a change: the GPUs and settings of queues, and other objects.
func summary(c *simulate.Change) (lines []string) {
	for _, q := range c.ClusterQueues {
		lines = append(lines, fmt.Sprintf("queue %s: %d GPUs, cohort %q, stop %s, within %s", q.Name, desired.QueueQuota(q)[p5][gpu], q.Spec.CohortName, *q.Spec.StopPolicy, q.Spec.Preemption.WithinClusterQueue))
	}
	for _, q := range c.LocalQueues {
		lines = append(lines, fmt.Sprintf("local queue %s/%s of %s", q.Namespace, q.Name, q.Spec.ClusterQueue))
	}
	for _, o := range c.Flavors {
		lines = append(lines, "flavor "+o.Name)
	}
	for _, o := range c.Namespaces {
		lines = append(lines, fmt.Sprintf("namespace %s %v", o.Name, o.Labels))
	}
	for _, o := range c.Cohorts {
		lines = append(lines, fmt.Sprintf("cohort %s: %d GPUs", o.Name, desired.QueueQuota(&kueue.ClusterQueue{Spec: kueue.ClusterQueueSpec{ResourceGroups: o.Spec.ResourceGroups}})[p5][gpu]))
	}
	for _, name := range c.Removed.ClusterQueues {
		lines = append(lines, "removed queue "+name)
	}
	for _, key := range c.Removed.LocalQueues {
		lines = append(lines, "removed local queue "+key.String())
	}
	for _, name := range c.Removed.Cohorts {
		lines = append(lines, "removed cohort "+name)
	}
	return lines
}

func TestChangeOf(t *testing.T) {
	const vision, speech = "hyperpod-ns-vision-clusterqueue", "hyperpod-ns-speech-clusterqueue"
	sharing := func() *v1alpha1.ClusterPolicy {
		return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{ShareUnallocated: true}}}
	}
	edit := func(how func(*v1alpha1.ComputeAllocation)) func(*inputs) {
		return func(in *inputs) {
			in.allocations = append([]v1alpha1.ComputeAllocation(nil), in.allocations...)
			how(&in.allocations[0])
		}
	}
	policy := func(how func(*v1alpha1.ClusterPolicy)) func(*inputs) {
		return func(in *inputs) {
			in.policy = in.policy.DeepCopy()
			how(in.policy)
		}
	}
	for name, tc := range map[string]struct {
		policy *v1alpha1.ClusterPolicy
		change func(*inputs)
		want   []string
	}{
		"nothing": {change: func(*inputs) {}},
		"more quota": {
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec = team("vision", 16).Spec }),
			want:   []string{"queue " + vision + `: 16 GPUs, cohort "shared-pool", stop None, within LowerPriority`},
		},
		"more quota, and the rest is lent": {
			policy: sharing(),
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec = team("vision", 16).Spec }),
			want:   []string{"queue " + vision + `: 16 GPUs, cohort "shared-pool", stop None, within LowerPriority`, "cohort shared-pool: 12 GPUs"},
		},
		"no cohort": {
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec.CohortName = ptr.To("") }),
			want:   []string{"queue " + vision + `: 8 GPUs, cohort "", stop None, within LowerPriority`},
		},
		"hold": {
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec.Activation = v1alpha1.Hold }),
			want:   []string{"queue " + vision + `: 8 GPUs, cohort "shared-pool", stop Hold, within LowerPriority`},
		},
		"drain": {
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec.Activation = v1alpha1.Drain }),
			want:   []string{"queue " + vision + `: 8 GPUs, cohort "shared-pool", stop HoldAndDrain, within LowerPriority`},
		},
		"default queue": {
			change: edit(func(a *v1alpha1.ComputeAllocation) { a.Spec.DefaultQueue = true }),
			want:   []string{"local queue hyperpod-ns-vision/default of " + vision},
		},
		"new team": {
			change: func(in *inputs) { in.allocations = append(in.allocations, team("maps", 2)) },
			want: []string{
				`queue hyperpod-ns-maps-clusterqueue: 2 GPUs, cohort "shared-pool", stop None, within LowerPriority`,
				"local queue hyperpod-ns-maps/hyperpod-ns-maps-localqueue of hyperpod-ns-maps-clusterqueue",
				"namespace hyperpod-ns-maps map[kubernetes.io/metadata.name:hyperpod-ns-maps]",
			},
		},
		"first come": {
			policy: sharing(),
			change: policy(func(p *v1alpha1.ClusterPolicy) {
				p.Status.Ranking = &v1alpha1.Ranking{Step: v1alpha1.RankingSettled, Active: v1alpha1.FirstComeFirstServe}
			}),
			want: []string{
				"queue " + speech + `: 4 GPUs, cohort "shared-pool", stop None, within Never`,
				"queue " + vision + `: 8 GPUs, cohort "shared-pool", stop None, within Never`,
			},
		},
		"lend no more": {
			policy: sharing(),
			change: policy(func(p *v1alpha1.ClusterPolicy) { p.Spec.IdleCompute.ShareUnallocated = false }),
			want:   []string{"removed cohort shared-pool"},
		},
		"another cohort": {
			policy: sharing(),
			change: policy(func(p *v1alpha1.ClusterPolicy) { p.Spec.CohortName = "other" }),
			want: []string{
				"queue " + speech + `: 4 GPUs, cohort "other", stop None, within LowerPriority`,
				"queue " + vision + `: 8 GPUs, cohort "other", stop None, within LowerPriority`,
				"cohort other: 20 GPUs", "removed cohort shared-pool",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, before := lab(t, tc.policy, team("vision", 8), team("speech", 4))
			after := *before
			tc.change(&after)
			c, err := changeOf(is, before, &after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, summary(&c)); diff != "" {
				t.Errorf("the change differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeptFields changes an adopted queue: what its owner set and Kuota does not stays.
func TestKeptFields(t *testing.T) {
	adopted := team("vision", 8)
	adopted.Spec.ClusterQueueName, adopted.Spec.LocalQueueName, adopted.Spec.FairShareWeight = "own", "own", desired.DefaultWeight
	is, before := lab(t, nil, adopted)
	is.queues["own"].Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "vision"}}
	is.queues["own"].Spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold = ptr.To[int32](7)
	after := *before
	after.allocations = []v1alpha1.ComputeAllocation{adopted}
	after.allocations[0].Spec.Quota = team("vision", 4).Spec.Quota
	c, err := changeOf(is, before, &after)
	if err != nil {
		t.Fatal(err)
	}
	want := is.queues["own"].Spec.DeepCopy()
	want.ResourceGroups = c.ClusterQueues[0].Spec.ResourceGroups
	if diff := cmp.Diff(*want, c.ClusterQueues[0].Spec); diff != "" || desired.QueueQuota(c.ClusterQueues[0])[p5][gpu] != 4 {
		t.Errorf("the queue differs (-want +got):\n%s", diff)
	}
}

func TestDeletion(t *testing.T) {
	const queue = "hyperpod-ns-vision-clusterqueue"
	removed := []string{"removed queue " + queue, "removed local queue hyperpod-ns-vision/hyperpod-ns-vision-localqueue"}
	emptied := "queue " + queue + `: 0 GPUs, cohort "shared-pool", stop HoldAndDrain, within LowerPriority`
	for name, tc := range map[string]struct {
		teams                   []string
		admitted                bool // a task of vision
		wantChange, wantRemoved []string
	}{
		"idle":    {teams: []string{"vision"}, wantChange: append([]string{"cohort shared-pool: 26 GPUs"}, removed...), wantRemoved: append([]string{"cohort shared-pool: 26 GPUs"}, removed...)},
		"drained": {teams: []string{"vision"}, admitted: true, wantChange: []string{emptied, "cohort shared-pool: 26 GPUs"}, wantRemoved: append([]string{"cohort shared-pool: 26 GPUs"}, removed...)},
		"several": {
			teams: []string{"vision", "speech"}, admitted: true,
			wantChange: []string{emptied, "cohort shared-pool: 30 GPUs", "removed queue hyperpod-ns-speech-clusterqueue", "removed local queue hyperpod-ns-speech/hyperpod-ns-speech-localqueue"},
			wantRemoved: []string{
				"cohort shared-pool: 30 GPUs", "removed queue hyperpod-ns-speech-clusterqueue", "removed queue " + queue,
				"removed local queue hyperpod-ns-speech/hyperpod-ns-speech-localqueue", "removed local queue hyperpod-ns-vision/hyperpod-ns-vision-localqueue",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, before := lab(t, &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{ShareUnallocated: true}}}, team("vision", 8), team("speech", 4), team("language", 2))
			if tc.admitted {
				is.workloads = []kueue.Workload{{Status: kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: queue}}}}
			}
			after, change, removed, err := deletion(is, before, tc.teams)
			if err != nil {
				t.Fatal(err)
			}
			if len(after.allocations) != 3-len(tc.teams) || len(before.allocations) != 3 {
				t.Errorf("%d of %d allocations are left", len(after.allocations), len(before.allocations))
			}
			if diff := cmp.Diff(tc.wantChange, summary(&change)); diff != "" {
				t.Errorf("the change differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantRemoved, summary(&removed)); diff != "" {
				t.Errorf("what is removed differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangePriorities(t *testing.T) {
	workload := func(name, class string, priority int32, conditions ...metav1.Condition) kueue.Workload {
		w := kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.WorkloadSpec{Priority: &priority}, Status: kueue.WorkloadStatus{Conditions: conditions}}
		if class != "" {
			w.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(class)
		}
		return w
	}
	is := &existing{workloads: []kueue.Workload{
		workload("changes", "high", 0), workload("same", "high", 90), workload("other", "low", 3), workload("none", "", 5),
		workload("ended", "high", 0, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}),
	}}
	var c simulate.Change
	changePriorities(&c, is, map[string]int32{"high": 90})
	if len(c.Workloads) != 1 || c.Workloads[0].Name != "changes" || *c.Workloads[0].Spec.Priority != 90 || *is.workloads[0].Spec.Priority != 0 {
		t.Errorf("changed %+v", c.Workloads)
	}
}

func TestTies(t *testing.T) {
	for n, want := range map[int]int{0: maxTies, maxTied: maxTies, maxTied + 1: 1} {
		if got := reviewed(governance.User{}).orders(&simulate.Snapshot{Workloads: make([]*kueue.Workload, n)}); got != want {
			t.Errorf("%d Workloads have %d orders, want %d", n, got, want)
		}
	}
}

func TestCompareYAML(t *testing.T) {
	before, after := "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nf\ng\ni\n"
	var got []string
	for _, line := range compareYAML(before, after) {
		got = append(got, map[bool]string{true: "+"}[line.Added]+map[bool]string{true: "-"}[line.Removed]+line.Text)
	}
	if diff := cmp.Diff([]string{"…", "e", "f", "g", "-h", "+i"}, got); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
	if lines := compareYAML(after, after); lines != nil {
		t.Errorf("equal texts differ in %v", lines)
	}
}
