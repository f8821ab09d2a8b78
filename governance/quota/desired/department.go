package desired

import (
	"cmp"

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
