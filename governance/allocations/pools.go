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

// PoolKeeper makes pools of the cluster policy. governance/policy is one.
type PoolCreator interface {
	// CheckPools says what is wrong with making pools, with paths as in
	// spec.pools[0].name, of the pools given.
	CheckPools(ctx context.Context, pools []v1alpha1.Pool) ([]governance.FieldError, error)
	// AddPools adds pools to the cluster policy as user; without one it is
	// refused. Pools that are there already are left alone.
	AddPools(ctx context.Context, user governance.User, pools []v1alpha1.Pool) error
}

// checkPools tells what is wrong with the pools that an allocation needs made,
// beside the rows that name them.
func (s *Service) checkPools(ctx context.Context, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) ([]governance.FieldError, error) {
	if len(pools) == 0 {
		return nil, nil
	}
	wrong, err := s.Pools.CheckPools(ctx, pools)
	return moveToRows(wrong, spec, pools), err
}

// addPools makes the pools that an allocation needs.
func (s *Service) addPools(ctx context.Context, user governance.User, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	if len(pools) == 0 {
		return nil
	}
	return translatePoolErrors(s.Pools.AddPools(ctx, user, pools), spec, pools)
}

// besideRows moves what is wrong with a pool to the row that names it.
func moveToRows(wrong []governance.FieldError, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) []governance.FieldError {
	moved := slices.Clone(wrong)
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

// poolPath is the row that names a pool; empty for none.
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

// inForm moves what is wrong with pools to the rows that name them.
func translatePoolErrors(err error, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Invalid {
		moved := *ours
		moved.Fields = moveToRows(ours.Fields, spec, pools)
		return &moved
	}
	return err
}
