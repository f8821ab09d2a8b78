package adopt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// controllers starts Kuota's controllers, and returns a function that stops them.
func controllers(t *testing.T, c *clustertest.Cluster) (stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(c.Console, cluster.Options{Namespace: "kuota-system", NoSessions: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reconcile.SetupWithManager(connection.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall, Revisions: connection.Revisions}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- connection.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// kinds are the kinds of the objects that are adopted or stay as they are.
var kinds = []string{"ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass", "Namespace"}

// state returns for each of these objects its spec as stored, or its labels and
// annotations.
func state(t *testing.T, c *clustertest.Cluster, part func(*unstructured.Unstructured) any) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range kinds {
		version := schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind + "List"}
		if kind == "Namespace" {
			version = corev1.SchemeGroupVersion.WithKind(kind + "List")
		}
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(version)
		if err := c.Client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if o.GetLabels()[desired.LabelDepartment] != "" && kind == "Namespace" {
				continue // of the roles of a department, which stays
			}
			text, err := json.Marshal(part(o))
			if err != nil {
				t.Fatal(err)
			}
			all[kind+" "+o.GetNamespace()+"/"+o.GetName()] = string(text)
		}
	}
	return all
}

// specs is the part of an object that adoption must not change.
func specs(o *unstructured.Unstructured) any {
	return []any{o.Object["spec"], o.Object["value"], o.Object["description"], o.GetGeneration(), o.GetUID()}
}

// marks are the labels and annotations of an object, and whether Kuota owns fields of
// it.
func marks(o *unstructured.Unstructured) any {
	ours := slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(f.Manager, cluster.FieldManager)
	})
	return []any{o.GetLabels(), o.GetAnnotations(), ours}
}

// admission returns for each Workload when it was admitted, and each eviction.
func admission(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	var list kueue.WorkloadList
	if err := c.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		w := &list.Items[i]
		admitted, evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted), meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
		if admitted == nil || admitted.Status != metav1.ConditionTrue {
			t.Errorf("Workload %s is not admitted", w.Name)
			continue
		}
		all[w.Namespace+"/"+w.Name] = fmt.Sprint(admitted.LastTransitionTime, evicted)
	}
	return all
}

// setUp creates the objects of the plans' test data: like Kueue's examples.
func setUp(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	gpus := func(n string) corev1.ResourceList {
		return clustertest.Resources(map[corev1.ResourceName]string{"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": n, "pods": "110"})
	}
	c.Node(t, "reserved", map[string]string{corev1.LabelOSStable: "linux", "example.com/market": "reserved"}, gpus("8"))
	c.Node(t, "spot", map[string]string{corev1.LabelOSStable: "linux", "example.com/market": "spot"}, gpus("8"))
	seen := map[string]bool{}
	for _, file := range []string{"single", "cohort", "limits", "flavors", "instance-type", "local-queues", "admission-checks", "nested-cohorts", "departments", "two-cohorts", "settings", "resources"} {
		text, err := os.ReadFile(filepath.Join("..", "adoption", "testdata", file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Fatal(err)
			}
			o.SetAPIVersion("kueue.x-k8s.io/v1beta2")
			if ns := o.GetNamespace(); ns != "" && !seen[ns] {
				seen[ns] = true
				if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
					t.Fatal(err)
				}
			}
			if key := o.GetKind() + o.GetName(); o.GetKind() != "ResourceFlavor" || !seen[key] {
				seen[key] = true
				if err := c.Client.Create(t.Context(), &o); err != nil {
					t.Fatalf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
				}
			}
		}
	}
	if err := c.Client.Create(t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent-priority"}, Value: 90}); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Create(t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 1000}); err != nil {
		t.Fatal(err)
	}
}

// submit creates a Workload without a Job in a LocalQueue, and waits until it is
// admitted.
func submit(t *testing.T, c *clustertest.Cluster, namespace, queue string) {
	t.Helper()
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "task"}}
	w.Spec.QueueName = kueue.LocalQueueName(queue)
	w.Spec.Priority = new(int32)
	w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: clustertest.Resources(map[corev1.ResourceName]string{"cpu": "1"})}}},
	}}}}
	if err := c.Client.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
			return fmt.Errorf("%s is not admitted: %+v", w.Namespace, w.Status.Conditions)
		}
		return nil
	})
}

