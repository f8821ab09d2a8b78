package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// kueueUnavailable is the text of a review while Kueue does not answer.
const kueueUnavailable = "Kueue does not answer, so its changes cannot be previewed. You can save; the policy takes effect when Kueue is back."

// Review returns what saving a policy would do, and changes nothing. A policy
// without a resourceVersion is new. It returns governance.Invalid for invalid
// input and governance.Conflict if the policy was saved in between.
func (s *Service) Review(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (Review, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit) // which leaves time for the page
	defer cancel()
	if err := access.Require(ctx, user, s.Access.MayEditPolicy, "review policy"); err != nil {
		return Review{}, err
	}
	state, err := s.read(ctx)
	if err != nil {
		return Review{}, err
	}
	if errs := Validate(policy, state); len(errs) > 0 {
		return Review{}, invalid("Some values are not valid. Correct the marked fields.", errs)
	}
	before, after, err := s.write(ctx, user, policy, []string{metav1.DryRunAll})
	if err != nil {
		return Review{}, err
	}
	old := v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.FirstComeFirstServe}
	review := Review{Settings: describe.PolicySettings(nil, &after.Spec)}
	if before != nil {
		old = before.Spec
		review.Settings = describe.PolicySettings(&old, &after.Spec)
	}
	review.Settings = append(review.Settings, describe.TimeLimitChanges(old.PriorityClasses, after.Spec.PriorityClasses)...)
	tasks, err := s.tasksByClass(ctx, state.Policy)
	if err != nil {
		return Review{}, err
	}
	review.Classes = classChanges(old.PriorityClasses, after.Spec.PriorityClasses, tasks)
	review.Pools = state.poolChanges(after.Spec.Pools)
	secrets, err := s.SecretNames(ctx, user)
	if err != nil {
		secrets = nil // an API server that does not answer here is no reason against the policy
	}
	known := Warnings(&old, state, secrets)
	review.Warnings = slices.DeleteFunc(Warnings(&after.Spec, state, secrets), func(w governance.FieldError) bool {
		return slices.ContainsFunc(known, func(k governance.FieldError) bool { return k.Message == w.Message })
	})
	review.Reranks = before != nil && old.TaskPrioritization != after.Spec.TaskPrioritization
	if err := s.dryRunClasses(ctx, after, review.Classes, &review); err != nil {
		return Review{}, err
	}
	if after.Spec.NumericPriorities != old.NumericPriorities { // no dry runs: they are a hundred, and alike
		numbers := change.Object{Kind: "WorkloadPriorityClass", Name: fmt.Sprintf("%s to %s", desired.NumberClass(0), desired.NumberClass(desired.MaxNumber)), Action: change.Created}
		if !after.Spec.NumericPriorities {
			numbers.Name, numbers.Action = numbers.Name+", except those of unfinished tasks", change.Removed
		}
		review.Objects = append(review.Objects, numbers)
	}
	if after.Spec.IdleCompute.ShareUnallocated != old.IdleCompute.ShareUnallocated {
		cohort := change.Object{Kind: "Cohort", Name: s.Naming.Under(after).Cohort, Action: change.Removed}
		if after.Spec.IdleCompute.ShareUnallocated {
			cohort.Action = change.Created
		}
		review.Objects = append(review.Objects, cohort)
	}
	if s.Kueue != nil {
		if review.Restart, review.Patch, err = s.Kueue(ctx, &after.Spec); err != nil {
			review.Unknown = strings.TrimSpace(review.Unknown + " Changes of Kueue's configuration cannot be previewed: " + sentence(err))
		}
	}
	return review, nil
}

func sentence(err error) string {
	if ours, ok := cluster.Translate("read Kueue's configuration", err).(*governance.Error); ok { //nolint:errorlint // Translate returns ours
		return ours.Message
	}
	return err.Error()
}

// dryRunClasses applies the objects of the classes as the console, as dry runs.
func (s *Service) dryRunClasses(ctx context.Context, policy *v1alpha1.ClusterPolicy, changes []ClassChange, review *Review) error {
	var errs []governance.FieldError
	for i, class := range policy.Spec.PriorityClasses {
		name := desired.PriorityClassName(class.Name)
		at := fmt.Sprintf("spec.priorityClasses[%d].name", i)
		live, wanted := &kueueapi.WorkloadPriorityClass{}, desired.PriorityClass(class, policy.Spec.TaskPrioritization)
		result, err := managed.DryRun(ctx, s.Cluster, managed.DryRunInput{
			Object: managed.NewObject("WorkloadPriorityClass", live, wanted, wanted.ObjectMetaApplyConfiguration),
		})
		if err != nil {
			return err
		}
		if live.Name != "" && !managed.ByKuota(live) && !managed.Describes(wanted, live) {
			errs = append(errs, governance.FieldError{Path: at, Message: fmt.Sprintf("WorkloadPriorityClass %s exists and is not managed by Kuota; delete it, or choose another name", name)})
			continue
		}
		for _, w := range result.Rejected {
			errs = append(errs, governance.FieldError{Path: at, Message: w.Message})
		}
		if result.WebhookUnavailable {
			review.Unknown = kueueUnavailable
		}
		if changed := result.Change; changed != nil {
			review.Objects = append(review.Objects, *changed)
			review.Reranks = review.Reranks || slices.ContainsFunc(changed.Fields, func(f change.Field) bool { return f.Path == "value" && f.Before != "" })
		}
	}
	if len(errs) > 0 {
		return invalid("Objects in the cluster conflict with this. See the marked fields.", errs)
	}
	confirmed := strings.Split(policy.Annotations[v1alpha1.AnnotationDropClasses], ",")
	for _, class := range changes {
		if class.After == nil && (!class.InUse() || slices.Contains(confirmed, class.Name)) {
			review.Objects = append(review.Objects, change.Object{Kind: "WorkloadPriorityClass", Name: desired.PriorityClassName(class.Name), Action: change.Removed})
		}
	}
	return nil
}
