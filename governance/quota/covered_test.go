package quota_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A ClusterQueue that covers certain resources has no quota of others. An amount that
// was entered for another resource is an error.
func TestCoveredResources(t *testing.T) {
	types := catalog.New(catalog.Input{InstanceTypeLabel: catalog.InstanceTypeLabel})
	cpu, memory, two := resource.MustParse("8"), resource.MustParse("16Gi"), int64(2)
	for name, c := range map[string]struct {
		covered []string
		row     v1alpha1.Quantities
		want    quota.Resources
		wantErr string
	}{
		"CPU and memory, in this order":   {[]string{"memory", "cpu"}, v1alpha1.Quantities{VCPU: &cpu, Memory: &memory}, quota.Resources{"cpu": 8000, "memory": 16 << 30}, ""},
		"memory that only follows":        {[]string{"cpu"}, v1alpha1.Quantities{VCPU: &cpu}, quota.Resources{"cpu": 8000}, ""},
		"another resource, without quota": {[]string{"cpu", "example.com/nic"}, v1alpha1.Quantities{VCPU: &cpu}, quota.Resources{"cpu": 8000, "example.com/nic": 0}, ""},
		"memory that was entered":         {[]string{"cpu"}, v1alpha1.Quantities{VCPU: &cpu, Memory: &memory}, nil, "spec.quota[0].memory: the ClusterQueue does not cover memory"},
		"accelerators":                    {[]string{"cpu", "memory"}, v1alpha1.Quantities{Accelerators: &two}, nil, "spec.coveredResources: ClusterQueue theirs does not cover nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.ComputeAllocationSpec{ClusterQueueName: "theirs", CoveredResources: c.covered, Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: c.row}}}
			spec.Sharing.Unlimited = true
			resolved, errs := quota.Resolve(spec, types)
			if c.wantErr != "" {
				if len(errs) != 1 || !strings.HasPrefix(errs[0].Path+": "+errs[0].Message, c.wantErr) {
					t.Errorf("got errors %v, want %q", errs, c.wantErr)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(c.want, resolved.Pools[0].Nominal); diff != "" {
				t.Errorf("nominal quota (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.covered, resolved.Covered()); diff != "" {
				t.Errorf("covered (-want +got):\n%s", diff)
			}
		})
	}
}