// allReady waits until the policy and all allocations are ready.
func allReady(t *testing.T, c *clustertest.Cluster, teams int) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation {
			return fmt.Errorf("the policy is not ready: %+v", ready)
		}
		var list v1alpha1.ComputeAllocationList
		if err := c.Client.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) != teams {
			return fmt.Errorf("%d allocations, want %d", len(list.Items), teams)
		}
		for i := range list.Items {
			a := &list.Items[i]
			// A ClusterQueue that Kueue does not activate, such as for a missing
			// AdmissionCheck, was not active before either.
			ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.ObservedGeneration != a.Generation || ready.Status != metav1.ConditionTrue && ready.Reason != "QueueNotActive" {
				return fmt.Errorf("%s is not ready: %+v", a.Name, ready)
			}
		}
		return nil
	})
}

// Adoption, a restart, a policy saved without a change and release change no spec and
// evict nothing. ClusterQueues that are observed do not change at all.
func TestAdoptAndRelease(t *testing.T) {
	c := clustertest.Get(t)
	setUp(t, c)
	submit(t, c, "research-jobs", "batch")
	submit(t, c, "vision", "jobs")
	submit(t, c, "leaf", "jobs")
	submit(t, c, "knee", "jobs")
	specsBefore, marksBefore, admittedBefore := state(t, c, specs), state(t, c, marks), admission(t, c)
	unchanged := func(after string) {
		t.Helper()
		if diff := cmp.Diff(specsBefore, state(t, c, specs)); diff != "" {
			t.Errorf("specs after %s (-before +after):\n%s", after, diff)
		}
		if diff := cmp.Diff(admittedBefore, admission(t, c)); diff != "" {
			t.Errorf("workloads after %s (-before +after):\n%s", after, diff)
		}
	}

	kueueReader := &reconcile.KueueReconciler{APIReader: c.Client, Install: reconcile.DefaultKueueInstall}
	plan, err := adopt.ReadPlan(t.Context(), c.Client, desired.DefaultNaming, func(ctx context.Context) (kueueconfig.Current, error) {
		state, err := kueueReader.State(ctx)
		return state.Current, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names, managed []string
	observed := map[string]bool{}
	for _, q := range plan.Queues {
		t.Logf("%-8s %s %v %v", q.Verdict, q.Name, q.Reasons, q.Notes)
		if q.Allocation == nil {
			continue
		}
		names = append(names, q.Name)
		if observed[q.Name] = q.Verdict == adoption.Observe; !observed[q.Name] {
			managed = append(managed, q.Name)
		}
	}
	for _, name := range []string{"research", "vision", "speech", "lends", "keeps", "genomics", "physics", "render", "one-team", "empty", "strict", "weighted", "held", "drained", "outside", "scan", "knee"} {
		if !slices.Contains(managed, name) {
			t.Errorf("%s is not managed: %s", name, plan.WhyNotManaged(name))
		}
	}
	selected, err := adopt.Select(plan, names)
	if err != nil {
		t.Fatal(err)
	}
	checkWithoutPermission(t, c, plan, selected)
	results, err := adopt.Adopt(t.Context(), c.Client, plan, selected, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatalf("%s: %v", r.Queue, r.Err)
		}
	}
	stop := controllers(t, c)
	allReady(t, c, len(names))
	unchanged("adoption")
	marksAfter := state(t, c, marks)
	for object, before := range marksBefore {
		kind, name, _ := strings.Cut(object, " ")
		if name = strings.TrimPrefix(name, "/"); (kind == "ClusterQueue" && (observed[name] || !slices.Contains(names, name)) || kind == "ResourceFlavor" || kind == "Cohort" && name != "imaging" && name != "mri" || name == "gold") && marksAfter[object] != before {
			t.Errorf("%s got labels or annotations", object)
		}
	}
	checkObserved(t, c, "leaf", "it is in cohort group-a; Kuota manages one cohort, labs")

	stop()
	before := reconciliations(t)
	stop = controllers(t, c)
	reconciled(t, before+len(names))
	savePolicy(t, c)
	allReady(t, c, len(names))
	before = reconciliations(t)
	c.Kubectl(t, "", "annotate", "computeallocations", "--all", "example.com/touched=true") // triggers a reconciliation of each
	reconciled(t, before+len(names))
	allReady(t, c, len(names))
	unchanged("a restart and a save")
	if clustertest.Verify {
		for end := time.Now().Add(quiet); time.Now().Before(end) && !t.Failed(); time.Sleep(10 * time.Second) {
			unchanged("a restart, a save and " + time.Until(end).Round(time.Second).String() + " less than " + quiet.String())
		}
		t.Logf("%d allocations were reconciled %d times within %s", len(names), reconciliations(t)-before, quiet)
		unchanged(quiet.String())
	}

	changeAndCorrect(t, c, specsBefore)
	unchangedExcept := state(t, c, specs)
	for _, q := range selected {
		if _, err := adopt.Release(t.Context(), c.Client, q.Allocation.Name, "test"); err != nil {
			t.Fatalf("release %s: %v", q.Name, err)
		}
	}
	c.Kubectl(t, "", "annotate", "departments", "--all", "kuota.dev/release=true")
	c.Kubectl(t, "", "delete", "departments", "--all", "--timeout=60s")
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var list v1alpha1.ComputeAllocationList
		if err := c.Client.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d allocations are left, such as %s", len(list.Items), list.Items[0].Name)
		}
		return nil
	})
	if diff := cmp.Diff(unchangedExcept, state(t, c, specs)); diff != "" {
		t.Errorf("specs after release (-before +after):\n%s", diff)
	}
	released := state(t, c, marks)
	delete(marksBefore, "WorkloadPriorityClass /urgent-priority") // which the policy keeps
	delete(released, "WorkloadPriorityClass /urgent-priority")
	if diff := cmp.Diff(marksBefore, released); diff != "" {
		t.Errorf("labels and annotations after release (-before adoption +after release):\n%s", diff)
	}
	if diff := cmp.Diff(admittedBefore, admission(t, c)); diff != "" {
		t.Errorf("workloads after release (-before +after):\n%s", diff)
	}
	stop()
}

