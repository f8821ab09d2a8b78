package desired

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	rbacv1 "k8s.io/api/rbac/v1"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

const (
	// MemberRole is the ClusterRole that members have in their team's namespace.
	MemberRole = "kuota-team-member"
	// MembersName is the name of the RoleBinding that grants it to them.
	MembersName = "kuota-members"
)

// members returns the RoleBinding of the members of a team; nil without members.
func members(team, namespace string, all []v1alpha1.Member) *applyrbac.RoleBindingApplyConfiguration {
	if len(all) == 0 {
		return nil
	}
	binding := applyrbac.RoleBinding(MembersName, namespace).
		WithLabels(queueLabels(team)).
		WithRoleRef(applyrbac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(MemberRole))
	seen := map[v1alpha1.Member]bool{}
	for _, member := range all {
		if seen[member] {
			continue
		}
		seen[member] = true
		binding.WithSubjects(applyrbac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(member.Kind).WithName(member.Name))
	}
	return binding.WithAnnotations(map[string]string{AnnotationDesired: digest(binding.Subjects)})
}

const (
	// ElasticRole is the ClusterRole that the console has in the namespaces of teams.
	ElasticRole = "kuota-elastic"
	// ElasticName is the name of the RoleBinding that grants it.
	ElasticName = "kuota-elastic"
)

// elastic returns the RoleBinding by which the console creates the Jobs of ElasticJobs;
// nil without a console.
func elastic(team, namespace, console string) *applyrbac.RoleBindingApplyConfiguration {
	if console == "" {
		return nil
	}
	subject := applyrbac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(console)
	if account, ok := strings.CutPrefix(console, "system:serviceaccount:"); ok {
		of, name, _ := strings.Cut(account, ":")
		subject = applyrbac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(of).WithName(name)
	}
	binding := applyrbac.RoleBinding(ElasticName, namespace).
		WithLabels(queueLabels(team)).
		WithRoleRef(applyrbac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(ElasticRole)).
		WithSubjects(subject)
	return binding.WithAnnotations(map[string]string{AnnotationDesired: digest(binding.Subjects)})
}

// The ClusterRoles of the members of departments. deploy/rbac/roles.yaml has their rules.
const (
	// DepartmentAdminRole is what the admins of a department and of those above it have in
	// its namespace: the admission policy kuota-departments asks for it.
	DepartmentAdminRole = "kuota-department-admin"
	// DepartmentViewerRole is what all members of a department and of those above it have in
	// the namespaces of its teams.
	DepartmentViewerRole = "kuota-department-viewer"
	// DepartmentDelegateRole is what the admins of all departments have in the cluster, while
	// the API server applies kuota-departments.
	DepartmentDelegateRole = "kuota-department-delegate"

	// DepartmentName is the name of the bindings of the first two roles.
	DepartmentName = "kuota-department"
	// DelegatesName is the name of the binding of the third.
	DelegatesName = "kuota-department-delegates"
)

// departmentBinding returns the RoleBinding of a role in a namespace to those members of
// the departments that have one of the roles of a department; nil for none.
func departmentBinding(namespace, role string, labels map[string]string, departments []*v1alpha1.Department, roles ...v1alpha1.DepartmentRole) *applyrbac.RoleBindingApplyConfiguration {
	binding := applyrbac.RoleBinding(DepartmentName, namespace).
		WithLabels(labels).
		WithRoleRef(applyrbac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role)).
		WithSubjects(DepartmentSubjects(departments, roles...)...)
	if len(binding.Subjects) == 0 {
		return nil
	}
	return binding.WithAnnotations(map[string]string{AnnotationDesired: digest(binding.Subjects)})
}

// DepartmentSubjects returns the members of departments that have one of these roles, each
// once, in the order of the departments.
func DepartmentSubjects(departments []*v1alpha1.Department, roles ...v1alpha1.DepartmentRole) (subjects []*applyrbac.SubjectApplyConfiguration) {
	seen := map[v1alpha1.Member]bool{}
	for _, d := range departments {
		for _, m := range d.Spec.Members {
			if !slices.Contains(roles, m.Role) || seen[m.Member] {
				continue
			}
			seen[m.Member] = true
			subjects = append(subjects, applyrbac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(m.Kind).WithName(m.Name))
		}
	}
	return subjects
}

// Delegates returns the ClusterRoleBinding of the admins of all departments, which are in a
// fixed order; nil without admins.
func Delegates(departments []*v1alpha1.Department) *applyrbac.ClusterRoleBindingApplyConfiguration {
	subjects := DepartmentSubjects(departments, v1alpha1.DepartmentAdmin)
	if len(subjects) == 0 {
		return nil
	}
	return applyrbac.ClusterRoleBinding(DelegatesName).
		WithLabels(map[string]string{LabelManagedBy: ManagedBy}).
		WithRoleRef(applyrbac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(DepartmentDelegateRole)).
		WithSubjects(subjects...)
}
