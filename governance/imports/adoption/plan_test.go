package adoption_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/change"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// read returns the objects of a file of testdata, with the defaults of Kueue's CRDs,
// in a cluster with one node of each market and one of an instance type.
func read(t *testing.T, name string) adoption.Input {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := adoption.Input{Naming: desired.DefaultNaming, Kueue: &kueueconfig.Current{Text: "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n", Image: "kueue:v0.18.0"}}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "ClusterQueue":
			q := decode[kueue.ClusterQueue](t, document)
			setDefaults(&q.Spec)
			in.ClusterQueues = append(in.ClusterQueues, q)
		case "LocalQueue":
			in.LocalQueues = append(in.LocalQueues, decode[kueue.LocalQueue](t, document))
		case "Cohort":
			in.Cohorts = append(in.Cohorts, decode[kueue.Cohort](t, document))
		case "ResourceFlavor":
			in.Flavors = append(in.Flavors, decode[kueue.ResourceFlavor](t, document))
		default:
			t.Fatalf("%s has a %s", name, kind.Kind)
		}
	}
	in.Nodes = []corev1.Node{
		node("reserved", "example.com/market", "reserved"), node("spot", "example.com/market", "spot"),
		node("typed", catalog.InstanceTypeLabel, "ml.g5.12xlarge"),
	}
	return in
}

func decode[T any](t *testing.T, document string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return object
}