// checkWithoutPermission checks that a user who may create allocations, and may not
// create RoleBindings in the namespaces of the queues, may adopt them, but not with
// members: the user then adopts nothing and creates no policy.
func checkWithoutPermission(t *testing.T, c *clustertest.Cluster, plan adoption.Plan, selected []adoption.Queue) {
	t.Helper()
	group := clustertest.Name("quota-admins")
	c.Kubectl(t, "", "create", "clusterrolebinding", group, "--clusterrole=kuota-admin", "--group="+group)
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: group + "@example.com", Groups: []string{group, "system:authenticated"}}
	limited, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	managed := slices.DeleteFunc(slices.Clone(selected), func(q adoption.Queue) bool { return q.Verdict != adoption.Manage })
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { // until RBAC has the binding
		for _, r := range adopt.Check(ctx, limited, managed) {
			if r.Err != nil {
				return fmt.Errorf("%s without members: %w", r.Queue, r.Err)
			}
		}
		return nil
	})
	for i, q := range managed {
		managed[i].Allocation = q.Allocation.DeepCopy()
		managed[i].Allocation.Spec.Members = []v1alpha1.Member{{Kind: rbacv1.GroupKind, Name: group}}
	}
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		results, err := adopt.Adopt(ctx, limited, plan, managed, "test", nil)
		if err != nil {
			return err
		}
		for _, r := range results {
			var rejected *governance.Error
			if !errors.As(r.Err, &rejected) || !strings.Contains(fmt.Sprint(rejected.Message, rejected.Fields), "RoleBindings") {
				return fmt.Errorf("%s: %w", r.Queue, r.Err)
			}
		}
		return nil
	})
	if out, err := c.TryKubectl("", "get", "clusterpolicies,computeallocations", "-o", "name"); err != nil || strings.Contains(out, "kuota.dev/") {
		t.Errorf("a rejected adoption created %s: %v", out, err)
	}
}

// quiet is how long the controllers run without a change in make verify.
const quiet = 10 * time.Minute

// reconciliations returns how many reconciliations of allocations have succeeded.
func reconciliations(t *testing.T) (n int) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["controller"] == "allocation" && labels["result"] != "error" {
				n += int(metric.GetCounter().GetValue())
			}
		}
	}
	return n
}

// reconciled waits until that many reconciliations of allocations have succeeded.
func reconciled(t *testing.T, want int) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if n := reconciliations(t); n < want {
			return fmt.Errorf("%d reconciliations, want %d", n, want)
		}
		return nil
	})
}

// savePolicy writes the policy as it is, as a save of the form does.
func savePolicy(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var policy v1alpha1.ClusterPolicy
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		policy.Annotations = map[string]string{v1alpha1.AnnotationReason: "saved without a change"}
		return c.Client.Update(ctx, &policy)
	})
}

