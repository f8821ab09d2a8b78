package allocations

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Permissions are the actions that the pages offer a user. The API server checks
// each action again.
type Permissions struct{ Create, Update, Delete bool }

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
	if err := group.Wait(); err != nil {
		return Permissions{}, err
	}
	return may, nil
}

// Find returns one team's allocation from the cache, or governance.NotFound if
// user may not see it. Users who see the team's namespace may see it, and so may
// users who can create or update allocations.
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
	// Missing and invisible allocations take the same requests, so that timing
	// does not reveal which it is.
	if !scope.Includes(allocation.Status.Namespace) && !scope.All {
		may, askErr := s.May(ctx, user)
		switch {
		case askErr != nil:
			return v1alpha1.ComputeAllocation{}, askErr
		case may.Create || may.Update:
		case outside:
			return v1alpha1.ComputeAllocation{}, err
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
