package index

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/tasks"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

// TestSlimSimulates simulates 200 random clusters, and 1,000 in make verify, with the
// Workloads as the API server has them and as the cache keeps them: the reports are equal.
func TestSlimSimulates(t *testing.T) {
	seeds := uint64(200)
	if os.Getenv("KUOTA_VERIFY") != "" {
		seeds = 1000
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // little is kept
	slim, starts, preemptions := new(slimmer), 0, 0
	count := func(o *simulate.Outcome) {
		for _, e := range o.Events {
			switch e.Kind {
			case simulate.Started:
				starts++
			case simulate.Preempted:
				preemptions++
			}
		}
	}
	for seed := range seeds {
		r := simulated{rand.New(rand.NewPCG(seed, 1))}
		full, workloads := r.cluster()
		slimmed := *full
		full.Workloads, slimmed.Workloads = nil, nil
		for _, w := range workloads {
			full.Workloads = append(full.Workloads, live.Workload(decoded(t, w)))
			kept := decoded(t, w)
			for range 1 + r.IntN(2) { // a watch may slim twice
				slim.slim(kept)
			}
			slimmed.Workloads = append(slimmed.Workloads, live.Workload(kept))
			if diff := cmp.Diff(live.Omitted(decoded(t, w)), live.Omitted(kept)); diff != "" {
				t.Fatalf("seed %d: omissions of full (-) and slim (+) Workloads differ:\n%s", seed, diff)
			}
		}
		// Sets the feature gates of this process.
		if _, err := new(engine.Engine).Answer(t.Context(), &simulate.Snapshot{Time: full.Time, Configuration: full.Configuration}, &simulate.Question{}); err != nil {
			t.Fatal(err)
		}
		outcome := func(s *simulate.Snapshot) *simulate.Outcome {
			out, err := engine.Run(t.Context(), s, engine.Options{Horizon: 10 * time.Second})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			count(out)
			return out
		}
		if diff := cmp.Diff(outcome(full), outcome(&slimmed)); diff != "" {
			t.Fatalf("seed %d: outcomes of full (-) and slim (+) Workloads differ:\n%s", seed, diff)
		}
	}
	t.Logf("%d starts, %d preemptions", starts, preemptions)
	if starts < int(seeds) || preemptions < int(seeds)*3/10 {
		t.Errorf("%d starts and %d preemptions: too few to compare", starts, preemptions)
	}
}

// TestKeptAnnotations compares the names of annotations with Kueue's.
func TestKeptAnnotations(t *testing.T) {
	for name, want := range map[string]string{
		tasks.ElasticJobAnnotation: constants.ElasticJobAnnotation, tasks.AllowedFlavorsAnnotation: controllerconstants.WorkloadAllowedResourceFlavorAnnotation,
		tasks.PriorityBoostAnnotation: controllerconstants.PriorityBoostAnnotationKey, tasks.AdmissionGatedByAnnotation: constants.AdmissionGatedByAnnotation,
	} {
		if name != want {
			t.Errorf("annotation %s, Kueue's is %s", name, want)
		}
	}
}

// simulated generates clusters.
type simulated struct{ *rand.Rand }

func (r simulated) one(of ...string) string { return of[r.IntN(len(of))] }

// oneIn reports true once in n times.
func (r simulated) oneIn(n int) bool { return r.IntN(n) == 0 }

var simulatedAt = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// cluster returns a snapshot without Workloads, and its Workloads.
func (r simulated) cluster() (*simulate.Snapshot, []*kueue.Workload) {
	s := &simulate.Snapshot{Time: simulatedAt, Cohorts: []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "kuota"}}}}
	s.Configuration.FeatureGates = map[string]bool{"PriorityBoost": r.oneIn(2), "AdmissionGatedBy": true, "ConcurrentAdmission": r.oneIn(2), "SchedulingEquivalenceHashing": true, "PrioritySortingWithinCohort": r.oneIn(2)}
	if r.oneIn(2) {
		s.Configuration.FairSharing = &config.FairSharing{}
	}
	if r.oneIn(4) {
		s.Configuration.Resources = &config.Resources{ExcludeResourcePrefixes: []string{"memory"}}
	}
	flavors := []string{"p5", "g6", "cpu"}[:1+r.IntN(3)]
	for _, name := range flavors {
		f := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": name, "zone": r.one("a", "b")}}}
		if r.oneIn(3) {
			f.Spec.NodeTaints = []corev1.Taint{{Key: "pool", Value: name, Effect: corev1.TaintEffectNoSchedule}}
		}
		s.Flavors = append(s.Flavors, f)
	}
	var workloads []*kueue.Workload
	var like *kueue.Workload
	for q := range 2 + r.IntN(2) {
		team := fmt.Sprintf("team-%d", q)
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team, Labels: map[string]string{"team": team}}})
		if r.oneIn(3) {
			s.LimitRanges = append(s.LimitRanges, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{Type: corev1.LimitTypeContainer, DefaultRequest: r.resources(2), Default: r.resources(2), Max: corev1.ResourceList{gpuResource: resource.MustParse("6")}},
			}}})
		}
		queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: kueue.ClusterQueueSpec{
			CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.QueueingStrategy(r.one(string(kueue.BestEffortFIFO), string(kueue.BestEffortFIFO), string(kueue.StrictFIFO))),
			Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
		}}
		group := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpuResource}}
		for _, f := range flavors {
			group.Flavors = append(group.Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(f), Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("24")}, {Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("64Gi")},
				{Name: gpuResource, NominalQuota: *resource.NewQuantity(r.Int64N(9), resource.DecimalSI)},
			}})
		}
		queue.Spec.ResourceGroups = []kueue.ResourceGroup{group}
		s.ClusterQueues = append(s.ClusterQueues, queue)
		s.LocalQueues = append(s.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team)}})
		for i := range r.IntN(6) {
			workloads = append(workloads, r.admitted(r.workload(team, fmt.Sprintf("r-%d", i)), flavors))
		}
		for i := range r.IntN(7) {
			w := r.workload(team, fmt.Sprintf("w-%d", i))
			if like != nil && !r.oneIn(3) { // Kueue tries one of equal Workloads
				w.Spec.PodSets, w.Spec.Priority = like.DeepCopy().Spec.PodSets, like.Spec.Priority
				r.differ(&w.Spec.PodSets[0].Template.Spec)
			}
			like = w
			workloads = append(workloads, w)
		}
	}
	return s, workloads
}

