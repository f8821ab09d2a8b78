package departments

import (
	"context"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const h100 = "ml.p5.48xlarge"

// TestFigures has research (40) above vision (16), with teams speech (8) and sight (12), and
// beside it product (8) and team alone (8). Sight uses 30, speech nothing, product 10.
func TestFigures(t *testing.T) {
	rows := func(n int64) []v1alpha1.QuotaRow {
		return []v1alpha1.QuotaRow{{InstanceType: h100, Quantities: v1alpha1.Quantities{Accelerators: &n}}}
	}
	named := func(name, parent string, n int64) v1alpha1.Department {
		return v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DepartmentSpec{Parent: parent, Quota: rows(n)}}
	}
	team := func(name, department string, n int64) *v1alpha1.ComputeAllocation {
		return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Department: department, Quota: rows(n)}}
	}
	used := func(name string, nominal, n int64, waiting int) capacity.TeamSnapshot {
		return capacity.TeamSnapshot{Name: name, Running: 1, Waiting: waiting, Resources: []capacity.TeamResource{{Flavor: h100, Resource: catalog.GPU, TeamUsage: usage.TeamUsage{Nominal: resources.Amount(nominal), Usage: resources.Amount(n)}}}}
	}
	state := NewState(
		[]v1alpha1.Department{named("product", "", 8), named("research", "", 40), named("vision", "research", 16)},
		[]*v1alpha1.ComputeAllocation{team("alone", "", 8), team("apps", "product", 8), team("sight", "vision", 12), team("speech", "research", 8)},
		catalog.New(catalog.Input{}), access.Governed{})
	snapshot := &capacity.Snapshot{Teams: []capacity.TeamSnapshot{used("alone", 8, 0, 0), used("apps", 8, 10, 2), used("sight", 12, 30, 3), used("speech", 8, 0, 1)}}
	figures := FiguresOf(state, snapshot, func(team string) bool { return team != "alone" })
	gpus := quota.FlavorResource{Flavor: h100, Resource: catalog.GPU}
	want := map[string]Resource{
		// 2 beyond the quota of product are lent by research, which has 10 idle, and alone, which has 8.
		"product":  {FlavorResource: gpus, Quota: 8, Allocated: 8, Used: 10, Borrowed: 2, From: []Loan{{Department: "research", Amount: 1}, {Amount: 1}}},
		"research": {FlavorResource: gpus, Quota: 40, Allocated: 24, Reserve: 16, Used: 30, Lent: 1, To: []Loan{{Department: "product", Amount: 1}}},
		"vision":   {FlavorResource: gpus, Quota: 16, Allocated: 12, Reserve: 4, Used: 30, Borrowed: 14, From: []Loan{{Amount: 14}}}, // of the reserve of research
	}
	for name, want := range want {
		var got Resource
		for _, r := range figures[name].Resources {
			if r.Resource == catalog.GPU {
				got = r
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if f := figures["research"]; f.Running != 2 || f.Waiting != 4 {
		t.Errorf("research has %d running and %d waiting tasks, want 2 and 4", f.Running, f.Waiting)
	}
	served := `
# HELP kuota_department_borrowed What a department uses beyond its quota. In cores, bytes and devices.
# TYPE kuota_department_borrowed gauge
kuota_department_borrowed{department="product",pool="ml.p5.48xlarge",resource="nvidia.com/gpu"} 2
kuota_department_borrowed{department="research",pool="ml.p5.48xlarge",resource="nvidia.com/gpu"} 0
kuota_department_borrowed{department="vision",pool="ml.p5.48xlarge",resource="nvidia.com/gpu"} 14
# HELP kuota_department_waiting_tasks Waiting tasks of a department.
# TYPE kuota_department_waiting_tasks gauge
kuota_department_waiting_tasks{department="product"} 2
kuota_department_waiting_tasks{department="research"} 4
kuota_department_waiting_tasks{department="vision"} 3
`
	for name, f := range figures {
		f.Resources = slices.DeleteFunc(f.Resources, func(r Resource) bool { return r.Resource != catalog.GPU })
		figures[name] = f
	}
	m := &Metrics{Figures: func(context.Context) (map[string]Figures, error) { return figures, nil }}
	if err := testutil.CollectAndCompare(m, strings.NewReader(served), "kuota_department_borrowed", "kuota_department_waiting_tasks"); err != nil {
		t.Error(err)
	}
}
