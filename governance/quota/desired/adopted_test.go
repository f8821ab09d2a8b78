package desired_test

import (
	"encoding/json"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func specOf(t *testing.T, object any) any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Metadata struct{ Name string }
		Spec     any
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"name": fields.Metadata.Name, "spec": fields.Spec}
}

// Of a ClusterQueue that existed before the allocation, Kuota sets only what the
// allocation describes. A weight of 1 is Kueue's own default, and is not set.
func TestAdoptedQueues(t *testing.T) {
	a := &v1alpha1.ComputeAllocation{}
	a.Name = "physics"
	a.Spec = v1alpha1.ComputeAllocationSpec{
		ClusterQueueName: "theirs", LocalQueueName: "jobs", Namespace: "lab", CohortName: ptr.To(""), FairShareWeight: 1, QueueingStrategy: "StrictFIFO",
		CoveredResources: []string{"memory", "cpu"}, Sharing: v1alpha1.Sharing{Unlimited: true}, DefaultQueue: true,
		Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.PreemptNever, ReclaimWithinCohort: "Never", BorrowWithinCohort: "Never"},
		Quota:      []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{VCPU: ptr.To(resource.MustParse("8")), Memory: ptr.To(resource.MustParse("16Gi"))}}},
	}
	objects, errs := desired.Build(a, catalog.New(catalog.Input{InstanceTypeLabel: catalog.InstanceTypeLabel}), desired.DefaultNaming, desired.ByPriority)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	type object = map[string]any
	want := object{"name": "theirs", "spec": object{
		"queueingStrategy": "StrictFIFO", "stopPolicy": "None",
		"preemption": object{"withinClusterQueue": "Never", "reclaimWithinCohort": "Never", "borrowWithinCohort": object{"policy": "Never"}},
		"resourceGroups": []any{object{"coveredResources": []any{"memory", "cpu"}, "flavors": []any{object{"name": "ml.p5.48xlarge", "resources": []any{
			object{"name": "memory", "nominalQuota": "16Gi"}, object{"name": "cpu", "nominalQuota": "8"},
		}}}}},
	}}
	if diff := cmp.Diff(want, specOf(t, objects.ClusterQueue)); diff != "" {
		t.Errorf("ClusterQueue (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"name": "jobs", "spec": object{"clusterQueue": "theirs"}}, specOf(t, objects.LocalQueue)); diff != "" {
		t.Errorf("LocalQueue (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"name": "default", "spec": object{"clusterQueue": "theirs", "stopPolicy": "None"}}, specOf(t, objects.DefaultQueue)); diff != "" {
		t.Errorf("default LocalQueue, which is Kuota's own (-want +got):\n%s", diff)
	}
	a.Spec.CohortName, a.Spec.FairShareWeight = ptr.To("labs"), 2
	objects, _ = desired.Build(a, catalog.New(catalog.Input{InstanceTypeLabel: catalog.InstanceTypeLabel}), desired.DefaultNaming, desired.ByPriority)
	spec := specOf(t, objects.ClusterQueue).(object)["spec"].(object)
	if diff := cmp.Diff([]any{"labs", object{"weight": "2"}}, []any{spec["cohortName"], spec["fairSharing"]}); diff != "" {
		t.Errorf("cohort and weight (-want +got):\n%s", diff)
	}
}

// The cohort of the policy is that of Kuota's own queues.
func TestCohortOfPolicy(t *testing.T) {
	policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{CohortName: "labs"}}
	for _, c := range []struct {
		policy *v1alpha1.ClusterPolicy
		want   string
	}{{nil, "shared-pool"}, {&v1alpha1.ClusterPolicy{}, "shared-pool"}, {policy, "labs"}} {
		if got := desired.DefaultNaming.Under(c.policy).Cohort; got != c.want {
			t.Errorf("got cohort %s, want %s", got, c.want)
		}
	}
}

// A flavor of another owner is used as it is if it selects the nodes of its pool.
func TestUsesFlavor(t *testing.T) {
	nodeLabels := map[string]string{"example.com/market": "spot", "example.com/zone": "a"}
	types := catalog.New(catalog.Input{InstanceTypeLabel: catalog.InstanceTypeLabel, Pools: []v1alpha1.Pool{{Name: "spot", Match: v1alpha1.PoolMatch{NodeLabels: nodeLabels}}}})
	a := &v1alpha1.ComputeAllocation{}
	a.Name = "physics"
	quantities := v1alpha1.Quantities{VCPU: ptr.To(resource.MustParse("8")), Memory: ptr.To(resource.MustParse("16Gi"))}
	a.Spec.Quota = []v1alpha1.QuotaRow{{Pool: "spot", Quantities: quantities}, {InstanceType: "ml.p5.48xlarge", Quantities: quantities}}
	objects, errs := desired.Build(a, types, desired.DefaultNaming, desired.ByPriority)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, c := range map[string]struct {
		flavor string
		labels map[string]string
		want   bool
	}{
		"the labels of the pool":           {"spot", nodeLabels, true},
		"some of them":                     {"spot", map[string]string{"example.com/market": "spot"}, true},
		"all nodes":                        {"spot", nil, true},
		"Kuota's own label":                {"spot", map[string]string{catalog.PoolLabel: "spot"}, true},
		"other nodes":                      {"spot", map[string]string{"example.com/market": "reserved"}, false},
		"the instance type":                {"ml.p5.48xlarge", map[string]string{catalog.InstanceTypeLabel: "ml.p5.48xlarge"}, true},
		"all nodes, for an instance type":  {"ml.p5.48xlarge", nil, false},
		"a flavor that is not in the spec": {"other", nil, false},
	} {
		if got := objects.UsesFlavor(c.flavor, c.labels); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
