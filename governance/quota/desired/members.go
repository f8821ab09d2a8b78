package desired

import (
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
