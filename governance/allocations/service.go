package allocations

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
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
	// Policy is nil if there is none. It shares memory with the cache and is
	// read-only.
	Policy *v1alpha1.ClusterPolicy

	all []v1alpha1.ComputeAllocation // visible or not
}

// Ready returns an error until the cluster can be read and all caches have synced.
func (s *Service) Ready() error {
	if _, err := s.Cluster.Reader(); err != nil {
		return err
	}
	return s.Cluster.AllSynced()
}

// MayCreate reports whether the pages offer user to create an allocation. The
// API server checks the permission again.
func (s *Service) MayCreate(ctx context.Context, user governance.User) (bool, error) {
	return s.Access.MayCreateAllocations(ctx, user)
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
	if err := cluster.List(ctx, reader, &list); err != nil {
		return State{}, err
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return State{}, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ComputeAllocation) int { return strings.Compare(a.Name, b.Name) })
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return State{}, err
	}
	state := State{all: list.Items, Allocations: list.Items, Types: types, Allocated: quota.Allocated(list.Items, types, ""), Policy: policy}
	if state.All = scope.All; state.All {
		return state, nil
	}
	var others []v1alpha1.ComputeAllocation
	state.Allocations = nil
	for _, allocation := range list.Items {
		if scope.Includes(allocation.Status.Namespace) {
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
