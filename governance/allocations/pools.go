package allocations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// PoolCreator creates pools of the cluster policy; policy.Service implements it.
type PoolCreator interface {
	// CheckPools returns what prevents creating these pools, with paths such as
	// spec.pools[0].name.
	CheckPools(ctx context.Context, pools []v1alpha1.Pool) ([]governance.FieldError, error)
	// AddPools adds pools to the cluster policy as user. It returns
	// governance.Invalid if there is no policy. Pools that exist are left alone.
	AddPools(ctx context.Context, user governance.User, pools []v1alpha1.Pool) error
}

// checkPools returns the errors of the pools that are created with an
// allocation, with the paths of the rows that name them.
func (s *Service) checkPools(ctx context.Context, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) ([]governance.FieldError, error) {
	if len(pools) == 0 {
		return nil, nil
	}
	errs, err := s.Pools.CheckPools(ctx, pools)
	return moveToRows(errs, spec, pools), err
}

// addPools creates the pools of an allocation.
func (s *Service) addPools(ctx context.Context, user governance.User, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	if len(pools) == 0 {
		return nil
	}
	return translatePoolErrors(s.Pools.AddPools(ctx, user, pools), spec, pools)
}

// moveToRows moves the errors of pools to the rows that name them.
func moveToRows(errs []governance.FieldError, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) []governance.FieldError {
	moved := slices.Clone(errs)
	for i, w := range moved {
		moved[i].Path = ""
		for n, pool := range pools {
			if strings.HasPrefix(w.Path, fmt.Sprintf("spec.pools[%d]", n)) {
				moved[i].Path = poolPath(spec, pool.Name)
				moved[i].Message = fmt.Sprintf("pool %s: %s", pool.Name, w.Message)
			}
		}
	}
	return moved
}

// poolPath returns the path of the row that names a pool; empty for none.
func poolPath(spec *v1alpha1.ComputeAllocationSpec, pool string) string {
	for i, row := range spec.Quota {
		if row.Pool == pool {
			return fmt.Sprintf("spec.quota[%d].pool", i)
		}
	}
	for i, row := range spec.Sharing.BorrowLimits {
		if row.Pool == pool {
			return fmt.Sprintf("spec.sharing.borrowLimits[%d].pool", i)
		}
	}
	return ""
}

// translatePoolErrors applies moveToRows to the fields of an error.
func translatePoolErrors(err error, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Invalid {
		moved := *ours
		moved.Fields = moveToRows(ours.Fields, spec, pools)
		return &moved
	}
	return err
}
