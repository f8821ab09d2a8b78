package describe_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"

	"github.com/google/go-cmp/cmp"
)

// A change of the members of a share decides who may use its queue.
func TestShareMembersAreDescribed(t *testing.T) {
	spec := func(members ...v1alpha1.Member) *v1alpha1.ComputeAllocationSpec {
		return &v1alpha1.ComputeAllocationSpec{Shares: []v1alpha1.Share{{Name: "high", Weight: 15, Members: members}, {Name: "low", Weight: 3}}}
	}
	got := describe.AllocationChanges(spec(), spec(v1alpha1.Member{Kind: "User", Name: "ada@example.com"}, v1alpha1.Member{Kind: "Group", Name: "vision"}))
	want := []change.Field{{Path: "Shares", Before: "high 15, low 3", After: "high 15 (User ada@example.com, Group vision), low 3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
