package imports_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The allocations of desired's golden files survive writing and reading.
func TestAllocationRoundTrip(t *testing.T) {
	inputs, _ := filepath.Glob("../quota/desired/testdata/*.yaml")
	read := 0
	for _, input := range inputs {
		if strings.Count(filepath.Base(input), ".") > 1 {
			continue
		}
		var want v1alpha1.ComputeAllocation
		if err := yaml.UnmarshalStrict(file(t, input), &want); err != nil {
			t.Fatal(err)
		}
		same(t, &want)
		read++
	}
	if read < 14 {
		t.Fatalf("found only %d allocations", read)
	}
}

func same(t *testing.T, want *v1alpha1.ComputeAllocation) {
	t.Helper()
	text := manifest.AllocationYAML(want)
	got := imports.Read([]byte(text))
	if len(got.Objects) != 1 || all(got) != "" {
		t.Fatalf("%s is read with: %s", text, all(got))
	}
	a := got.Objects[0].Allocation
	if diff := cmp.Diff(want.Spec, a.Spec); diff != "" || a.Name != want.Name {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	if again := manifest.AllocationYAML(a); again != text {
		t.Errorf("%s is written again as %s", text, again)
	}
}

// Only the name and the spec of a live object are written.
func TestWritesNameAndSpecOnly(t *testing.T) {
	memory := resource.MustParse("1000Mi")
	a := &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: "vision", ResourceVersion: "7", UID: "u", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: v1alpha1.ComputeAllocationSpec{
			Description: "true", Members: []v1alpha1.Member{{Kind: "User", Name: "0123"}},
			Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g5.xlarge", Quantities: v1alpha1.Quantities{Memory: &memory}}},
		},
		Status: v1alpha1.ComputeAllocationStatus{Namespace: "n"},
	}
	want := `apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata:
  name: vision
spec:
  description: "true"
  members:
  - kind: User
    name: "0123"
  preemption: {}
  quota:
  - instanceType: ml.g5.xlarge
    memory: 1000Mi
  sharing: {}
`
	want = strings.NewReplacer("  preemption: {}\n", "", "  sharing: {}\n", "").Replace(want)
	if diff := cmp.Diff(want, manifest.AllocationYAML(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same(t, a)
}

func TestPolicyRoundTrip(t *testing.T) {
	n := func(n int32) *int32 { return &n }
	want := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{
		TaskPrioritization: v1alpha1.TaskRanking, PriorityClasses: []v1alpha1.PriorityClass{{Name: "a", Weight: n(0), MaximumTimeLimitSeconds: n(60)}, {Name: "b-priority", Weight: n(100), Description: "x: y", DefaultTimeLimitSeconds: n(3600), MaximumTimeLimitSeconds: n(7200)}},
		IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFirstComeFirstServe, ShareUnallocated: true}, Enforcement: v1alpha1.EnforcementNone,
		Prices: &v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{{Pool: "ml.p5.48xlarge", Resource: "nvidia.com/gpu", From: "2026-10-01", Own: "2.50", Borrowed: "1.2"}}},
		GangScheduling: v1alpha1.GangScheduling{
			Enabled: true, BlockAdmission: true, Timeout: &metav1.Duration{Duration: 90 * time.Minute}, RecoveryTimeout: &metav1.Duration{},
			Requeuing: v1alpha1.Requeuing{Timestamp: "Creation", BackoffLimitCount: n(3), BackoffBaseSeconds: n(0), BackoffMaxSeconds: n(600)},
		},
		Pools: []v1alpha1.Pool{
			{Name: "h100", Match: v1alpha1.PoolMatch{Accelerator: "H100"}}, {Name: "cpu", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.c5.large", "ml.c5.xlarge"}}},
			{Name: "rack", Match: v1alpha1.PoolMatch{NodeLabels: map[string]string{"zone": "a", "rack": "4"}}},
		},
	}}
	got := imports.Read([]byte(manifest.PolicyYAML(want)))
	if len(got.Objects) != 1 || all(got) != "" {
		t.Fatalf("%s is read with: %s", manifest.PolicyYAML(want), all(got))
	}
	if diff := cmp.Diff(want.Spec, got.Objects[0].Policy.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
