package access

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Governed is the departments whose teams and departments a user may change.
type Governed struct {
	All         bool // every team, in a department or not
	departments sets.Set[string]
}

// GovernedOf returns these departments.
func GovernedOf(departments ...string) Governed {
	return Governed{departments: sets.New(departments...)}
}

// Includes reports whether the user may change the teams of a department. The empty name is
// that of teams without one.
func (g Governed) Includes(department string) bool {
	return g.All || department != "" && g.departments.Has(department)
}

// Departments returns the names of the departments, sorted; empty if All is set.
func (g Governed) Departments() []string { return sets.List(g.departments) }

// Empty reports whether the user may change no team.
func (g Governed) Empty() bool { return !g.All && len(g.departments) == 0 }

// Governed returns the departments that user governs. Users who may create allocations
// anywhere govern all. The API server decides again about each write.
func (s *Service) Governed(ctx context.Context, user governance.User) (Governed, error) {
	all, err := s.MayCreateAllocations(ctx, user)
	if err != nil || all {
		return Governed{All: all && err == nil}, err
	}
	return s.Delegated(ctx, user)
}

// Delegated returns the departments that user governs as an admin of one, which the admission
// policy kuota-departments limits the user to. It sends reviews only for users whom a
// department names as admins: one for each department below those, and three more. So it costs
// nothing on pages of members.
func (s *Service) Delegated(ctx context.Context, user governance.User) (Governed, error) {
	none := GovernedOf()
	if user.Local {
		return none, nil
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return none, err
	}
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return none, err
	}
	admin := func(m v1alpha1.DepartmentMember) bool { return m.Role == v1alpha1.DepartmentAdmin && names(m, user) }
	var candidates []string
	for i := range list.Items {
		if slices.ContainsFunc(desired.DepartmentChain(list.Items, list.Items[i].Name), func(d *v1alpha1.Department) bool { return slices.ContainsFunc(d.Spec.Members, admin) }) {
			candidates = append(candidates, list.Items[i].Name)
		}
	}
	if len(candidates) == 0 {
		return none, nil
	}
	may, err := s.permits(ctx, user, "create")
	if err == nil && may {
		may, err = s.restricted(ctx, user)
	}
	if err != nil || !may {
		return none, err
	}
	allowed := make([]bool, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, name := range candidates {
		group.Go(func() (err error) {
			allowed[i], err = s.governs(ctx, user, desired.DepartmentNamespace(name))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return none, err
	}
	governed := GovernedOf()
	for i, name := range candidates {
		if allowed[i] {
			governed.departments.Insert(name)
		}
	}
	return governed, nil
}

// memberOf returns the departments of which user sees everything.
func (s *Service) memberOf(ctx context.Context, user governance.User) ([]string, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return nil, err
	}
	return MemberOf(list.Items, user), nil
}

// MemberOf returns the departments that name user or one of their groups as a member, and those
// below these.
func MemberOf(departments []v1alpha1.Department, user governance.User) (of []string) {
	named := func(d *v1alpha1.Department) bool {
		return slices.ContainsFunc(d.Spec.Members, func(m v1alpha1.DepartmentMember) bool { return names(m, user) })
	}
	if !slices.ContainsFunc(departments, func(d v1alpha1.Department) bool { return named(&d) }) {
		return nil // almost everybody
	}
	for i := range departments {
		if slices.ContainsFunc(desired.DepartmentChain(departments, departments[i].Name), named) {
			of = append(of, departments[i].Name)
		}
	}
	return of
}

// names reports whether a member of a department is user or one of their groups.
func names(m v1alpha1.DepartmentMember, user governance.User) bool {
	return m.Kind == rbacv1.UserKind && m.Name == user.Name || m.Kind == rbacv1.GroupKind && slices.Contains(user.Groups, m.Name)
}

// governs reports whether user has the verb govern in the namespace of a department; in all,
// if it is empty.
func (s *Service) governs(ctx context.Context, user governance.User, namespace string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "govern", Group: v1alpha1.GroupVersion.Group, Resource: "departments", Namespace: namespace})
}

// restricted reports whether the admission policy kuota-departments limits user to the
// departments that they govern.
func (s *Service) restricted(ctx context.Context, user governance.User) (bool, error) {
	if user.Local {
		return false, nil
	}
	restricted, err := s.permits(ctx, user, "only-in-departments")
	if err != nil || !restricted {
		return false, err
	}
	all, err := s.governs(ctx, user, "")
	return !all, err
}