func node(name, label, value string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", label: value}}}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("1000Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// setDefaults sets what the API server sets in a ClusterQueue.
func setDefaults(spec *kueue.ClusterQueueSpec) {
	spec.QueueingStrategy = cmp.Or(spec.QueueingStrategy, kueue.BestEffortFIFO)
	spec.StopPolicy = ptr.To(ptr.Deref(spec.StopPolicy, kueue.None))
	if spec.FlavorFungibility == nil {
		spec.FlavorFungibility = &kueue.FlavorFungibility{WhenCanBorrow: kueue.MayStopSearch, WhenCanPreempt: kueue.TryNextFlavor}
	}
	if spec.Preemption == nil {
		spec.Preemption = &kueue.ClusterQueuePreemption{}
	}
	p := spec.Preemption
	p.WithinClusterQueue = cmp.Or(p.WithinClusterQueue, kueue.PreemptionPolicyNever)
	p.ReclaimWithinCohort = cmp.Or(p.ReclaimWithinCohort, kueue.PreemptionPolicyNever)
	if p.BorrowWithinCohort == nil {
		p.BorrowWithinCohort = &kueue.BorrowWithinCohort{}
	}
	p.BorrowWithinCohort.Policy = cmp.Or(p.BorrowWithinCohort.Policy, kueue.BorrowWithinCohortPolicyNever)
}

// The files of testdata are set-ups of our own like those of Kueue's examples and of
// its documentation. docs/adoption.md has the same verdicts.
func TestVerdicts(t *testing.T) {
	const manage, observe, refuse = adoption.Manage, adoption.Observe, adoption.Refuse
	for file, want := range map[string]map[string]struct {
		verdict adoption.Verdict
		reason  string // a part of the only reason or note
	}{
		"single":            {"research": {verdict: manage}},
		"namespace-default": {"research": {observe, "namespace default, which is reserved"}},
		"cohort":            {"vision": {verdict: manage}, "speech": {verdict: manage}},
		"limits": {
			"lends": {verdict: manage}, "keeps": {verdict: manage},
			"lends-part": {observe, "lends a part"}, "limits-some": {observe, "limits borrowing for some resources"},
		},
		"flavors":       {"genomics": {verdict: manage}, "physics": {verdict: manage}},
		"instance-type": {"render": {verdict: manage}},
		"local-queues": {
			"one-team": {manage, "submitted to LocalQueue day; other LocalQueues stay as they are: night"}, "two-teams": {observe, "several namespaces use it (left, right)"},
			"shares-namespace": {observe, "also has LocalQueues of ClusterQueue two-teams"}, "unused": {refuse, "no LocalQueue uses it"},
		},
		"admission-checks":     {"checked": {observe, "admission checks (capacity, budget)"}, "empty": {verdict: manage}},
		"nested-cohorts":       {"leaf": {manage, "Cohort group-a becomes department group-a"}, "root-member": {verdict: manage}, "outside": {verdict: manage}},
		"departments":          {"scan": {manage, "Cohort imaging becomes department imaging"}, "knee": {manage, "Cohort mri becomes department mri; Cohort imaging becomes department imaging"}, "dogs": {observe, "cohort pets: it limits borrowing for some resources of a flavor"}},
		"two-cohorts":          {"big-a": {manage, "Cohort big has quota of its own"}, "big-b": {manage, "Cohort big has quota of its own"}, "small": {observe, "in cohort a-small; Kuota manages one cohort, big"}},
		"resources":            {"credits": {observe, "2 resource groups"}, "pods": {verdict: manage}},
		"concurrent-admission": {"migrates": {observe, "concurrentAdmissionPolicy"}},
		"topology":             {"placed": {manage, "topology blocks-and-racks"}, "by-usage": {observe, "admissionScope"}},
		"settings": {
			"strict": {verdict: manage}, "weighted": {verdict: manage}, "held": {verdict: manage}, "drained": {verdict: manage},
			"half-weight": {observe, "weight 500m is not a whole number"}, "newer": {observe, "LowerOrNewerEqualPriority"}, "threshold": {observe, "maxPriorityThreshold"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			in := read(t, file)
			plan := adoption.NewPlan(in)
			if len(plan.Queues) != len(want) {
				t.Errorf("got plans for %d ClusterQueues, want %d", len(plan.Queues), len(want))
			}
			for _, q := range plan.Queues {
				text := strings.Join(append(slices.Clone(q.Reasons), q.Notes...), "; ")
				if w := want[q.Name]; q.Verdict != w.verdict || !strings.Contains(text, w.reason) || w.reason == "" && text != "" {
					t.Errorf("%s: got %s because of %q, want %s because of %q", q.Name, q.Verdict, text, w.verdict, w.reason)
				}
				checkAllocation(t, in, plan, q)
			}
		})
	}
}

// checkAllocation checks that the allocation of a plan changes no spec.
func checkAllocation(t *testing.T, in adoption.Input, plan adoption.Plan, q adoption.Queue) {
	t.Helper()
	switch {
	case q.Verdict == adoption.Refuse:
		if q.Allocation != nil {
			t.Errorf("%s is refused, and has an allocation", q.Name)
		}
		return
	case q.Verdict == adoption.Observe:
		if !q.Allocation.Spec.Observed() || q.Allocation.Spec.ClusterQueueName != q.Name {
			t.Errorf("%s is observed by %+v", q.Name, q.Allocation.Spec)
		}
		return
	}
	types := catalog.New(catalog.Input{Nodes: in.Nodes, InstanceTypeLabel: in.Naming.InstanceTypeLabel, Pools: plan.Policy.Spec.Pools})
	objects, errs := desired.Build(q.Allocation, types, in.Naming.Under(plan.Policy).In(departmentsOf(q)), desired.ByPriority)
	if len(errs) > 0 {
		t.Fatalf("%s: %v", q.Name, errs)
	}
	i := slices.IndexFunc(in.ClusterQueues, func(c kueue.ClusterQueue) bool { return c.Name == q.Name })
	changed, err := change.Applied(&in.ClusterQueues[i], objects.ClusterQueue)
	if err != nil || len(changed) > 0 {
		t.Errorf("%s would change %v (%v)", q.Name, changed, err)
	}
}

// departmentsOf returns the departments of a plan.
func departmentsOf(q adoption.Queue) (all []v1alpha1.Department) {
	for _, d := range q.Departments {
		all = append(all, *d)
	}
	return all
}

// The plan of two teams with a cohort and flavors, in full.
func TestPlan(t *testing.T) {
	in := read(t, "flavors")
	in.PriorityClasses = []kueue.WorkloadPriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "urgent-priority"}, Value: 90, Description: "Before all others"},
		{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 20},
		{ObjectMeta: metav1.ObjectMeta{Name: "top-priority"}, Value: 1000},
	}
	plan := adoption.NewPlan(in)

	wantPolicy := v1alpha1.ClusterPolicySpec{
		TaskPrioritization: v1alpha1.TaskRanking, CohortName: "labs", Enforcement: v1alpha1.EnforcementNone, PreemptionLoops: v1alpha1.WarnOfLoops,
		IdleCompute:     v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFirstComeFirstServe},
		PriorityClasses: []v1alpha1.PriorityClass{{Name: "urgent", Weight: ptr.To[int32](90), Description: "Before all others"}},
		Pools: []v1alpha1.Pool{
			{Name: "spot", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"example.com/market": "spot"}}},
			{Name: "reserved", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"example.com/market": "reserved"}}},
		},
	}
	if diff := gocmp.Diff(wantPolicy, plan.Policy.Spec); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	wantClasses := []adoption.PriorityClass{
		{Name: "gold", Verdict: adoption.Observe, Reason: "the names of the policy's priority classes end in -priority"},
		{Name: "top-priority", Verdict: adoption.Observe, Reason: "its value is 1000, and the weight of a priority class is from 0 to 100"},
		{Name: "urgent-priority", Verdict: adoption.Manage},
	}
	if diff := gocmp.Diff(wantClasses, plan.PriorityClasses); diff != "" {
		t.Errorf("priority classes (-want +got):\n%s", diff)
	}
	if plan.KueueChanges != "" || plan.PolicyProblem != "" {
		t.Errorf("the policy changes Kueue's configuration: %s%s", plan.KueueChanges, plan.PolicyProblem)
	}

	q, _ := plan.Queue("physics")
	quantity := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	want := v1alpha1.ComputeAllocationSpec{
		ClusterQueueName: "physics", LocalQueueName: "jobs", Namespace: "physics", CohortName: ptr.To("labs"), FairShareWeight: 1, Activation: "",
		CoveredResources: []string{"cpu", "memory", "nvidia.com/gpu"},
		Preemption:       v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever, ReclaimWithinCohort: "Never", BorrowWithinCohort: "Never"},
		Sharing:          v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow, Unlimited: true},
		Quota: []v1alpha1.QuotaRow{
			{Pool: "reserved", Quantities: v1alpha1.Quantities{VCPU: quantity("96"), Memory: quantity("1000Gi"), Accelerators: ptr.To[int64](8)}},
			{Pool: "spot", Quantities: v1alpha1.Quantities{VCPU: quantity("48"), Memory: quantity("500Gi")}},
		},
	}
	if diff := gocmp.Diff(want, q.Allocation.Spec); diff != "" {
		t.Errorf("allocation (-want +got):\n%s", diff)
	}
}

