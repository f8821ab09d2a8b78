package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// soon bounds how long a change may take to have its effect. Kueue may still be
// restarting because of an earlier test.
const soon = clustertest.Patience

// create creates an allocation, and deletes it when the test ends.
func create(t *testing.T, c *clustertest.Cluster, team string, spec v1alpha1.ComputeAllocationSpec) {
	t.Helper()
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: spec}
	if err := c.Client.Create(t.Context(), allocation); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}})
	})
}

// conditionIs waits until a condition of an allocation has this status and its
// message contains text, and returns the allocation.
func conditionIs(t *testing.T, c *clustertest.Cluster, team, name string, status metav1.ConditionStatus, text string) v1alpha1.ComputeAllocation {
	t.Helper()
	var allocation v1alpha1.ComputeAllocation
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		got := meta.FindStatusCondition(allocation.Status.Conditions, name)
		if got == nil || got.Status != status || !strings.Contains(got.Message, text) {
			return fmt.Errorf("%s of %s is %+v, want %s with %q", name, team, got, status, text)
		}
		return nil
	})
	return allocation
}

func accelerators(n int64) v1alpha1.Quantities { return v1alpha1.Quantities{Accelerators: &n} }

func specOf(rows ...v1alpha1.QuotaRow) v1alpha1.ComputeAllocationSpec {
	return v1alpha1.ComputeAllocationSpec{Quota: rows}
}

// status.quota, the ClusterQueue and quota.Resolve, which the form calls, agree.
func TestQuotaOfInstanceTypes(t *testing.T) {
	c := setup(t)
	vcpu := resource.MustParse("48")
	two := int64(2)
	cases := map[string]struct {
		row       v1alpha1.QuotaRow
		want      map[string]string
		wantLimit map[string]string
	}{
		"p5": {
			v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlarge", Quantities: accelerators(2)},
			map[string]string{"nvidia.com/gpu": "2", "aws.amazon.com/neurondevice": "0", "cpu": "48", "memory": "512Gi", "vpc.amazonaws.com/efa": "8"},
			map[string]string{"nvidia.com/gpu": "1", "aws.amazon.com/neurondevice": "0", "cpu": "24", "memory": "256Gi", "vpc.amazonaws.com/efa": "4"},
		},
		"g5": {
			v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(2)},
			map[string]string{"nvidia.com/gpu": "2", "aws.amazon.com/neurondevice": "0", "cpu": "16", "memory": "64Gi", "vpc.amazonaws.com/efa": "0"},
			map[string]string{"nvidia.com/gpu": "1", "aws.amazon.com/neurondevice": "0", "cpu": "8", "memory": "32Gi", "vpc.amazonaws.com/efa": "0"},
		},
		"g6": {
			v1alpha1.QuotaRow{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &two, VCPU: &vcpu}},
			map[string]string{"nvidia.com/gpu": "2", "aws.amazon.com/neurondevice": "0", "cpu": "48", "memory": "192Gi", "vpc.amazonaws.com/efa": "1"},
			map[string]string{"nvidia.com/gpu": "1", "aws.amazon.com/neurondevice": "0", "cpu": "24", "memory": "96Gi", "vpc.amazonaws.com/efa": "0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			team := clustertest.Name(name)
			spec := specOf(tc.row)
			create(t, c, team, spec)
			allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

			status, statusLimit := map[string]string{}, map[string]string{}
			for _, r := range allocation.Status.Quota[0].Resources {
				status[r.Name], statusLimit[r.Name] = r.Nominal.String(), r.BorrowLimit.String()
			}
			var queue kueue.ClusterQueue
			if err := c.Client.Get(t.Context(), client.ObjectKey{Name: allocation.Status.ClusterQueue}, &queue); err != nil {
				t.Fatal(err)
			}
			applied, appliedLimit := map[string]string{}, map[string]string{}
			for _, r := range queue.Spec.ResourceGroups[0].Flavors[0].Resources {
				applied[string(r.Name)], appliedLimit[string(r.Name)] = r.NominalQuota.String(), r.BorrowingLimit.String()
			}
			resolved, errs := quota.Resolve(&spec, catalog.Catalog{})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			form := map[string]string{}
			for _, r := range resolved.Covered() {
				q := resolved.Pools[0].Nominal.Quantity(r)
				form[r] = q.String()
			}
			for source, got := range map[string]map[string]string{"status": status, "ClusterQueue": applied, "quota.Resolve": form} {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("quota in %s (-want +got):\n%s", source, diff)
				}
			}
			for source, got := range map[string]map[string]string{"status": statusLimit, "ClusterQueue": appliedLimit} {
				if diff := cmp.Diff(tc.wantLimit, got); diff != "" {
					t.Errorf("borrow limits in %s (-want +got):\n%s", source, diff)
				}
			}
		})
	}
}