const gpuResource corev1.ResourceName = "nvidia.com/gpu"

// resources returns up to max of each resource, and some not at all.
func (r simulated) resources(maximum int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, unit := range map[corev1.ResourceName]string{corev1.ResourceCPU: "500m", corev1.ResourceMemory: "1Gi", gpuResource: "1"} {
		amount := resource.MustParse(unit)
		if n := r.Int64N(2 * maximum); n > 0 && n <= maximum && amount.Mul(n) {
			list[name] = amount
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func (r simulated) containers(names ...string) (all []corev1.Container) {
	for _, name := range names {
		c := corev1.Container{Name: name, Image: "example.com/train:1", Command: []string{"python", "train.py"}, Env: []corev1.EnvVar{{Name: "SEED", Value: fmt.Sprint(r.IntN(9))}}}
		c.Resources.Requests = r.resources(2)
		if r.oneIn(3) { // more, fewer, or of another resource than the requests
			c.Resources.Limits = r.resources(3)
		}
		if r.oneIn(6) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: r.Int32N(2) + 80}}
		}
		all = append(all, c)
	}
	return all
}

func (r simulated) pod() corev1.PodSpec {
	p := corev1.PodSpec{Containers: r.containers([]string{"main", "sidecar", "other"}[:1+r.IntN(3)]...), RestartPolicy: corev1.RestartPolicyNever, SchedulerName: "default-scheduler"}
	if r.oneIn(3) {
		p.InitContainers = r.containers("init", "agent")
		p.InitContainers[1].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	if r.oneIn(5) {
		p.Overhead, p.RuntimeClassName = r.resources(1), ptr.To("kata") // some have no overhead of their own
	}
	if r.oneIn(8) {
		p.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
		if r.oneIn(2) {
			p.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(r.one("2", "4"))}
		}
	}
	if r.oneIn(3) {
		p.NodeSelector = map[string]string{"pool": r.one("p5", "g6")}
	}
	if r.oneIn(2) {
		p.Tolerations = []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}
	}
	in := func(key string, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
	}
	if r.oneIn(4) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		if r.oneIn(2) {
			p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{in("zone", "a"), in("pool", "cpu")}}
		}
		if r.oneIn(2) {
			p.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1 + r.Int32N(2), Preference: in("zone", "b")}}
		}
		if r.oneIn(2) {
			p.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: r.one("host", "rack")}}}
		}
	}
	if r.oneIn(6) {
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1 + r.Int32N(2), TopologyKey: "rack"}}
	}
	if r.oneIn(12) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	}
	return p
}