// A proposed policy lists the resources of the ClusterQueues. An existing one has to list them.
func TestOtherResources(t *testing.T) {
	in := read(t, "resources")
	plan := adoption.NewPlan(in)
	q, _ := plan.Queue("pods")
	if diff := gocmp.Diff([]v1alpha1.ListedResource{{Name: "pods", Label: "pods"}}, plan.Policy.Spec.Resources); diff != "" {
		t.Errorf("resources of the policy (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]v1alpha1.ResourceQuantity{{Name: "pods", Quantity: resource.MustParse("30")}}, q.Allocation.Spec.Quota[0].Resources); diff != "" {
		t.Errorf("resources of the row (-want +got):\n%s", diff)
	}
	in.Policy = plan.Policy.DeepCopy()
	in.Policy.Status.Pools = in.Policy.Spec.Pools
	if why := adoption.NewPlan(in).WhyNotManaged("pods"); why != "" {
		t.Errorf("got %q beside a policy that lists pods", why)
	}
	in.Policy.Spec.Resources = nil
	if why := adoption.NewPlan(in).WhyNotManaged("pods"); !strings.Contains(why, "quota of pods, which the cluster policy does not list") {
		t.Errorf("got %q beside a policy that lists nothing", why)
	}
}

// A ClusterQueue whose name is no team name, or whose name is taken, gets another.
func TestTeamNames(t *testing.T) {
	in := read(t, "cohort")
	in.ClusterQueues[0].Name, in.LocalQueues[0].Spec.ClusterQueue = "Vision.example.com-with-a-name-of-more-than-40", "Vision.example.com-with-a-name-of-more-than-40"
	in.Allocations = []v1alpha1.ComputeAllocation{{ObjectMeta: metav1.ObjectMeta{Name: "speech"}, Spec: v1alpha1.ComputeAllocationSpec{Management: v1alpha1.Observe, ClusterQueueName: "elsewhere"}}}
	plan := adoption.NewPlan(in)
	var names []string
	for _, q := range plan.Queues {
		names = append(names, q.Allocation.Name)
		if q.Allocation.Spec.DisplayName != q.Name {
			t.Errorf("%s is displayed as %q", q.Name, q.Allocation.Spec.DisplayName)
		}
	}
	if want := []string{"vision-example-com-with-a-name-of-52a1a0", "speech-05fb61"}; !slices.Equal(names, want) {
		t.Errorf("got names %q, want %q", names, want)
	}
}

// ClusterQueues that Kuota manages are not in the plan; one that it observes is, for
// its reasons, and without another allocation.
func TestKnownQueues(t *testing.T) {
	in := read(t, "nested-cohorts")
	weight := resource.MustParse("0.5")
	in.Cohorts[1].Spec.FairSharing = &kueue.FairSharing{Weight: &weight}
	in.ClusterQueues[2].Labels = map[string]string{desired.LabelManagedBy: desired.ManagedBy}
	in.Allocations = []v1alpha1.ComputeAllocation{
		{ObjectMeta: metav1.ObjectMeta{Name: "leaf"}, Spec: v1alpha1.ComputeAllocationSpec{Management: v1alpha1.Observe, ClusterQueueName: "leaf"}},
	}
	plan := adoption.NewPlan(in)
	if len(plan.Queues) != 2 {
		t.Fatalf("got plans %+v", plan.Queues)
	}
	if q, _ := plan.Queue("leaf"); q.Team != "leaf" || q.Allocation != nil || !strings.Contains(plan.WhyNotManaged("leaf"), "weight 500m of cohort group-a") || adoption.WhyNotManaged(in, "leaf") != plan.WhyNotManaged("leaf") {
		t.Errorf("got %+v", q)
	}
}

// Objects that another tool applies again are observed.
func TestOwnedByTools(t *testing.T) {
	in := read(t, "cohort")
	in.ClusterQueues[0].Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "teams"}
	in.LocalQueues[1].Labels = map[string]string{desired.LabelManagedBy: "Helm"}
	plan := adoption.NewPlan(in)
	for name, want := range map[string]string{"vision": "vision is managed by Flux (Kustomization teams)", "speech": "jobs is managed by Helm"} {
		if why := plan.WhyNotManaged(name); !strings.Contains(why, want) {
			t.Errorf("%s: got %q, want %q", name, why, want)
		}
	}
}