// Reconciling an unchanged allocation does not write its ClusterQueue. Annotations
// of others stay.
func TestReconcilingAgainWritesNothing(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("still")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	var before kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: allocation.Status.ClusterQueue}, &before); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "", "annotate", "clusterqueue", before.Name, "example.com/note=ours")
	// A new description changes no object of Kueue. observedGeneration shows that it
	// was reconciled.
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec": {"description": "reconcile again"}}`)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		if allocation.Status.ObservedGeneration != allocation.Generation || allocation.Generation < 2 {
			return fmt.Errorf("observed generation is %d, want %d", allocation.Status.ObservedGeneration, allocation.Generation)
		}
		return nil
	})
	var after kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: before.Name}, &after); err != nil {
		t.Fatal(err)
	}
	if after.Generation != before.Generation || after.Annotations["example.com/note"] != "ours" {
		t.Errorf("generation is %d, want %d; annotations are %v", after.Generation, before.Generation, after.Annotations)
	}
	if allocation.Status.LastCorrection != nil {
		t.Errorf("the annotation was corrected: %+v", allocation.Status.LastCorrection)
	}
}

// Kuota does not write the spec: values stay as written and owned by the manager
// that applied them, so that the same file can be applied again.
func TestSpecIsNotRewritten(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("gitops")
	file := fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: %s}
spec:
  quota: [{instanceType: ml.g5.2xlarge, vCPU: 3000m, memory: 4096Mi}]
