package access

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// reviewsAtOnce bounds how many reviews one page sends at a time.
const reviewsAtOnce = 16

// Scope is the set of team namespaces that a user can see, and of departments of which they
// see everything.
type Scope struct {
	All         bool // every namespace and department, also future ones
	namespaces  sets.Set[string]
	departments sets.Set[string]
}

// ScopeOf returns a scope of these namespaces.
func ScopeOf(namespaces ...string) Scope { return Scope{namespaces: sets.New(namespaces...)} }

// Includes reports whether a namespace is in the scope.
func (s Scope) Includes(namespace string) bool {
	return namespace != "" && (s.All || s.namespaces.Has(namespace))
}

// WithDepartments returns the scope with these departments.
func (s Scope) WithDepartments(names ...string) Scope {
	s.departments = sets.New(names...)
	return s
}

// IncludesDepartment reports whether everything of a department is in the scope.
func (s Scope) IncludesDepartment(name string) bool {
	return name != "" && (s.All || s.departments.Has(name))
}

// Namespaces returns the namespaces of the scope, sorted; empty if All is set.
func (s Scope) Namespaces() []string { return sets.List(s.namespaces) }

// Key returns a string that is equal for equal scopes.
func (s Scope) Key() string {
	if s.All {
		return "*"
	}
	return strings.Join(s.Namespaces(), " ") + "/" + strings.Join(sets.List(s.departments), " ")
}

// Empty reports whether the scope includes no namespace.
func (s Scope) Empty() bool { return !s.All && len(s.namespaces) == 0 }

// Service answers what users can see and do. It fails closed: an error is never
// treated as allowed.
type Service struct {
	Cluster *cluster.Cluster

	decisions reviewCache[bool]
}

// Scope returns the namespaces whose Workloads user can list. It first sends
// one review for the whole cluster. If that is denied, it sends one for each
// namespace in which a RoleBinding or an allocation names the user or one of
// their groups. It returns governance.Outside if the scope is empty and the
// user cannot create allocations either, not even in a department.
func (s *Service) Scope(ctx context.Context, user governance.User) (Scope, error) {
	if user.Local {
		return Scope{All: true}, nil
	}
	scope, err := s.scope(ctx, user)
	if err != nil || !scope.Empty() {
		return scope, err
	}
	if founder, err := s.MayCreateAllocations(ctx, user); err != nil || founder {
		return scope, err
	}
	if delegated, err := s.Delegated(ctx, user); err != nil || !delegated.Empty() {
		return scope, err
	}
	return scope, OutsideError()
}

// OutsideError returns the error for a user who can see no team.
func OutsideError() error {
	return &governance.Error{Kind: governance.Outside, Op: "look", Message: "You are not a member of any team. Ask a cluster admin to add you to your team."}
}

func (s *Service) scope(ctx context.Context, user governance.User) (Scope, error) {
	all, err := s.CanSee(ctx, user, "")
	if err != nil || all {
		return Scope{All: all}, err
	}
	candidates, err := s.candidates(ctx, user)
	if err != nil {
		return Scope{}, err
	}
	of, err := s.memberOf(ctx, user)
	if err != nil {
		return Scope{}, err
	}
	allowed := make([]bool, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, namespace := range candidates {
		group.Go(func() (err error) {
			allowed[i], err = s.CanSee(ctx, user, namespace)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Scope{}, err
	}
	scope := ScopeOf()
	for i, namespace := range candidates {
		if allowed[i] {
			scope.namespaces.Insert(namespace)
		}
	}
	return scope.WithDepartments(of...), nil
}

// CanSee reports whether user can list the Workloads of a namespace; of all, if
// it is empty.
func (s *Service) CanSee(ctx context.Context, user governance.User, namespace string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "list", Group: "kueue.x-k8s.io", Resource: "workloads", Namespace: namespace})
}

// MayCreateAllocations reports whether user can create allocations, in any department and in
// none. It does not of admins of departments: see Delegated. Pages use it to show controls;
// the API server authorizes the request again.
func (s *Service) MayCreateAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "create")
}

// MayUpdateAllocations reports whether user can update every allocation.
func (s *Service) MayUpdateAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "update")
}

// MayDeleteAllocations reports whether user can delete every allocation.
func (s *Service) MayDeleteAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "delete")
}

