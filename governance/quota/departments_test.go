package quota_test

import (
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// h100s is a row of accelerators of the pool of the tests.
func h100s(n int64) []v1alpha1.QuotaRow {
	return []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &n}}}
}

func department(name, parent string, accelerators int64) v1alpha1.Department {
	return v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DepartmentSpec{Parent: parent, Quota: h100s(accelerators)}}
}

func teamIn(name, department string, accelerators int64) *v1alpha1.ComputeAllocation {
	return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Department: department, Quota: h100s(accelerators)}}
}

// tree has research with 64 H100, of which vision has 24 and team speech 8; and product with 16.
func tree() quota.Departments {
	return quota.NewDepartments(
		[]v1alpha1.Department{department("research", "", 64), department("vision", "research", 24), department("product", "", 16)},
		[]*v1alpha1.ComputeAllocation{teamIn("speech", "research", 8), teamIn("sight", "vision", 20), teamIn("alone", "", 99)},
		catalog.New(catalog.Input{}))
}

func TestDepartments(t *testing.T) {
	d := tree()
	gpus := func(p quota.PoolResources) int64 { return int64(p["ml.p5.48xlarge"][catalog.GPU]) }
	for name, tc := range map[string]struct{ got, want any }{
		"chain":                   {d.Chain("vision"), []string{"vision", "research"}},
		"below":                   {d.Below("research"), []string{"research", "vision"}},
		"top":                     {d.Children(""), []string{"product", "research"}},
		"quota":                   {gpus(d.Quota("research")), int64(64)},
		"of teams and children":   {gpus(d.Taken("research", "", "")), int64(32)},
		"but one team":            {gpus(d.Taken("research", "speech", "")), int64(24)},
		"but one child":           {gpus(d.Taken("research", "", "vision")), int64(8)},
		"reserve":                 {gpus(d.Reserve("research")), int64(32)},
		"reserve of a child":      {gpus(d.Reserve("vision")), int64(4)},
		"includes one below":      {d.Includes("research", "vision"), true},
		"includes not one above":  {d.Includes("vision", "research"), false},
		"includes itself":         {d.Includes("vision", "vision"), true},
		"all include each team":   {d.Includes("", ""), true},
		"without a department":    {d.Includes("research", ""), false},
		"an unknown one is empty": {d.Includes("unknown", "vision"), false},
		"path":                    {d.Path("vision"), "research › vision"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCheckParent(t *testing.T) {
	d := quota.NewDepartments([]v1alpha1.Department{department("a", "", 1), department("b", "a", 1), department("c", "b", 1), department("x", "", 1), department("y", "x", 1)}, nil, catalog.New(catalog.Input{}))
	for name, tc := range map[string]struct{ name, parent, want string }{
		"none":                   {"a", "", ""},
		"a new one":              {"new", "b", ""},
		"unknown":                {"a", "unknown", "department unknown does not exist; choose another"},
		"itself":                 {"a", "a", "department a is below a; choose another"},
		"a cycle":                {"a", "c", "department c is below a; choose another"},
		"too deep":               {"new", "c", "that would be 4 levels of departments; there are at most 3"},
		"too deep with children": {"x", "b", "that would be 4 levels of departments; there are at most 3"},
		"moved":                  {"y", "b", ""},
	} {
		if got := d.CheckParent(tc.name, tc.parent); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestCheckDepartment(t *testing.T) {
	for name, tc := range map[string]struct {
		of   v1alpha1.Department
		want governance.FieldErrors
	}{
		"as it is":            {of: department("vision", "research", 24)},
		"the rest of it":      {of: department("vision", "research", 56)},
		"more than that":      {of: department("vision", "research", 57), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 57 GPUs, and department research has 56 GPUs left"}}},
		"less than its teams": {of: department("vision", "research", 19), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 19 GPUs, and its teams and departments have 20 GPUs"}}},
		"no row": {of: v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: "vision"}, Spec: v1alpha1.DepartmentSpec{Parent: "research"}},
			want: governance.FieldErrors{{Path: "spec.quota", Message: "in pool ml.p5.48xlarge is 0 GPUs, and its teams and departments have 20 GPUs"}}},
		"moved to one without room": {of: department("vision", "product", 24), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 24 GPUs, and department product has 16 GPUs left"}}},
		"moved to the top":          {of: department("vision", "", 24)},
		"new":                       {of: department("audio", "research", 33), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 33 GPUs, and department research has 32 GPUs left"}}},
		"below itself":              {of: department("research", "vision", 64), want: governance.FieldErrors{{Path: "spec.parent", Message: "department vision is below research; choose another"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := tree()
			if diff := cmp.Diff(tc.want, d.CheckDepartment(&tc.of, d.Find(tc.of.Name))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckTeam(t *testing.T) {
	saved := teamIn("speech", "research", 8)
	for name, tc := range map[string]struct {
		team *v1alpha1.ComputeAllocation
		want governance.FieldErrors
	}{
		"none":         {team: teamIn("speech", "", 1000)},
		"unknown":      {team: teamIn("speech", "unknown", 1), want: governance.FieldErrors{{Path: "spec.department", Message: "department unknown does not exist; choose another"}}},
		"what is left": {team: teamIn("speech", "research", 40)},
		"more":         {team: teamIn("speech", "research", 41), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 41 GPUs, and department research has 40 GPUs left"}}},
		"of a share":   {team: withShare(teamIn("speech", "research", 39), 2), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 41 GPUs with that of shares, and department research has 40 GPUs left"}}},
		"moved":        {team: teamIn("speech", "vision", 8), want: governance.FieldErrors{{Path: "spec.quota[0]", Message: "is 8 GPUs, and department vision has 4 GPUs left"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tree().CheckTeam(tc.team, saved)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withShare returns a team with a share that has GPUs of the team's type.
func withShare(a *v1alpha1.ComputeAllocation, gpus int64) *v1alpha1.ComputeAllocation {
	a.Spec.Shares = []v1alpha1.Share{{Name: "batch", Weight: 1, Quota: []v1alpha1.WindowQuota{{InstanceType: a.Spec.Quota[0].InstanceType, Accelerators: &gpus}}}}
	return a
}
