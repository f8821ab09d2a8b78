package desired

import (
	"cmp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

// departmentPrefix is that of the namespaces and Cohorts of departments. The admission
// policy kuota-departments has it too.
const departmentPrefix = "kuota-department-"

// DepartmentNamespace returns the namespace of the roles of a department.
func DepartmentNamespace(department string) string { return departmentPrefix + department }

// DepartmentCohort returns the name of the Cohort of a department.
func DepartmentCohort(d *v1alpha1.Department) string {
	return cmp.Or(d.Spec.CohortName, departmentPrefix+d.Name)
}

// DepartmentObjects are the objects of one department beside its Cohort.
type DepartmentObjects struct {
	Namespace *applycore.NamespaceApplyConfiguration
	Admins    *applyrbac.RoleBindingApplyConfiguration // nil without admins
}

// BuildDepartment returns the objects of the first of these departments. The others are those
// above it, whose admins are its admins too.
func BuildDepartment(chain []*v1alpha1.Department) DepartmentObjects {
	name := chain[0].Name
	labels := map[string]string{LabelManagedBy: ManagedBy, LabelDepartment: name}
	namespace := DepartmentNamespace(name)
	return DepartmentObjects{
		Namespace: applycore.Namespace(namespace).WithLabels(labels),
		Admins:    departmentBinding(namespace, DepartmentAdminRole, labels, chain, v1alpha1.DepartmentAdmin),
	}
}

// DepartmentChain returns a department and those above it, by the parents that are applied,
// or, before that, those of their specs; nil for an unknown one. It ends where a parent is
// unknown or repeats.
func DepartmentChain(all []v1alpha1.Department, name string) (chain []*v1alpha1.Department) {
	for name != "" && !slices.ContainsFunc(chain, func(d *v1alpha1.Department) bool { return d.Name == name }) {
		d := department(all, name)
		if d == nil {
			break
		}
		chain, name = append(chain, d), AppliedParent(d)
	}
	return chain
}

// department returns the department of a name; nil for none.
func department(all []v1alpha1.Department, name string) *v1alpha1.Department {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// AppliedParent returns the department below which the Cohort of a department is, or that of
// its spec until it has a Cohort; empty for none.
func AppliedParent(d *v1alpha1.Department) string {
	if d.Status.Cohort == "" {
		return d.Spec.Parent
	}
	return d.Status.Parent
}

// DepartmentMark returns the value of AnnotationDepartment for a department; empty for none.
func DepartmentMark(all []v1alpha1.Department, name string) string {
	d := department(all, name)
	if d == nil {
		return name
	}
	return name + "/" + string(d.UID)
}

// MayReuse reports whether a team in a department may get what a deleted team left whose
// department has this mark: the same department, or one above it, whose admins governed the
// deleted team too. A department that was deleted and created again is another one, unless
// the mark has no UID.
func MayReuse(all []v1alpha1.Department, mark, department string) bool {
	was, uid, known := strings.Cut(mark, "/")
	if known && DepartmentMark(all, was) != was+"/"+uid {
		return false
	}
	return was == department || department != "" && slices.ContainsFunc(DepartmentChain(all, was), func(d *v1alpha1.Department) bool { return d.Name == department })
}