// Beside an existing policy, only its pools are used, and its ranking applies.
func TestExistingPolicy(t *testing.T) {
	in := read(t, "cohort")
	in.Policy = &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{CohortName: "labs", Enforcement: v1alpha1.RequireQueue}}
	plan := adoption.NewPlan(in)
	if plan.Policy != nil || len(plan.PriorityClasses) > 0 {
		t.Errorf("got a policy %+v beside the existing one", plan.Policy)
	}
	if why := plan.WhyNotManaged("vision"); !strings.Contains(why, "no pool of the cluster policy is ResourceFlavor any-node") {
		t.Errorf("got %q without a pool", why)
	}
	in.Policy.Status.Pools = []v1alpha1.Pool{{Name: "any-node", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{corev1.LabelOSStable: "linux"}}}}
	plan = adoption.NewPlan(in)
	q, _ := plan.Queue("vision")
	if q.Verdict != adoption.Manage || len(q.Notes) != 1 || !strings.Contains(q.Notes[0], "jobs without a queue are rejected in namespace vision") {
		t.Errorf("got %s, %q and %q", q.Verdict, q.Reasons, q.Notes)
	}
	in.Policy.Status.Ranking = &v1alpha1.Ranking{Step: v1alpha1.RankingSettled, Active: v1alpha1.FirstComeFirstServe}
	if why := adoption.NewPlan(in).WhyNotManaged("vision"); !strings.Contains(why, "preemption.withinClusterQueue is LowerPriority, and an allocation would set Never") {
		t.Errorf("got %q under first come, first served", why)
	}
}

// Gang scheduling and fair sharing of Kueue are described by the policy. What it
// would change is listed.
func TestKueueConfiguration(t *testing.T) {
	in := read(t, "single")
	in.Kueue.Text += "fairSharing:\n  preemptionStrategies: [LessThanInitialShare]\nwaitForPodsReady:\n  timeout: 10m\n  recoveryTimeout: 3m\n  blockAdmission: true\n  requeuingStrategy: {timestamp: Creation, backoffBaseSeconds: 5, backoffMaxSeconds: 90}\n"
	plan := adoption.NewPlan(in)
	if plan.KueueChanges != "" || plan.PolicyProblem != "" || plan.Policy.Spec.IdleCompute.Strategy != v1alpha1.IdleFairShare || !plan.Policy.Spec.GangScheduling.Enabled {
		t.Errorf("got policy %+v, which changes\n%s%s", plan.Policy.Spec, plan.KueueChanges, plan.PolicyProblem)
	}
	in.Kueue.Image = "kueue:v0.19.2"
	in.Kueue.Text = strings.Split(in.Kueue.Text, "fairSharing")[0]
	if plan := adoption.NewPlan(in); !strings.Contains(plan.KueueChanges, "DisableWaitForPodsReady") {
		t.Errorf("Kueue 0.19 waits for pods by default; got the changes %q", plan.KueueChanges)
	}
	in.Kueue = nil
	if plan := adoption.NewPlan(in); plan.PolicyProblem == "" {
		t.Error("Kueue's configuration is unknown, and no problem is reported")
	}
}
