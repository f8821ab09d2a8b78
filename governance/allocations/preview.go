package allocations

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/describe"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kueueUnavailable is the text of a review while Kueue does not answer.
const kueueUnavailable = "Kueue does not answer, so its changes cannot be previewed. You can save; the allocation takes effect when Kueue is back."

// Review returns what saving an allocation would do under a state that user read, and changes nothing. An
// allocation without a resourceVersion is new. pools are created with it.
//
// Errors are governance.Invalid, each with the path of the value that causes
// it. They are checked in this order: the allocation itself, conflicts with
// existing objects, the API server's validation of the allocation, and its and
// Kueue's validation of the objects that follow from it.
func (s *Service) Review(ctx context.Context, user governance.User, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (Review, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit) // which leaves time for the page
	defer cancel()
	if err := s.mayReview(ctx, user, allocation); err != nil {
		return Review{}, err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return Review{}, err
	}
	wanted, err := s.build(ctx, state, allocation, pools)
	if err != nil {
		return Review{}, err
	}
	if err := wanted.checkConflicts(ctx, reader, allocation); err != nil {
		return Review{}, err
	}
	before, after, err := s.dryRun(ctx, user, allocation)
	if err != nil {
		return Review{}, err
	}
	review := Review{NewPools: slices.Clone(pools)}
	if err := s.dryRunObjects(ctx, allocation, wanted, &review); err != nil {
		return Review{}, err
	}
	if err := s.figures(ctx, user, reader, state, before, after, wanted, &review); err != nil {
		return Review{}, err
	}
	var old *v1alpha1.ComputeAllocationSpec
	if before != nil {
		old = &before.Spec
	}
	describeChanges := describe.AllocationSettings
	if before != nil && before.Status.Active != nil { // the quota of the spec may not be active
		describeChanges = describe.AllocationChanges
	}
	review.Settings = describeChanges(old, &after.Spec)
	return review, nil
}

// dryRun writes the allocation as user, as a dry run. before is nil for a new
// one.
func (s *Service) dryRun(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation) (before, after *v1alpha1.ComputeAllocation, err error) {
	writer, _, err := s.writer(ctx, user, allocation, "review allocation")
	if err != nil {
		return nil, nil, err
	}
	if allocation.ResourceVersion != "" {
		return s.edit(ctx, writer, allocation, client.DryRunAll)
	}
	created := newAllocation(allocation)
	return nil, created, s.send(ctx, writer, created, client.DryRunAll)
}

// dryRunObjects applies the objects that follow from the allocation as the
// console, as dry runs, and adds what would change to the review.
func (s *Service) dryRunObjects(ctx context.Context, allocation *v1alpha1.ComputeAllocation, wanted wanted, review *Review) error {
	exists, err := s.namespaceExists(ctx, *wanted.objects.Namespace.GetName())
	if err != nil {
		return err
	}
	form := newFieldMap(&allocation.Spec, wanted.objects.Quota, wanted.types)
	var errs []governance.FieldError
	for _, input := range dryRunInputs(wanted.objects, exists, allocation.Spec.Adopted()) {
		if asIs, err := managed.UsesAsIs(ctx, s.Cluster.APIReader(), input.Object, wanted.objects); err != nil {
			return cluster.Translate("read ResourceFlavor", err)
		} else if asIs {
			continue
		}
		result, err := managed.DryRun(ctx, s.Cluster, input)
		if err != nil {
			return err
		}
		if result.WebhookUnavailable { // the remaining dry runs would fail in the same way
			review.Unknown = kueueUnavailable
			break
		}
		if result.Change != nil {
			review.Objects = append(review.Objects, *result.Change)
		}
		for _, w := range result.Rejected {
			moved := form.of(input.Kind, input.Key.Name, w)
			if moved.Path == "" {
				moved.Message = fmt.Sprintf("%s %s: %s", input.Kind, input.Key.Name, moved.Message)
			}
			if !slices.Contains(errs, moved) {
				errs = append(errs, moved)
			}
		}
	}
	shares, err := managed.ShareQueues(ctx, s.Cluster.APIReader(), allocation, s.Naming)
	if err != nil {
		return err
	}
	removed, err := removals(ctx, s.Cluster.APIReader(), managed.Unwanted(wanted.objects, shares))
	if err != nil {
		return err
	}
	review.Objects = append(review.Objects, removed...)
	if len(errs) > 0 {
		return invalid("Kueue or an admission policy of this cluster rejects it.", errs)
	}
	return nil
}

// dryRunInputs returns the namespace of an allocation and its other objects, in
// the order in which they are applied. Objects in a namespace that does not exist
// cannot be applied as a dry run. Fields that Kuota does not set in queues that it has
// adopted stay.
func dryRunInputs(objects desired.Objects, namespaceExists, adopted bool) []managed.DryRunInput {
	namespace := objects.Namespace
	metadata := maps.Clone(namespace.Labels)
	maps.Copy(metadata, namespace.Annotations)
	all := []managed.DryRunInput{{Object: managed.NewObject("Namespace", &corev1.Namespace{}, namespace, namespace.ObjectMetaApplyConfiguration), MetadataOnly: metadata}}
	for _, object := range managed.Objects(objects) {
		all = append(all, managed.DryRunInput{Object: object, SkipApply: object.Key.Namespace != "" && !namespaceExists, Partial: adopted})
	}
	return all
}

// namespaceExists reads from the API server instead of the cache.
func (s *Service) namespaceExists(ctx context.Context, name string) (bool, error) {
	err := s.Cluster.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	return err == nil, cluster.Translate("read namespace", client.IgnoreNotFound(err))
}
