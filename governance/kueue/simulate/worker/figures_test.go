package worker_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/worker"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestFigures measures questions of a child with one core, for make bench: about a
// cohort at rest, in which all teams together use all quota, with 8 running and 35
// waiting Workloads for each team.
func TestFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measures for make bench")
	}
	sizes := []int{100, 250, 500, 1000}
	if only := os.Getenv("KUOTA_BENCH_TEAMS"); only != "" {
		n, err := strconv.Atoi(only)
		if err != nil {
			t.Fatal(err)
		}
		sizes = []int{n}
	}
	for _, teams := range sizes {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("teams-%d-fair-%v", teams, fair), func(t *testing.T) { measure(t, teams, fair) })
		}
	}
}

func measure(t *testing.T, teams int, fair bool) {
	var child *exec.Cmd
	w := newWorker(t)
	command := w.Command
	w.Timeout = 10 * time.Minute
	w.Command = func() *exec.Cmd {
		child = command()
		child.Env = append(child.Env, "GOMAXPROCS=1", asChild+"="+strconv.Itoa(benchMemory()))
		return child
	}
	s := largeCohort(teams, fair)
	prefix := fmt.Sprintf("simulate_%d_workloads", len(s.Workloads))
	if fair {
		prefix += "_fair"
	}
	// ask returns how long a question took, and how much of a core.
	ask := func(s *simulate.Snapshot, q *simulate.Question, starts bool) (took, used time.Duration) {
		t.Helper()
		before := cpu(child)
		began := time.Now()
		report, err := w.Ask(t.Context(), s, q)
		if err != nil {
			t.Fatal(err)
		}
		if took = time.Since(began); (report.Target != nil) != starts || !report.Settled && !q.OnlyTarget {
			t.Fatalf("target %+v, settled %v; want a start: %v", report.Target, report.Settled, starts)
		}
		return took, cpu(child) - before
	}
	figure := func(name string, n int, run func(i int) (took, used time.Duration)) {
		t.Helper()
		var took, used []time.Duration
		for i := range n {
			a, b := run(i)
			took, used = append(took, a), append(used, b)
		}
		slices.Sort(took)
		slices.Sort(used)
		p95 := (n - 1) * 95 / 100
		fmt.Printf("figure %s_%s_p95 %.0f ms\n", prefix, name, 1000*took[p95].Seconds())
		fmt.Printf("figure %s_%s_cpu_p95 %.0f ms\n", prefix, name, 1000*used[p95].Seconds())
	}
	// deep returns a question about the 18th waiting Workload of a team, with a higher
	// priority class: it preempts in a team that borrows, and reclaims for one that
	// lends.
	deep := func(i int, ties int) *simulate.Question {
		target := s.Workloads[43*(i%teams)+8+17].DeepCopy()
		target.Spec.Priority = ptr.To[int32](1000)
		return &simulate.Question{Target: simulate.WorkloadKey(target), Change: simulate.Change{Workloads: []*kueue.Workload{target}}, OnlyTarget: ties == 0, Ties: ties}
	}
	asItIs := func(i int) *simulate.Question {
		return &simulate.Question{Target: simulate.WorkloadKey(s.Workloads[43*(i%teams)+8+17]), OnlyTarget: true}
	}
	n := max(3, 2000/teams)
	figure("cold", 1, func(i int) (time.Duration, time.Duration) {
		took, used := ask(s, asItIs(i), false)
		more, alsoUsed := ask(s, deep(i, 0), true)
		return took + more, used + alsoUsed
	})
	figure("first", n, func(i int) (time.Duration, time.Duration) { return ask(s, deep(i, 0), true) })
	var first []time.Duration // of the change, after that of the snapshot as it is
	figure("as_it_is_after_changes", n, func(i int) (time.Duration, time.Duration) {
		s = changedCohort(s, i)
		took, used := ask(s, asItIs(i), false)
		_, of := ask(s, deep(i, 0), true)
		first = append(first, of)
		return took, used
	})
	slices.Sort(first)
	fmt.Printf("figure %s_first_after_changes_cpu_p95 %.0f ms\n", prefix, 1000*first[(n-1)*95/100].Seconds())
	figure("first_alone_after_changes", n, func(i int) (time.Duration, time.Duration) {
		s = changedCohort(s, n+i)
		return ask(s, deep(i, 0), true)
	})
	for _, ties := range []int{1, 3} {
		figure(fmt.Sprintf("full_%d", ties), max(2, n/4), func(i int) (time.Duration, time.Duration) {
			s = changedCohort(s, 2*n+i)
			return ask(s, deep(i, ties), true)
		})
	}
	figure("preview", max(2, n/4), func(i int) (time.Duration, time.Duration) {
		s = changedCohort(s, 3*n+i)
		queue := s.ClusterQueues[i%teams].DeepCopy()
		queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("16")
		return ask(s, &simulate.Question{Change: simulate.Change{ClusterQueues: []*kueue.ClusterQueue{queue}}, Ties: 1}, false)
	})
	fmt.Printf("figure %s_memory_one_at_a_time %.0f MB\n", prefix, peak(t, child))
	s = changedCohort(s, 4*n)
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			if _, err := w.Ask(t.Context(), s, deep(i, 3)); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	fmt.Printf("figure %s_memory_peak %.0f MB\n", prefix, peak(t, child))
}

