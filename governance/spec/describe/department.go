package describe

import (
	"cmp"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"

	"k8s.io/utils/ptr"
)

// notOfDepartments are the settings of allocations that departments do not have.
var notOfDepartments = []string{"Preemption within the team", "Namespace ceiling", "Ceiling apart from quota", "Default queue"}

// DepartmentChanges returns all differences between two specs, in the words of
// AllocationChanges. before is nil for a new department.
func DepartmentChanges(before, after *v1alpha1.DepartmentSpec) []change.Field {
	var old *v1alpha1.ComputeAllocationSpec
	if before != nil {
		old = &(&v1alpha1.Department{Spec: *before}).Allocation().Spec
	}
	changes := differences(before, after, []setting[v1alpha1.DepartmentSpec]{
		{"Parent", func(s *v1alpha1.DepartmentSpec) string { return s.Parent }},
		{"Existing Cohort", func(s *v1alpha1.DepartmentSpec) string { return s.CohortName }},
	})
	changes = append(changes, AllocationChanges(old, &(&v1alpha1.Department{Spec: *after}).Allocation().Spec)...)
	changes = slices.DeleteFunc(changes, func(c change.Field) bool { return slices.Contains(notOfDepartments, c.Path) })
	return append(changes, memberChanges(ptr.Deref(before, v1alpha1.DepartmentSpec{}).Members, after.Members, DepartmentMember)...)
}

// DepartmentMember returns a member with its role, such as "User ada@example.com, admin".
func DepartmentMember(m v1alpha1.DepartmentMember) string {
	role := "viewer"
	if cmp.Or(m.Role, v1alpha1.DepartmentViewer) == v1alpha1.DepartmentAdmin {
		role = "admin"
	}
	return m.Kind + " " + m.Name + ", " + role
}
