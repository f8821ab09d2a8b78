package allocations

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wanted are the objects of an allocation, in the catalog with the pools that
// are created with it.
type wanted struct {
	types   catalog.Catalog
	objects desired.Objects
}

// build returns the objects of an allocation under a state, or governance.Invalid with all its
// errors.
func (s *Service) build(ctx context.Context, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (wanted, error) {
	types, saved := state.Types.With(pools...), state.find(allocation.Name)
	errs, err := s.checkPools(ctx, &allocation.Spec, pools)
	if err != nil {
		return wanted{}, err
	}
	var before client.Object
	if saved != nil && allocation.ResourceVersion != "" {
		before = saved
	}
	errs = append(errs, schema.ComputeAllocation.Validate(allocation, before)...)
	errs = append(errs, effective.Problems(&allocation.Spec, time.Now())...)
	errs = append(errs, quota.CheckWindows(&allocation.Spec, types)...)
	objects, more := desired.Build(withActive(allocation, saved), types, s.Naming.Under(state.Policy), desired.RankingOf(state.Policy))
	if errs = append(errs, more...); len(errs) > 0 {
		return wanted{}, invalid("Some values are not valid. Correct the marked fields.", errs)
	}
	return wanted{types, objects}, nil
}

// find returns the saved allocation of a team; nil for none.
func (s State) find(team string) *v1alpha1.ComputeAllocation {
	i := slices.IndexFunc(s.all, func(a v1alpha1.ComputeAllocation) bool { return a.Name == team })
	if i < 0 {
		return nil
	}
	return &s.all[i]
}

// withActive returns an allocation with what is active now. saved is nil for a new one.
func withActive(allocation, saved *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	now := *allocation
	if saved != nil {
		now.Status.Budget = saved.Status.Budget
	}
	in, _ := effective.At(&now, time.Now())
	return effective.Allocation(&now, in)
}

// checkConflicts returns governance.Invalid if existing objects conflict with the
// allocation.
func (w wanted) checkConflicts(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation) error {
	conflicts, err := managed.Conflicts(ctx, reader, allocation, w.objects)
	if err == nil && len(conflicts) > 0 {
		err = invalid("Objects in the cluster conflict with this. See the marked fields.", conflicts)
	}
	return err
}

func invalid(message string, errs []governance.FieldError) error {
	return &governance.Error{Kind: governance.Invalid, Op: "check allocation", Message: message, Fields: errs}
}

// namespaceOf returns the namespace of the tasks of a team.
func (s *Service) namespaceOf(allocation *v1alpha1.ComputeAllocation) string {
	return desired.NamespaceName(allocation, s.Naming)
}