// differ changes a pod in what does not decide where it fits, but for which Kueue tries
// it by itself.
func (r simulated) differ(p *corev1.PodSpec) {
	term := corev1.PodAffinityTerm{TopologyKey: r.one("host", "rack", "block", "zone")}
	switch r.IntN(10) {
	case 0:
		p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: r.Int32N(2) + 80}}
	case 1:
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1 + r.Int32N(2), TopologyKey: "rack"}}
	case 2:
		p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 3, 8, 9:
		p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 4:
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1 + r.Int32N(2)}}}}
	case 5:
		p.Priority = ptr.To(r.Int32N(3))
	case 6:
		if len(p.InitContainers) > 0 {
			p.InitContainers[0].Ports = []corev1.ContainerPort{{ContainerPort: r.Int32N(2) + 80}}
		}
	case 7:
		p.RuntimeClassName = ptr.To(r.one("kata", "gvisor"))
	}
}

// workload returns a pending Workload, as the API server has it.
func (r simulated) workload(team, name string) *kueue.Workload {
	age := time.Duration(r.IntN(600)) * time.Second
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team, Name: name, UID: types.UID(team + "-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(simulatedAt.Add(-age)),
			Labels: map[string]string{controllerconstants.JobUIDLabel: name}, Annotations: map[string]string{"example.com/other": "x"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kueue"}}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "u"}},
		},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To(r.Int32N(4) * 10), PriorityClassRef: kueue.NewWorkloadPriorityClassRef("train")},
	}
	if r.oneIn(12) {
		w.Spec.Active = ptr.To(false)
	}
	if r.oneIn(6) {
		w.Annotations[controllerconstants.PriorityBoostAnnotationKey] = fmt.Sprint(r.IntN(40))
	}
	if r.oneIn(12) {
		w.Annotations[constants.AdmissionGatedByAnnotation] = "example.com/gate"
	}
	if r.oneIn(8) {
		w.Annotations[constants.ElasticJobAnnotation] = "true"
	}
	if r.oneIn(6) {
		w.Annotations[controllerconstants.WorkloadAllowedResourceFlavorAnnotation] = r.one("p5", "g6")
	}
	if r.oneIn(6) {
		w.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: "example.com/gate"}}
		if r.oneIn(2) {
			w.Status.PreemptionGates = []kueue.PreemptionGateState{{Name: "example.com/gate", Position: kueue.PreemptionGatePositionOpen}}
		}
	}
	template, sets, grouped := r.pod(), 1, false
	if r.oneIn(3) {
		sets, grouped = 2+r.IntN(3), r.oneIn(2)
	}
	for i := range sets {
		set := kueue.PodSet{Name: kueue.PodSetReference(fmt.Sprintf("set-%d", i)), Count: 1 + r.Int32N(3), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: template}}
		if sets == 1 && set.Count > 1 && r.oneIn(2) {
			set.MinCount = ptr.To[int32](1)
		}
		if grouped {
			set.TopologyRequest = &kueue.PodSetTopologyRequest{PodSetGroupName: ptr.To("group")}
		} else if r.oneIn(6) {
			set.TopologyRequest = &kueue.PodSetTopologyRequest{Required: ptr.To("rack")}
		}
		w.Spec.PodSets = append(w.Spec.PodSets, set)
		if r.oneIn(2) {
			template = r.pod()
		}
	}
	if r.oneIn(6) {
		w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To[int32](2), RequeueAt: ptr.To(metav1.NewTime(simulatedAt.Add(time.Duration(r.IntN(20)-10) * time.Second)))}
	}
	if r.oneIn(6) {
		w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "set-0", Count: r.Int32N(2)}}
	}
	if r.oneIn(3) {
		w.Status.Conditions = []metav1.Condition{r.condition(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, r.one("Pending", kueue.WorkloadOnHold, kueue.WorkloadQuotaReservedReasonExceedsMaxQuota), age)}
		w.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "set-0", Resources: r.resources(4)}}
	}
	switch r.IntN(8) {
	case 0: // back in its queue, after it was preempted
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadEvicted, metav1.ConditionFalse, kueue.WorkloadEvictedByPreemption, age),
			r.condition(kueue.WorkloadPreempted, metav1.ConditionTrue, r.one(kueue.InCohortReclaimWhileBorrowingReason, kueue.InClusterQueueReason), age-age/2))
	case 1:
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByAdmissionCheck, age))
	case 2:
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadRequeued, metav1.ConditionFalse, r.one("Other", kueue.WorkloadDeactivated), age))
	}
	if r.oneIn(12) {
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, age))
	}
	return w
}