// TestCondensedFigures measures questions about clusters that are too large to simulate whole, for
// make bench: with what condenses each new snapshot, and the child's default memory.
func TestCondensedFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measures for make bench")
	}
	for _, teams := range []int{1000, 5000} {
		t.Run(strconv.Itoa(teams), func(t *testing.T) {
			s := largeCohort(teams, false)
			inDepartments(s, 200)
			w := newWorker(t)
			w.Timeout = time.Minute
			var first, condensing []time.Duration
			workloads := 0
			for i := range 20 {
				s = changedCohort(s, i)
				target := s.Workloads[43*(i*7%teams)+8+17].DeepCopy()
				target.Spec.Priority = ptr.To[int32](1000)
				q := &simulate.Question{Target: simulate.WorkloadKey(target), Change: simulate.Change{Workloads: []*kueue.Workload{target}}, OnlyTarget: true}
				began := time.Now()
				part := simulate.NewCondenser(s).For(q, 1)
				condensing = append(condensing, time.Since(began))
				report, err := w.Ask(t.Context(), part.Snapshot, q)
				if err != nil {
					t.Fatal(err)
				}
				if !part.Complete(report) || report.Target == nil {
					t.Fatalf("question %d: target %+v", i, report.Target)
				}
				first, workloads = append(first, time.Since(began)), len(part.Workloads)
			}
			fmt.Printf("figure condensed_%d_workloads %d\nfigure condensed_%d_cold %.2f s\n", len(s.Workloads), workloads, len(s.Workloads), first[0].Seconds())
			slices.Sort(first)
			slices.Sort(condensing)
			fmt.Printf("figure condensed_%d_p50 %.2f s\nfigure condensed_%d_p95 %.2f s\nfigure condensed_%d_condensing_p95 %.2f s\n", len(s.Workloads), first[10].Seconds(), len(s.Workloads), first[18].Seconds(), len(s.Workloads), condensing[18].Seconds())
		})
	}
}

// inDepartments puts the ClusterQueues into so many Cohorts below the one that they are in.
func inDepartments(s *simulate.Snapshot, n int) {
	for i := range n {
		s.Cohorts = append(s.Cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("department-%d", i)}, Spec: kueue.CohortSpec{ParentName: "kuota"}})
	}
	for i, queue := range s.ClusterQueues {
		queue.Spec.CohortName = kueue.CohortReference(fmt.Sprintf("department-%d", i%n))
	}
}

