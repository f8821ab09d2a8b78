package departments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service reads, reviews, creates, changes and deletes departments.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Naming  desired.Naming
	// Capacity has the usage of all teams.
	Capacity *capacity.Service
}

// State is the departments as one reader may see them at one moment. It shares memory with
// the cache and is read-only.
type State struct {
	Departments []v1alpha1.Department // that the reader may see anything of, by name
	Tree        quota.Departments     // all departments and teams, visible or not
	Types       catalog.Catalog
	Policy      *v1alpha1.ClusterPolicy // nil for none
	Governed    access.Governed         // departments whose teams and departments the reader may change

	all  bool
	full sets.Set[string] // departments of which the reader sees everything
}

// NewState returns the state of a reader who sees all of these departments, and governs some.
func NewState(departments []v1alpha1.Department, teams []*v1alpha1.ComputeAllocation, types catalog.Catalog, governed access.Governed) State {
	return State{Departments: departments, Tree: quota.NewDepartments(departments, teams, types), Types: types, Governed: governed, all: true}
}

// Any reports whether the reader sees a department or may create one.
func (s State) Any() bool { return len(s.Departments) > 0 || !s.Governed.Empty() }

// Sees reports whether the reader sees everything of a department: its members and what is
// below it. Of others in Departments, they see the name and the quota.
func (s State) Sees(name string) bool { return s.all || s.full.Has(name) }

// MayChange reports whether the reader may change and delete a department: they govern its
// parent. The API server decides again.
func (s State) MayChange(name string) bool {
	d := s.Tree.Find(name)
	return d != nil && s.Governed.Includes(d.Spec.Parent)
}

// Find returns a department that the reader may see; nil for others.
func (s State) Find(name string) *v1alpha1.Department {
	for i := range s.Departments {
		if s.Departments[i].Name == name {
			return &s.Departments[i]
		}
	}
	return nil
}

// DepartmentOf returns the department of a team; empty for none.
func (s State) DepartmentOf(team string) string { return s.Tree.DepartmentOf(team) }

// Has reports whether a team is in a department or below it; every team is in the empty one.
func (s State) Has(department, team string) bool {
	return department == "" || s.Tree.Includes(department, s.Tree.DepartmentOf(team))
}

// State returns the departments that user may see. Members of a department see everything
// below it, as readers of all teams do. Members of a team see the name and the quota of its
// departments.
func (s *Service) State(ctx context.Context, user governance.User) (State, error) {
	scope, err := s.Access.Scope(ctx, user)
	if err != nil && governance.KindOf(err) != governance.Outside {
		return State{}, err
	}
	state, err := s.whole(ctx)
	if err != nil {
		return State{}, err
	}
	// A member of teams only is not asked about: see docs/decisions/0008.
	if scope.All || scope.Empty() || slices.ContainsFunc(state.Departments, func(d v1alpha1.Department) bool { return scope.IncludesDepartment(d.Name) }) {
		if state.Governed, err = s.Access.Governed(ctx, user); err != nil {
			return State{}, err
		}
	}
	if scope.All || state.Governed.All {
		return state, nil
	}
	return state.within(scope), nil
}

// Again returns the departments as they are now, for all readers who see what the reader of
// an earlier state saw: those with the same Key.
func (s *Service) Again(ctx context.Context, earlier State) (State, error) {
	state, err := s.whole(ctx)
	if err != nil || earlier.all {
		state.Governed = earlier.Governed
		return state, err
	}
	state.all, state.full, state.Governed = false, earlier.full, earlier.Governed
	state.Departments = slices.DeleteFunc(state.Departments, func(d v1alpha1.Department) bool { return earlier.Find(d.Name) == nil })
	return state, nil
}

// Key returns a string that is equal for readers who see and govern the same departments.
func (s State) Key() string {
	names := make([]string, len(s.Departments))
	for i := range s.Departments {
		names[i] = s.Departments[i].Name
	}
	return fmt.Sprint(s.all, names, sets.List(s.full), s.Governed.All, s.Governed.Departments())
}

// TeamsBelow returns the teams in a department and below it, for filters of lists that have
// only what their reader sees.
func (s *Service) TeamsBelow(ctx context.Context, department string) ([]string, error) {
	state, err := s.whole(ctx)
	return state.Tree.TeamsBelow(department), err
}

// Read reads the tree of departments and teams from the caches, without quotas.
func Read(ctx context.Context, reader client.Reader) (quota.Departments, error) {
	teams, err := cluster.All[v1alpha1.ComputeAllocation](ctx, reader)
	if err != nil {
		return quota.Departments{}, err
	}
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return quota.Departments{}, err
	}
	return quota.NewDepartments(list.Items, teams, catalog.Catalog{}), nil
}

// whole returns all departments, as a reader sees them who sees all and changes none.
func (s *Service) whole(ctx context.Context) (State, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return State{}, err
	}
	var list v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &list); err != nil {
		return State{}, err
	}
	teams, err := cluster.All[v1alpha1.ComputeAllocation](ctx, reader)
	if err != nil {
		return State{}, err
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return State{}, err
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return State{}, err
	}
	cluster.SortByName(list.Items)
	slices.SortFunc(teams, func(a, b *v1alpha1.ComputeAllocation) int { return strings.Compare(a.Name, b.Name) })
	state := NewState(list.Items, teams, types, access.Governed{})
	state.Policy = policy
	return state, nil
}

// within returns what a reader sees who does not see all teams.
func (s State) within(scope access.Scope) State {
	s.all, s.full = false, sets.New(s.Governed.Departments()...)
	known := sets.New[string]()
	for i := range s.Departments {
		if name := s.Departments[i].Name; scope.IncludesDepartment(name) {
			s.full.Insert(name)
		}
	}
	for name := range s.full {
		known.Insert(s.Tree.Chain(name)...)
	}
	for _, d := range s.Departments {
		if slices.ContainsFunc(s.Tree.Teams(d.Name), func(a *v1alpha1.ComputeAllocation) bool { return scope.Includes(a.Status.Namespace) }) {
			known.Insert(s.Tree.Chain(d.Name)...)
		}
	}
	s.Departments = slices.DeleteFunc(slices.Clone(s.Departments), func(d v1alpha1.Department) bool { return !known.Has(d.Name) })
	return s
}

// Unknown returns the error for a department that does not exist or that the reader does not
// see.
func Unknown(name string) error {
	return &governance.Error{Kind: governance.NotFound, Op: "find department", Message: fmt.Sprintf("Department %s does not exist, or you do not have access.", name)}
}
