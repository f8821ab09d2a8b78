package allocations

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service reads, reviews, creates, changes and deletes compute allocations.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Naming  desired.Naming
	// Pools creates pools together with an allocation.
	Pools PoolCreator
}

// State is the allocations and the catalog as one reader may see them at one
// moment.
type State struct {
	Allocations []v1alpha1.ComputeAllocation // that the reader may see, by name
	Types       catalog.Catalog
	Allocated   quota.PoolResources // by all allocations, visible or not
	Others      quota.PoolResources // by the allocations that the reader may not see
	All         bool                // whether the reader may see every team, also future ones
	Departments quota.Departments   // with all teams
	Governed    access.Governed     // those whose teams an admin of departments may see and change
	// Policy is nil if there is none. It shares memory with the cache and is
	// read-only.
	Policy *v1alpha1.ClusterPolicy

	all         []v1alpha1.ComputeAllocation // visible or not
	departments []v1alpha1.Department        // the same
}

// Ready returns an error until the cluster can be read and all caches have synced.
func (s *Service) Ready() error {
	if _, err := s.Cluster.Reader(); err != nil {
		return err
	}
	return s.Cluster.AllSynced()
}

// MayCreate reports whether the pages offer user to create an allocation, if only in a
// department. The API server checks the permission again.
func (s *Service) MayCreate(ctx context.Context, user governance.User) (bool, error) {
	governed, err := s.Access.Governed(ctx, user)
	return !governed.Empty() && err == nil, err
}

// State returns the allocations that user may see, and the catalog, from the
// cache. They share memory with it and are read-only.
func (s *Service) State(ctx context.Context, user governance.User) (State, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return State{}, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return State{}, err
	}
	var list v1alpha1.ComputeAllocationList
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &list, &departments); err != nil {
		return State{}, err
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return State{}, err
	}
	cluster.SortByName(list.Items)
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return State{}, err
	}
	state := State{all: list.Items, departments: departments.Items, Allocations: list.Items, Types: types, Allocated: quota.Allocated(list.Items, types, ""), Departments: quota.NewDepartments(departments.Items, cluster.Pointers(list.Items), types), Policy: policy}
	if state.All = scope.All; state.All {
		return state, nil
	}
	if state.Governed, err = s.Access.Delegated(ctx, user); err != nil {
		return State{}, err
	}
	var others []v1alpha1.ComputeAllocation
	state.Allocations = nil
	for _, allocation := range list.Items {
		if scope.Includes(allocation.Status.Namespace) || state.Governed.Includes(allocation.Spec.Department) {
			state.Allocations = append(state.Allocations, allocation)
		} else {
			others = append(others, allocation)
		}
	}
	state.Others = quota.Allocated(others, types, "")
	if len(state.Allocations) > 0 {
		return state, nil
	}
	// Sums over all teams are for members of a team and for users who may create
	// allocations.
	may, err := s.MayCreate(ctx, user)
	if err == nil && !may {
		err = access.OutsideError()
	}
	return state, err
}

// May returns the permissions of user on allocations. Pages that members see too
// call it only if State.All is set: see docs/decisions/0008.
func (s *Service) May(ctx context.Context, user governance.User) (Permissions, error) {
	var may Permissions
	group, ctx := errgroup.WithContext(ctx)
	check := func(permission *bool, allowed func(context.Context, governance.User) (bool, error)) {
		group.Go(func() (err error) {
			*permission, err = allowed(ctx, user)
			return err
		})
	}
	check(&may.Create, s.Access.MayCreateAllocations)
	check(&may.Update, s.Access.MayUpdateAllocations)
	check(&may.Delete, s.Access.MayDeleteAllocations)
	group.Go(func() (err error) {
		may.Departments, err = s.Access.Delegated(ctx, user)
		return err
	})
	if err := group.Wait(); err != nil {
		return Permissions{}, err
	}
	return may, nil
}

// Find returns one team's allocation from the cache, or governance.NotFound if
// user may not see it. Users who see the team's namespace may see it, and so may
// users who can create or update every allocation, or govern the team's department.
func (s *Service) Find(ctx context.Context, user governance.User, team string) (v1alpha1.ComputeAllocation, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return v1alpha1.ComputeAllocation{}, err
	}
	var allocation v1alpha1.ComputeAllocation
	err = cluster.Translate("find allocation", reader.Get(ctx, client.ObjectKey{Name: team}, &allocation))
	missing := governance.KindOf(err) == governance.NotFound
	if err != nil && !missing {
		return v1alpha1.ComputeAllocation{}, err
	}
	scope, err := s.Access.Scope(ctx, user)
	outside := governance.KindOf(err) == governance.Outside
	if err != nil && !outside {
		return v1alpha1.ComputeAllocation{}, err
	}
	departments, err := s.Access.Delegated(ctx, user)
	if err != nil {
		return v1alpha1.ComputeAllocation{}, err
	}
	// Missing and invisible allocations take the same requests, so that timing
	// does not reveal which it is.
	if !scope.Includes(allocation.Status.Namespace) && !scope.All && !departments.Includes(allocation.Spec.Department) {
		may, askErr := s.May(ctx, user)
		switch {
		case askErr != nil:
			return v1alpha1.ComputeAllocation{}, askErr
		case may.Create || may.Update:
		case outside:
			return v1alpha1.ComputeAllocation{}, access.OutsideError()
		default:
			missing = true
		}
	}
	if missing {
		return v1alpha1.ComputeAllocation{}, unknownTeam(team)
	}
	return allocation, nil
}

func unknownTeam(team string) error {
	return &governance.Error{Kind: governance.NotFound, Op: "find allocation", Message: fmt.Sprintf("Team %s does not exist, or you do not have access.", team)}
}