func (r simulated) condition(name string, status metav1.ConditionStatus, reason string, age time.Duration) metav1.Condition {
	message := "message " + fmt.Sprint(r.IntN(5))
	if r.oneIn(3) {
		message = "Workload no longer fits after processing another workload"
	}
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(simulatedAt.Add(-age))}
}

// admitted admits a Workload to one of the flavors.
func (r simulated) admitted(w *kueue.Workload, flavors []string) *kueue.Workload {
	flavor := kueue.ResourceFlavorReference(r.one(flavors...))
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}
	for _, set := range w.Spec.PodSets {
		of := kueue.PodSetAssignment{Name: set.Name, Count: ptr.To(1 + r.Int32N(set.Count)), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}, ResourceUsage: corev1.ResourceList{}}
		for name, amount := range r.resources(4) {
			of.Flavors[name], of.ResourceUsage[name] = flavor, amount
		}
		if r.oneIn(8) {
			of.TopologyAssignment = &kueue.TopologyAssignment{Levels: []string{"rack"}}
			of.DelayedTopologyRequest = ptr.To(kueue.DelayedTopologyRequestStatePending)
		}
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, of)
	}
	age := time.Duration(r.IntN(600)) * time.Second
	w.Status.Conditions = []metav1.Condition{r.condition(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, age)}
	if !r.oneIn(8) {
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmitted, age))
	}
	if r.oneIn(8) {
		w.Status.Conditions = append(w.Status.Conditions, r.condition(kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPodsReadyTimeout, age))
	}
	if r.oneIn(6) {
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "budget", State: kueue.CheckStateReady, Message: "ok", PodSetUpdates: []kueue.PodSetUpdate{{Name: "set-0", NodeSelector: map[string]string{"zone": "b"}}}}}
	}
	return w
}

// decoded returns an object as a client decodes it.
func decoded(t *testing.T, w *kueue.Workload) *kueue.Workload {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	to := &kueue.Workload{}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
	return to
}