// changedCohort returns a cohort after a hundredth of the Workloads that wait were
// updated, and a running one of some team ended and another one started.
func changedCohort(s *simulate.Snapshot, i int) *simulate.Snapshot {
	next := *s
	next.Workloads, next.Time = slices.Clone(s.Workloads), s.Time.Add(time.Second)
	for at := i % 100; at < len(next.Workloads); at += 100 {
		if w := next.Workloads[at]; w.Status.Admission == nil {
			next.Workloads[at] = w.DeepCopy()
			next.Workloads[at].Status.Conditions[0].Message += "."
		}
	}
	ended := &next.Workloads[43*(i%len(s.ClusterQueues))+i%8]
	started := (*ended).DeepCopy()
	started.Name, started.UID = fmt.Sprintf("%s-%d", started.Name, i), types.UID(fmt.Sprintf("%s-%d", started.UID, i))
	*ended = started
	return &next
}

// benchMemory returns the memory limit of the measured child in bytes.
func benchMemory() int {
	if n, err := strconv.Atoi(os.Getenv("KUOTA_BENCH_MEMORY")); err == nil {
		return n
	}
	return worker.DefaultMemory
}

// cpu returns how long a process used a core.
func cpu(cmd *exec.Cmd) time.Duration {
	if cmd == nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peak returns the most memory that a process had resident, in MB.
func peak(t *testing.T, cmd *exec.Cmd) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == "VmHWM:" {
			kb, _ := strconv.Atoi(fields[1])
			return float64(kb) / 1000
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// largeCohort returns a cohort at rest: half of the teams lend four of their eight
// GPUs, which the others borrow.
func largeCohort(teams int, fair bool) *simulate.Snapshot {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := &simulate.Snapshot{Time: now, Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}}, Cohorts: []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "kuota"}}}}
	if fair {
		s.Configuration.FairSharing = &config.FairSharing{}
	}
	for i := range teams {
		team := fmt.Sprintf("hyperpod-ns-team-%d", i)
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
		s.ClusterQueues = append(s.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: kueue.ClusterQueueSpec{
			CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
			Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyLowerPriority},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu", corev1.ResourceCPU, corev1.ResourceMemory}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: []kueue.ResourceQuota{
				{Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("8")}, {Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("192")}, {Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("2Ti")}}}}}},
		}})
		s.LocalQueues = append(s.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team)}})
		for j := range 8 + 35 {
			gpus := int64(1)
			switch {
			case j >= 8: // waits
				gpus = 1 + int64(j*7+i)%8
			case i%2 == 0 && j < 4: // 12 of 8 GPUs
				gpus = 2
			case i%2 == 1 && j < 4: // 4 of 8 GPUs
				gpus = 0
			}
			w := largeWorkload(team, j, gpus, now.Add(-time.Duration(60-j)*time.Minute-time.Duration(i%60)*time.Second))
			if j < 8 {
				admit(w)
			}
			s.Workloads = append(s.Workloads, w)
		}
	}
	return s
}

// largeWorkload returns a waiting Workload with the fields that the console keeps.
func largeWorkload(team string, i int, gpus int64, created time.Time) *kueue.Workload {
	name := fmt.Sprintf("job-train-%d", i)
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	if gpus > 0 {
		amounts["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(team + "/" + name), CreationTimestamp: metav1.NewTime(created)},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: ptr.To(int32(i%4) * 10), Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
			Containers:   []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}, {Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}}}}}},
		Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", LastTransitionTime: metav1.NewTime(created),
			Message: "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor p5, 8 more needed"}}},
	}
}

// admit makes a Workload run since it was created, before all that wait.
func admit(w *kueue.Workload) {
	w.Spec.Priority = ptr.To[int32](100)
	usage := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: "p5", corev1.ResourceMemory: "p5"}
	if gpus, has := w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]; has {
		usage["nvidia.com/gpu"], flavors["nvidia.com/gpu"] = gpus, "p5"
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Namespace), PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1), Flavors: flavors, ResourceUsage: usage}}}
	w.Status.Conditions = nil
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: w.CreationTimestamp, Reason: condition})
	}
}
