package desired

import (
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
