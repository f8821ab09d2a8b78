package describe_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"

	"github.com/google/go-cmp/cmp"
)

func TestDepartmentChanges(t *testing.T) {
	ada := v1alpha1.Member{Kind: "User", Name: "ada"}
	before := v1alpha1.DepartmentSpec{FairShareWeight: 10, Members: []v1alpha1.DepartmentMember{{Member: ada}}}
	after := v1alpha1.DepartmentSpec{
		Parent: "research", FairShareWeight: 20, Members: []v1alpha1.DepartmentMember{{Member: ada, Role: v1alpha1.DepartmentAdmin}},
		Quota: []v1alpha1.QuotaRow{{Pool: "h100", Quantities: v1alpha1.Quantities{Accelerators: new(int64(8))}}}, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.DontLend},
	}
	want := []change.Field{
		{Path: "Parent", After: "research"}, {Path: "Quota, h100", After: "8 accelerators"}, {Path: "Fair-share weight", Before: "10", After: "20"},
		{Path: "Lending and borrowing", Before: "Lends and borrows", After: "Neither lends nor borrows"}, {Path: "Borrow limit", Before: "50 %"},
		{Path: "Member", Before: "User ada, viewer"}, {Path: "Member", After: "User ada, admin"},
	}
	if diff := cmp.Diff(want, describe.DepartmentChanges(&before, &after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	created := describe.DepartmentChanges(nil, &after)
	for _, c := range created {
		if c.Path == "Preemption within the team" || c.Path == "Default queue" {
			t.Errorf("%s is no setting of departments", c.Path)
		}
	}
}