// mayAllocations reports whether user has a permission on every allocation.
func (s *Service) mayAllocations(ctx context.Context, user governance.User, verb string) (bool, error) {
	may, err := s.permits(ctx, user, verb)
	if err != nil || !may {
		return false, err
	}
	restricted, err := s.restricted(ctx, user)
	return !restricted && err == nil, err
}

// permits reports whether RBAC grants user a permission on allocations, which the admission
// policy kuota-departments may limit.
func (s *Service) permits(ctx context.Context, user governance.User, verb string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "computeallocations"})
}

// MayEditPolicy reports whether user can update the cluster policy.
func (s *Service) MayEditPolicy(ctx context.Context, user governance.User) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "update", Group: v1alpha1.GroupVersion.Group, Resource: "clusterpolicies"})
}

// Require returns governance.Forbidden if allowed denies the operation.
func Require(ctx context.Context, user governance.User, allowed func(context.Context, governance.User) (bool, error), op string) error {
	may, err := allowed(ctx, user)
	if err == nil && !may {
		err = Forbidden(op)
	}
	return err
}

// Forbidden returns the error of an operation that the user may not do.
func Forbidden(op string) error {
	return &governance.Error{Kind: governance.Forbidden, Op: op, Message: "You do not have permission to do this. Ask a cluster admin."}
}

func (s *Service) may(ctx context.Context, user governance.User, what authorizationv1.ResourceAttributes) (bool, error) {
	if user.Local {
		return true, nil
	}
	return s.decisions.get(ctx, keyOf(user, what), maxDecisions, func(ctx context.Context) (bool, error) { return s.Cluster.Allowed(ctx, user, what) })
}

// candidates returns the namespaces with a LocalQueue in which a RoleBinding or
// allocation names the user or one of their groups, sorted.
func (s *Service) candidates(ctx context.Context, user governance.User) ([]string, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	bindings, err := cluster.All[rbacv1.RoleBinding](ctx, reader)
	if err != nil {
		return nil, err
	}
	allocations, err := cluster.All[v1alpha1.ComputeAllocation](ctx, reader)
	if err != nil {
		return nil, err
	}
	queues, err := cluster.All[kueue.LocalQueue](ctx, reader)
	if err != nil {
		return nil, err
	}
	// Without a LocalQueue there are no tasks to see, so no review is sent.
	queued := sets.New[string]()
	for _, q := range queues {
		queued.Insert(q.Namespace)
	}
	groups := sets.New(user.Groups...).Insert("system:authenticated")
	names := func(kind, name string) bool {
		return kind == rbacv1.UserKind && name == user.Name || kind == rbacv1.GroupKind && groups.Has(name)
	}
	bound := func(subject rbacv1.Subject) bool {
		if subject.Kind == rbacv1.ServiceAccountKind {
			return user.ServiceAccount && user.Name == "system:serviceaccount:"+subject.Namespace+":"+subject.Name
		}
		return names(subject.Kind, subject.Name)
	}
	found := sets.New[string]()
	for _, b := range bindings {
		if queued.Has(b.Namespace) && slices.ContainsFunc(b.Subjects, bound) {
			found.Insert(b.Namespace)
		}
	}
	for _, a := range allocations {
		if slices.ContainsFunc(a.Spec.Members, func(member v1alpha1.Member) bool { return names(string(member.Kind), member.Name) }) {
			found.Insert(a.Status.Namespace)
		}
	}
	return sets.List(found.Delete("")), nil
}

// maxTokens bounds the memory of the cache of tokens.
const maxTokens = 10_000

// Tokens finds the service accounts of bearer tokens. It caches each answer for
// decisionTTL, so that a program that sends many requests costs one review, and a token
// that is revoked ends within that. The cache has hashes of tokens only.
type Tokens struct {
	Cluster *cluster.Cluster
	Writers []string // user names of the service accounts that an admin allowed to write

	accounts reviewCache[account]
}

type account struct {
	user  governance.User
	known bool
}

// ServiceAccount returns the service account of a token; known is false for every other
// token. Concurrent calls for one token share a review.
func (t *Tokens) ServiceAccount(ctx context.Context, token string) (user governance.User, known bool, err error) {
	found, err := t.accounts.get(ctx, sha256.Sum256([]byte(token)), maxTokens, func(ctx context.Context) (found account, err error) {
		found.user, found.known, err = t.Cluster.ServiceAccount(ctx, token)
		found.user.Writes = found.known && slices.Contains(t.Writers, found.user.Name)
		return found, err
	})
	return found.user, found.known, err
}
