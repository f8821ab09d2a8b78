package allocations

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service answers the pages about allocations.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Naming  desired.Naming
	// Pools makes pools together with an allocation.
	Pools PoolCreator
}

// State is the cluster as one person may see it at one moment.
type State struct {
	Allocations []v1alpha1.ComputeAllocation // those that the person may see, by name
	Types       catalog.Catalog
	Allocated   quota.PoolResources // by all allocations, seen or not
	Others      quota.PoolResources // by those that the person may not see
	All         bool                // whether the person may see every team, of now and later
	// Policy is the cluster's; nil while there is none. It is shared with the
	// cache: read only.
	Policy *v1alpha1.ClusterPolicy
}

// Ready is nil once there is something to show.
func (s *Service) Ready() error {
	_, err := s.Cluster.Reader()
	return err
}

// MayCreate tells whether user is shown the way to make an allocation. The API
// server decides again when they do.
func (s *Service) MayCreate(ctx context.Context, user governance.User) (bool, error) {
	return s.Access.MayCreateAllocations(ctx, user)
}

// State reads the allocations that user may see, and the catalog, from the
// cache. The allocations are shared with it: read only.
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
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return State{}, cluster.Translate("list allocations", err)
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
	state := State{Allocations: list.Items, Types: types, Allocated: quota.Allocated(list.Items, types, ""), Policy: policy}
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
	// What all teams have together is for those who are in one, and for whoever
	// may make them.
	may, err := s.MayCreate(ctx, user)
	if err == nil && !may {
		err = access.OutsideError()
	}
	return state, err
}
