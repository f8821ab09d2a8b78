package policy

import (
	"cmp"
	"context"
	"errors"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Save writes the policy as user: as a new policy if it has no resourceVersion,
// else over the version with it. It returns governance.Conflict if someone saved
// in between. A repeated save of the same spec succeeds, so a save whose
// response was lost can be repeated. The annotations AnnotationDropClasses and
// AnnotationReason are saved too; all other metadata is kept.
func (s *Service) Save(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	state, err := s.read(ctx)
	if err != nil {
		return err
	}
	if errs := Validate(policy, state); len(errs) > 0 {
		return invalid("Some values are not valid. Correct the marked fields.", errs)
	}
	action := audit.Update
	if policy.ResourceVersion == "" {
		action = audit.Create
	}
	before, after, err := s.write(ctx, user, policy, nil)
	change := audit.Change{User: user, Action: action, Object: policy, New: policy.Spec, Err: err}
	if before != nil {
		change.Old = before.Spec
	}
	switch governance.KindOf(err) {
	case governance.Forbidden, governance.Unavailable:
		s.Audit.Record(change)
	}
	if err == nil && (before == nil || before.Generation != after.Generation) {
		change.Object, change.New = after, after.Spec
		s.Audit.Record(change)
		s.Cluster.WaitForCache(ctx, after)
	}
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Your input is kept: save again in a moment, and it is saved only once."
	}
	return err
}

// TryAgain makes Kuota change at once what others changed back in Kueue's configuration.
// It returns governance.Forbidden for a user who may not change the policy.
func (s *Service) TryAgain(ctx context.Context, user governance.User) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	err = rejection.Translate("try again", retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := writer.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationTryAgain, time.Now().UTC().Format(time.RFC3339))
		return writer.Update(ctx, policy)
	}))
	if kind := governance.KindOf(err); err == nil || kind == governance.Forbidden || kind == governance.Unavailable {
		s.Audit.Record(audit.Change{User: user, Action: audit.TryAgain, Object: policy, Err: err})
	}
	return err
}

// write creates or updates the policy as user, or as a dry run with
// []string{metav1.DryRunAll}. before is nil for a new policy.
func (s *Service) write(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy, dryRun []string) (before, after *v1alpha1.ClusterPolicy, err error) {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return nil, nil, err
	}
	after = &v1alpha1.ClusterPolicy{}
	after.Name = v1alpha1.ClusterPolicyName
	set := func() error {
		if after.DeletionTimestamp != nil {
			return &governance.Error{Kind: governance.Conflict, Op: "update policy", Message: "The cluster policy is being deleted and cannot be changed. Create it again once it is deleted."}
		}
		if err := gitops.CheckUnmanaged(after, "update policy", "The cluster policy"); err != nil {
			return err
		}
		cohort := after.Spec.CohortName // which cannot change, and which no form has
		after.Spec = *policy.Spec.DeepCopy()
		after.Spec.CohortName = cmp.Or(after.Spec.CohortName, cohort)
		v1alpha1.SetReason(after, policy.Annotations[v1alpha1.AnnotationReason])
		delete(after.Annotations, v1alpha1.AnnotationDropClasses)
		if drop := policy.Annotations[v1alpha1.AnnotationDropClasses]; drop != "" {
			if after.Annotations == nil {
				after.Annotations = map[string]string{}
			}
			after.Annotations[v1alpha1.AnnotationDropClasses] = drop
		}
		return nil
	}
	if policy.ResourceVersion == "" {
		_ = set()
		err := rejection.Translate("create policy", writer.Create(ctx, after, &client.CreateOptions{DryRun: dryRun}))
		if governance.KindOf(err) != governance.Exists {
			return nil, after, err
		}
		// It was created concurrently, or the response was lost: the same spec succeeds.
	}
	was, err := s.Cluster.UpdateSpec(ctx, writer, after, policy.ResourceVersion, set, &client.UpdateOptions{DryRun: dryRun})
	before, _ = was.(*v1alpha1.ClusterPolicy)
	return before, after, rejection.Translate("update policy", err)
}

func invalid(message string, errs []governance.FieldError) error {
	return &governance.Error{Kind: governance.Invalid, Op: "check policy", Message: message, Fields: errs}
}
