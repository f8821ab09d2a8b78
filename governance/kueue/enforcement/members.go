package enforcement

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MemberRole is the ClusterRole of the members of allocations. Kubernetes fills it
	// with the rules of all ClusterRoles that have the label AggregateToMember.
	MemberRole        = "kuota-team-member"
	AggregateToMember = "kuota.dev/aggregate-to-team-member"
)

// MemberRoleOf returns the name of the ClusterRole with what members may do with a kind.
func (k JobKind) MemberRoleOf() string { return MemberRole + "-" + k.Resource }

// memberVerbs returns what members may do with a kind. The admission policies kuota-jobs
// and kuota-elasticjobs limit what a patch or an update can change; of other kinds it
// could change what admitted pods run.
func (k JobKind) memberVerbs() []string {
	verbs := []string{"get", "list", "watch", "create", "delete"}
	switch k.Kind {
	case "Job", "JobSet":
		verbs = append(verbs, "patch")
	case elasticJobs.kind:
		verbs = append(verbs, "update", "patch")
	}
	return verbs
}

// memberRules returns the rules of members for a kind. The subresource scale of those that
// serve stops, resumes and scales them, and kubectl port-forward reaches their pods. That
// is a get, which also needs the permission to create (Kubernetes 1.35).
func (k JobKind) memberRules() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: k.memberVerbs()}}
	switch k.Kind {
	case "Deployment", "StatefulSet", "LeaderWorkerSet":
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{k.Resource + "/scale"}, Verbs: []string{"get", "patch"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}})
	}
	return rules
}

// MemberRoles returns a ClusterRole for each of TaskKinds. The chart labels those of the
// kinds that members may create.
func MemberRoles() (roles []*rbacv1.ClusterRole) {
	for _, k := range TaskKinds() {
		roles = append(roles, &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: k.MemberRoleOf(), Annotations: map[string]string{"helm.sh/resource-policy": "keep"}}, // as MemberRole
			Rules:      k.memberRules(),
		})
	}
	return roles
}

// AllowsCreation reports whether rules of a role allow to create objects of the kind.
func (k JobKind) AllowsCreation(rules []rbacv1.PolicyRule) bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, want) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, k.Group) && has(r.Resources, k.Resource) && has(r.Verbs, "create") && len(r.ResourceNames) == 0
	})
}
