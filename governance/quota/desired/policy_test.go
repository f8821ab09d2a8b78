package desired_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Each testdata/policy/*.yaml is a policy with allocations and ready resources by
// pool. Its .golden.yaml has the WorkloadPriorityClasses, the ClusterQueues and, if
// the policy shares unallocated compute, the Cohort.
func TestGoldenPolicies(t *testing.T) {
	inputs, err := filepath.Glob("testdata/policy/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inputs = slices.DeleteFunc(inputs, func(p string) bool { return strings.HasSuffix(p, ".golden.yaml") })
	if len(inputs) < 3 {
		t.Fatalf("found %d policies, want at least 3", len(inputs))
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var in struct {
				Policy      v1alpha1.ClusterPolicy       `json:"policy"`
				Ready       map[string]quota.Resources   `json:"ready"`
				Allocations []v1alpha1.ComputeAllocation `json:"allocations"`
			}
			if err := yaml.UnmarshalStrict(text, &in); err != nil {
				t.Fatal(err)
			}
			policy := &in.Policy
			var objects []any
			for _, class := range desired.PriorityClasses(&policy.Spec) {
				objects = append(objects, class)
			}
			teams := map[string]quota.Resources{}
			for i := range in.Allocations {
				built, errs := desired.Build(&in.Allocations[i], catalog.Catalog{}, desired.DefaultNaming, desired.RankingOf(policy))
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				objects = append(objects, built.ClusterQueue)
				for _, pool := range built.Quota.Pools {
					if teams[pool.Name] == nil {
						teams[pool.Name] = quota.Resources{}
					}
					teams[pool.Name].Add(pool.Nominal)
				}
			}
			if policy.Spec.IdleCompute.ShareUnallocated {
				cohorts, leftOut := desired.FlatTree(desired.DefaultNaming, func(pool string) quota.Resources { return in.Ready[pool] }, teams).Cohorts()
				if len(leftOut) > 0 {
					t.Errorf("got pools left out: %v", leftOut)
				}
				for _, cohort := range cohorts {
					objects = append(objects, cohort)
				}
			}
			var out bytes.Buffer
			for i, object := range objects {
				document, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				if i > 0 {
					out.WriteString("---\n")
				}
				out.Write(document)
			}
			golden := strings.TrimSuffix(input, ".yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got), -update rewrites it:\n%s", diff)
			}
		})
	}
}

// Nothing is unallocated where the quota of teams exceeds the pool, and a Cohort has
// at most as many flavors as Kueue accepts.
func TestUnallocated(t *testing.T) {
	allocated := map[string]quota.Resources{}
	for i := range 70 {
		allocated[string(rune('a'+i/26))+string(rune('a'+i%26))] = quota.Resources{catalog.GPU: 4, catalog.CPU: 1000}
	}
	ready := func(string) quota.Resources { return quota.Resources{catalog.GPU: 3, catalog.CPU: 5000} }
	tree := desired.FlatTree(desired.DefaultNaming, ready, allocated)
	for pool, amounts := range tree.Reserves()[""] {
		if amounts[catalog.GPU] != 0 || amounts[catalog.CPU] != 4000 {
			t.Errorf("pool %s: got %v unallocated, want 0 GPUs and 4000 millicores", pool, amounts)
		}
	}
	if _, leftOut := tree.Cohorts(); len(leftOut) != 6 {
		t.Errorf("got %d pools left out, want 6: %v", len(leftOut), leftOut)
	}
	if cohorts, _ := desired.FlatTree(desired.DefaultNaming, ready, nil).Cohorts(); cohorts != nil {
		t.Errorf("got Cohorts %+v without pools, want none", cohorts)
	}
}
