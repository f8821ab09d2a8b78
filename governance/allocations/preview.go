package allocations

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kueueSilent is said in a review while Kueue does not answer.
const kueueSilent = "Kueue does not answer, so its changes cannot be previewed. You can save; the allocation takes effect when Kueue is back."

// Review says what saving an allocation would do, and changes nothing. Without
// a resourceVersion it is a new one. pools are those made together with it.
//
// What is wrong comes as governance.Invalid: first what the allocation shows by
// itself, then what stands in the way, then what the API server has against it,
// then what Kueue has against what follows from it, each beside the value that
// it comes from.
func (s *Service) Review(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (Review, error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	allowed, op := s.Access.MayCreateAllocations, "create allocation"
	if allocation.ResourceVersion != "" {
		allowed, op = s.Access.MayUpdateAllocations, "update allocation"
	}
	if err := s.mayChange(ctx, user, allowed, op); err != nil {
		return Review{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return Review{}, err
	}
	wanted, err := s.build(ctx, reader, allocation, pools)
	if err != nil {
		return Review{}, err
	}
	if err := wanted.unobstructed(ctx, reader, allocation); err != nil {
		return Review{}, err
	}
	before, after, err := s.rehearse(ctx, user, allocation)
	if err != nil {
		return Review{}, err
	}
	review := Review{NewPools: slices.Clone(pools)}
	if err := s.tryAll(ctx, allocation, wanted, &review); err != nil {
		return Review{}, err
	}
	if err := s.figures(ctx, user, reader, before, after, wanted, &review); err != nil {
		return Review{}, err
	}
	var old *v1alpha1.ComputeAllocationSpec
	if before != nil {
		old = &before.Spec
	}
	review.Settings = settings(old, &after.Spec)
	return review, nil
}

// rehearse has the API server try the allocation itself, as user. before is nil
// for a new one.
func (s *Service) rehearse(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation) (before, after *v1alpha1.ComputeAllocation, err error) {
	writer, err := s.Cluster.As(user)
	if err != nil {
		return nil, nil, err
	}
	if allocation.ResourceVersion != "" {
		return s.edit(ctx, writer, allocation, client.DryRunAll)
	}
	created := newAllocation(allocation)
	return nil, created, s.make(ctx, writer, created, client.DryRunAll)
}

// tryAll has the API server and Kueue try everything that follows from the
// allocation, as the console.
func (s *Service) tryAll(ctx context.Context, allocation *v1alpha1.ComputeAllocation, wanted wanted, review *Review) error {
	there, err := s.namespaceThere(ctx, *wanted.objects.Namespace.GetName())
	if err != nil {
		return err
	}
	form := formOf(&allocation.Spec, wanted.objects.Quota, wanted.types)
	var wrong []governance.FieldError
	for _, trial := range trials(wanted.objects, there) {
		result, err := Try(ctx, s.Cluster, trial)
		if err != nil {
			return err
		}
		if result.Silent { // and will be about the others
			review.Unknown = kueueSilent
			break
		}
		if result.Change != nil {
			review.Objects = append(review.Objects, *result.Change)
		}
		for _, w := range result.Wrong {
			moved := form.of(trial.Kind, trial.Key.Name, w)
			if moved.Path == "" {
				moved.Message = fmt.Sprintf("%s %s: %s", trial.Kind, trial.Key.Name, moved.Message)
			}
			if !slices.Contains(wrong, moved) {
				wrong = append(wrong, moved)
			}
		}
	}
	gone, err := removals(ctx, s.Cluster.Live(), Unwanted(wanted.objects))
	if err != nil {
		return err
	}
	review.Objects = append(review.Objects, gone...)
	if len(wrong) > 0 {
		return invalid("Kueue or an admission policy of this cluster rejects it.", wrong)
	}
	return nil
}

// namespaceThere tells whether a namespace exists: in one that does not,
// nothing can be tried.
func (s *Service) namespaceThere(ctx context.Context, name string) (bool, error) {
	err := s.Cluster.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	return err == nil, cluster.Translate("read namespace", client.IgnoreNotFound(err))
}