`, team)
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), allocationNamed(team)) })
	for range 2 {
		c.Kubectl(t, file, "apply", "--server-side", "--field-manager=flux", "-f", "-")
		conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}
	if got := c.Kubectl(t, "", "get", "computeallocation", team, "-o", "jsonpath={.metadata.generation} {.spec.quota[0].vCPU}"); got != "1 3000m" {
		t.Errorf("generation and vCPU are %q, want 1 and 3000m", got)
	}
}

func TestManualEditIsCorrected(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("edited")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	queue := allocation.Status.ClusterQueue
	for _, edit := range []string{
		`[{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "100"}]`,
		`[{"op": "replace", "path": "/spec/stopPolicy", "value": "HoldAndDrain"}]`,
		`[{"op": "replace", "path": "/spec/preemption/reclaimWithinCohort", "value": "Never"}, {"op": "replace", "path": "/spec/preemption/borrowWithinCohort/policy", "value": "Never"}]`,
		// A field that Kuota does not set, and that changes the meaning of those it sets.
		`[{"op": "add", "path": "/spec/preemption/borrowWithinCohort/maxPriorityThreshold", "value": -5}]`,
	} {
		before := time.Now().Truncate(time.Second) // times in a status are in seconds
		c.Kubectl(t, "", "patch", "clusterqueue", queue, "--type=json", "--field-manager=kubectl-edit", "-p", edit)
		// The correction is recorded although another write conflicts with the status.
		c.Kubectl(t, "", "annotate", "--overwrite", "computeallocation", team, "example.com/meanwhile="+clustertest.Name("x"))
		edited := time.Now()
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			var q kueue.ClusterQueue
			if err := c.Client.Get(ctx, client.ObjectKey{Name: queue}, &q); err != nil {
				return err
			}
			if n := q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota; n.String() != "1" {
				return fmt.Errorf("quota is %s", n.String())
			}
			if *q.Spec.StopPolicy != kueue.None || q.Spec.Preemption.ReclaimWithinCohort != kueue.PreemptionPolicyAny {
				return fmt.Errorf("stop policy %s, reclaim %s", *q.Spec.StopPolicy, q.Spec.Preemption.ReclaimWithinCohort)
			}
			if q.Spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold != nil {
				return fmt.Errorf("maxPriorityThreshold is still set")
			}
			var a v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a); err != nil {
				return err
			}
			fix := a.Status.LastCorrection
			if fix == nil || fix.Object != "ClusterQueue "+queue || fix.Manager != "kubectl-edit" || fix.Time.Time.Before(before) {
				return fmt.Errorf("last correction is %+v", fix)
			}
			return nil
		})
		t.Logf("corrected after %s", time.Since(edited).Round(time.Millisecond))
	}
}

func TestForeignClusterQueueIsNeverOverwritten(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("foreign")
	name := desired.DefaultNaming.ClusterQueue(team)
	foreign := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{CohortName: "another-cohort"}}
	if err := c.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "ClusterQueue "+name+" exists and is not managed by Kuota")
	namespaceAndQueueMissing(t, c, team)
	var after kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &after); err != nil {
		t.Fatal(err)
	}
	if after.Generation != foreign.Generation || after.Spec.CohortName != "another-cohort" {
		t.Errorf("the ClusterQueue was changed: %+v", after.Spec)
	}
	// Without the conflict the allocation becomes ready.
	if err := c.Client.Delete(t.Context(), &after); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func TestForeignNamespaceIsNotAdopted(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("guest")
	name := desired.DefaultNaming.Namespace(team)
	if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "namespace "+name+" already exists")
	var queue kueue.ClusterQueue
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &queue); !apierrors.IsNotFound(err) {
		t.Errorf("a ClusterQueue was created: %v", err)
	}
	var namespace corev1.Namespace
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.Labels[desired.LabelGoverned] != "" {
		t.Errorf("the namespace was labeled: %v", namespace.Labels)
	}
}

func TestUnknownTypeCreatesNothing(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("typo")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.p5.48xlage", Quantities: accelerators(1)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "did you mean ml.p5.48xlarge")
	nothingCreated(t, c, team)
}

// An instance type that only nodes have is allowed, with the capacity of its nodes.
func TestInstanceTypeOfNode(t *testing.T) {
	c := setup(t)
	custom := clustertest.Name("lab")
	team := clustertest.Name("own")
	create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: custom, Quantities: accelerators(2)}))
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "unknown instance type")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: custom, Labels: map[string]string{corev1.LabelInstanceTypeStable: custom}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			"nvidia.com/gpu": resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), node) })
	allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	got := map[string]string{}
	for _, r := range allocation.Status.Quota[0].Resources {
		got[r.Name] = r.Nominal.String()
	}
	if got["cpu"] != "32" || got["memory"] != "128Gi" || got["nvidia.com/gpu"] != "2" {
		t.Errorf("half of the node is %v, want 2 GPUs, 32 vCPU and 128Gi", got)
	}

	// The policy allows no more than the node has. What exists stays.
	policy := ranking()
	policy.OverAllocationLimits = []v1alpha1.OverAllocationLimit{{Pool: custom, Percent: ptr.To[int32](0)}}
	setPolicy(t, c, policy)
	other := clustertest.Name("other")
	create(t, c, other, specOf(v1alpha1.QuotaRow{InstanceType: custom, Quantities: accelerators(3)}))
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionFalse, "more than the cluster policy lets all teams have: "+custom+": 5 of 4 GPUs")
	nothingCreated(t, c, other)
	update := func(gpus int64) {
		t.Helper()
		clustertest.Eventually(t, soon, func(ctx context.Context) error {
			var allocation v1alpha1.ComputeAllocation
			if err := c.Client.Get(ctx, client.ObjectKey{Name: other}, &allocation); err != nil {
				return err
			}
			allocation.Spec.Quota[0].Quantities = accelerators(gpus)
			return c.Client.Update(ctx, &allocation)
		})
	}
	update(2)
	conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	update(4)
	refused := conditionIs(t, c, other, v1alpha1.ConditionReady, metav1.ConditionFalse, "the quota stays as it is")
	if got := refused.Status.Quota[0].Resources[0].Nominal.Value(); got != 2 {
		t.Errorf("got %d GPUs after a refused change, want 2", got)
	}
}

func nothingCreated(t *testing.T, c *clustertest.Cluster, team string) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: desired.DefaultNaming.ClusterQueue(team)}, &kueue.ClusterQueue{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterQueue was created: %v", err)
	}
	namespaceAndQueueMissing(t, c, team)
}

func namespaceAndQueueMissing(t *testing.T, c *clustertest.Cluster, team string) {
	t.Helper()
	namespace := desired.DefaultNaming.Namespace(team)
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s was created: %v", namespace, err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: desired.DefaultNaming.LocalQueue(team)}, &kueue.LocalQueue{}); !apierrors.IsNotFound(err) {
		t.Errorf("the LocalQueue was created: %v", err)
	}
}

// kubectl get prints namespace, strategy, weight and readiness.
func TestPrinterColumns(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("printed")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.FairShareWeight = 30
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	got := strings.Fields(c.Kubectl(t, "", "get", "computeallocation", team, "--no-headers"))
	want := []string{team, desired.DefaultNaming.Namespace(team), "LendAndBorrow", "30", "True"}
	if len(got) < 5 || !cmp.Equal(got[:5], want) {
		t.Errorf("kubectl get prints %v, want %v", got, want)
	}
}

// Kueue accepts every object of the golden files and stores its spec unchanged.
func TestKueueAcceptsGoldenFiles(t *testing.T) {
	c := setup(t)
	files, err := filepath.Glob("../../quota/desired/testdata/*.golden.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d golden files: %v", len(files), err)
	}
	policies, err := filepath.Glob("../../quota/desired/testdata/policy/*.golden.yaml")
	if err != nil || len(policies) < 3 {
		t.Fatalf("found %d golden policies: %v", len(policies), err)
	}
	files = append(files, policies...)
	checked := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			var queue unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &queue.Object); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains([]string{"ClusterQueue", "ResourceFlavor", "Cohort", "WorkloadPriorityClass"}, queue.GetKind()) {
				continue // the other kinds need their namespace
			}
			checked[queue.GetKind()]++
			sent := queue.DeepCopy()
			queue.SetName(clustertest.Name("golden"))
			clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
				err := c.Client.Create(ctx, &queue, client.DryRunAll)
				if err != nil && !apierrors.IsInternalError(err) {
					t.Fatalf("%s: %v", file, err)
				}
				return err // the webhook of Kueue, which another test restarts
			})
			if diff := cmp.Diff(sent.Object["spec"], queue.Object["spec"]); diff != "" {
				t.Errorf("%s: spec (-sent +stored):\n%s", file, diff)
			}
		}
	}
	if len(checked) != 4 || checked["ClusterQueue"] < 20 {
		t.Errorf("checked only %v", checked)
	}
}

// A deleted flavor stays until no queue uses it, by Kueue's finalizer. Its teams
// are still reconciled, and the condition contains what to do.
func TestDeletedFlavorIsReported(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("flavored")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g6e.xlarge", Quantities: accelerators(1)})
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.Kubectl(t, "", "delete", "resourceflavor", "ml.g6e.xlarge", "--wait=false")
	allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "ResourceFlavor ml.g6e.xlarge is being deleted")
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=json", "-p", `[{"op": "replace", "path": "/spec/quota/0/accelerators", "value": 2}]`)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var q kueue.ClusterQueue
		if err := c.Client.Get(ctx, client.ObjectKey{Name: allocation.Status.ClusterQueue}, &q); err != nil {
			return err
		}
		if n := q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota; n.String() != "2" {
			return fmt.Errorf("quota is still %s", n.String())
		}
		return nil
	})
	c.Kubectl(t, "", "patch", "resourceflavor", "ml.g6e.xlarge", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}
