package allocations

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/effective"
	"kuota.dev/kuota/governance/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wanted are the objects of an allocation, in the catalog with the pools that
// are created with it.
type wanted struct {
	types   catalog.Catalog
	objects desired.Objects
}

// build returns the objects of an allocation, or governance.Invalid with all its
// errors.
func (s *Service) build(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (wanted, error) {
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel, pools...)
	if err != nil {
		return wanted{}, err
	}
	errs, err := s.checkPools(ctx, &allocation.Spec, pools)
	if err != nil {
		return wanted{}, err
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return wanted{}, err
	}
	var saved client.Object
	if before := (&v1alpha1.ComputeAllocation{}); allocation.ResourceVersion != "" && reader.Get(ctx, client.ObjectKey{Name: allocation.Name}, before) == nil {
		saved = before
	}
	errs = append(errs, schema.ComputeAllocation.Validate(allocation, saved)...)
	errs = append(errs, effective.Problems(&allocation.Spec, time.Now())...)
	errs = append(errs, quota.CheckWindows(&allocation.Spec, types)...)
	objects, more := desired.Build(inForce(ctx, reader, allocation), types, s.Naming.Under(policy), desired.RankingOf(policy))
	if errs = append(errs, more...); len(errs) > 0 {
		return wanted{}, invalid("Some values are not valid. Correct the marked fields.", errs)
	}
	return wanted{types, objects}, nil
}

// inForce returns an allocation, as it is saved, with what is in force now.
func inForce(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	var saved v1alpha1.ComputeAllocation
	now := *allocation
	if err := reader.Get(ctx, client.ObjectKey{Name: allocation.Name}, &saved); err == nil {
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
