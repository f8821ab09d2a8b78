package access

import (
	"context"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// reviewsAtOnce bounds how many questions one person's page asks at a time.
const reviewsAtOnce = 16

// Scope is which teams' namespaces somebody may see.
type Scope struct {
	All        bool // every namespace, of now and later
	namespaces map[string]bool
}

// Only is a scope of these namespaces.
func ScopeOf(namespaces ...string) Scope {
	s := Scope{namespaces: map[string]bool{}}
	for _, namespace := range namespaces {
		s.namespaces[namespace] = true
	}
	return s
}

// Sees tells whether a namespace is in the scope.
func (s Scope) Includes(namespace string) bool {
	return namespace != "" && (s.All || s.namespaces[namespace])
}

// Namespaces lists what is in the scope, unless all is.
func (s Scope) Namespaces() []string { return slices.Sorted(maps.Keys(s.namespaces)) }

// Key is the same for scopes in which the same is seen.
func (s Scope) Key() string {
	if s.All {
		return "*"
	}
	return strings.Join(s.Namespaces(), " ")
}

// Empty tells whether nothing is in the scope.
func (s Scope) Empty() bool { return !s.All && len(s.namespaces) == 0 }

// Service answers what people may see and do. It fails closed: what cannot be
// asked is answered with an error, never with yes.
type Service struct {
	Cluster *cluster.Cluster

	decisions decisionCache
}

// Scope returns what user may see: the namespaces whose workloads they may
// list. One review for the whole cluster comes first; otherwise those are
// asked about that name the user or a group of theirs, in a RoleBinding or as
// member of an allocation. Who sees nothing, and may not make the first
// allocation either, gets governance.Outside.
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
	return scope, OutsideError()
}

// Outside is the error of somebody who may see no team.
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
	scope := Scope{namespaces: map[string]bool{}}
	for i, namespace := range candidates {
		if allowed[i] {
			scope.namespaces[namespace] = true
		}
	}
	return scope, nil
}

// Sees tells whether user may list the workloads of a namespace; of all, for
// an empty one.
func (s *Service) CanSee(ctx context.Context, user governance.User, namespace string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "list", Group: "kueue.x-k8s.io", Resource: "workloads", Namespace: namespace})
}

// MayCreateAllocations tells whether user is shown the way to make one. The
// API server decides again when they do.
func (s *Service) MayCreateAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "create")
}

// MayUpdateAllocations tells whether user is shown the way to change them.
func (s *Service) MayUpdateAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "update")
}

// MayDeleteAllocations tells whether user is shown the way to delete them.
func (s *Service) MayDeleteAllocations(ctx context.Context, user governance.User) (bool, error) {
	return s.mayAllocations(ctx, user, "delete")
}

func (s *Service) mayAllocations(ctx context.Context, user governance.User, verb string) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "computeallocations"})
}

// MayEditPolicy tells whether user is shown the way to change the cluster
// policy.
func (s *Service) MayEditPolicy(ctx context.Context, user governance.User) (bool, error) {
	return s.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "update", Group: v1alpha1.GroupVersion.Group, Resource: "clusterpolicies"})
}

func (s *Service) may(ctx context.Context, user governance.User, what authorizationv1.ResourceAttributes) (bool, error) {
	if user.Local {
		return true, nil
	}
	return s.decisions.get(ctx, keyOf(user, what), func(ctx context.Context) (bool, error) { return s.Cluster.Allowed(ctx, user, what) })
}

// candidates are the namespaces with a queue in which something names the user
// or one of their groups, sorted.
func (s *Service) candidates(ctx context.Context, user governance.User) ([]string, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	var bindings rbacv1.RoleBindingList
	if err := reader.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list role bindings", err)
	}
	var allocations v1alpha1.ComputeAllocationList
	if err := reader.List(ctx, &allocations, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list allocations", err)
	}
	var queues kueue.LocalQueueList
	if err := reader.List(ctx, &queues, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list queues", err)
	}
	// Without a queue there are no tasks to see, so nothing is asked about it.
	queued := make(map[string]bool, len(queues.Items))
	for i := range queues.Items {
		queued[queues.Items[i].Namespace] = true
	}
	groups := make(map[string]bool, len(user.Groups)+1)
	for _, group := range user.Groups {
		groups[group] = true
	}
	groups["system:authenticated"] = true
	names := func(kind, name string) bool {
		return kind == rbacv1.UserKind && name == user.Name || kind == rbacv1.GroupKind && groups[name]
	}
	var found []string
	for i := range bindings.Items {
		if queued[bindings.Items[i].Namespace] && slices.ContainsFunc(bindings.Items[i].Subjects, func(subject rbacv1.Subject) bool { return names(subject.Kind, subject.Name) }) {
			found = append(found, bindings.Items[i].Namespace)
		}
	}
	for i := range allocations.Items {
		if slices.ContainsFunc(allocations.Items[i].Spec.Members, func(member v1alpha1.Member) bool { return names(string(member.Kind), member.Name) }) {
			found = append(found, allocations.Items[i].Status.Namespace)
		}
	}
	slices.SortFunc(found, strings.Compare)
	return slices.DeleteFunc(slices.Compact(found), func(namespace string) bool { return namespace == "" }), nil
}