// checkObserved checks what an observed allocation reports.
func checkObserved(t *testing.T, c *clustertest.Cluster, team, reason string) {
	t.Helper()
	var a v1alpha1.ComputeAllocation
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != "Observed" || !strings.Contains(ready.Message, reason) {
		t.Errorf("Ready of %s is %+v, want it observed because %s", team, ready, reason)
	}
	if a.Status.Namespace != team || a.Status.LocalQueue != "jobs" || len(a.Status.Quota) != 1 || len(a.Finalizers) > 0 {
		t.Errorf("the status of %s is %+v, and its finalizers %v", team, a.Status, a.Finalizers)
	}
}

// changeAndCorrect changes the quota of an adopted ClusterQueue by its allocation, and
// its stop policy manually. Only the quota changes, and it changes back.
func changeAndCorrect(t *testing.T, c *clustertest.Cluster, before map[string]string) {
	t.Helper()
	setCPU := func(amount string) {
		t.Helper()
		c.Kubectl(t, "", "patch", "computeallocation", "research", "--type=json", "-p", fmt.Sprintf(`[{"op": "replace", "path": "/spec/quota/0/vCPU", "value": %q}]`, amount))
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var q kueue.ClusterQueue
			if err := c.Client.Get(ctx, client.ObjectKey{Name: "research"}, &q); err != nil {
				return err
			}
			if got := q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota; got.String() != amount || *q.Spec.StopPolicy != kueue.None {
				return fmt.Errorf("%s CPUs and stop policy %s, want %s and None", &got, *q.Spec.StopPolicy, amount)
			}
			return nil
		})
	}
	setCPU("21")
	c.Kubectl(t, "", "patch", "clusterqueue", "research", "--type=merge", "-p", `{"spec": {"stopPolicy": "Hold"}}`)
	setCPU("20")
	onlySpec := func(all map[string]string) (spec any) {
		var parts []any
		if err := json.Unmarshal([]byte(all["ClusterQueue /research"]), &parts); err != nil {
			t.Fatal(err)
		}
		return parts[0]
	}
	if diff := cmp.Diff(onlySpec(before), onlySpec(state(t, c, specs))); diff != "" {
		t.Errorf("the spec after two changes (-before +after):\n%s", diff)
	}
}

// An allocation that names a ClusterQueue and describes another spec changes nothing,
// and reports the differences.
func TestTakeoverThatWouldChangeTheSpec(t *testing.T) {
	c := clustertest.Get(t)
	defer controllers(t, c)()
	name := clustertest.Name("other")
	c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec: {namespaceSelector: {}, queueingStrategy: StrictFIFO}
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: %[1]s}
spec: {clusterQueueName: %[1]s, localQueueName: jobs, namespace: %[1]s, cohortName: "", sharing: {unlimited: true}}
`, name))
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "computeallocation", name, "--wait=false") })
	blocked := func(text string) {
		t.Helper()
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var a v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &a); err != nil {
				return err
			}
			if ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); ready == nil || !strings.Contains(ready.Message, text) {
				return fmt.Errorf("Ready is %+v, want %q", ready, text)
			}
			return nil
		})
	}
	blocked("queueingStrategy is StrictFIFO and would be BestEffortFIFO")
	var q kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &q); err != nil {
		t.Fatal(err)
	}
	if q.Generation != 1 || len(q.Labels) > 0 {
		t.Errorf("the ClusterQueue was changed: generation %d, labels %v", q.Generation, q.Labels)
	}
	c.Kubectl(t, "", "patch", "computeallocation", name, "--type=merge", "-p", `{"spec": {"queueingStrategy": "StrictFIFO", "fairShareWeight": 1, "preemption": {"withinTeam": "Never", "reclaimWithinCohort": "Never", "borrowWithinCohort": "Never"}}}`)
	blocked("the queue matches the allocation")
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &q); err != nil {
		t.Fatal(err)
	}
	if q.Generation != 1 || q.Labels[desired.LabelTeam] != name {
		t.Errorf("the ClusterQueue was not taken over as it is: generation %d, labels %v", q.Generation, q.Labels)
	}
	if out, err := c.TryKubectl("", "patch", "computeallocation", name, "--type=merge", "-p", `{"spec": {"clusterQueueName": "another"}}`); err == nil || !strings.Contains(out, "the ClusterQueue cannot be changed") {
		t.Errorf("the ClusterQueue can be changed: %s", out)
	}
	if out, err := c.TryKubectl("", "patch", "computeallocation", name, "--type=merge", "-p", `{"spec": {"cohortName": null}}`); err == nil || !strings.Contains(out, "create a new allocation instead") {
		t.Errorf("the cohort can be removed: %s", out)
	}
}
