package policy

import (
	"context"
	"errors"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/gitops"
	"kuota.dev/kuota/governance/rejection"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeLimit is how long a write may take, all in all, before the person is
// told that the cluster does not answer.
const writeLimit = 8 * time.Second

// Save writes the policy as user: a new one where it has no resourceVersion,
// else over the one that was read at it. Who saved in between makes that a
// governance.Conflict. Sent again because its answer was lost, it finds the
// policy as it is wanted, which is success. The annotations
// v1alpha1.AnnotationDropClasses and AnnotationReason are saved with it; other metadata
// is left alone.
func (s *Service) Save(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	state, err := s.read(ctx)
	if err != nil {
		return err
	}
	if wrong := Validate(policy, state); len(wrong) > 0 {
		return invalid("Some values need another look.", wrong)
	}
	action := "update"
	if policy.ResourceVersion == "" {
		action = "create"
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
	}
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Nothing you typed is lost: save again in a moment. It is saved once, even if it arrived already."
	}
	return err
}

// write makes or changes the policy as user; as a rehearsal with
// []string{metav1.DryRunAll}. before is nil for a new one.
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
		if err := gitops.Refuse(after, "update policy", "The cluster policy"); err != nil {
			return err
		}
		after.Spec = *policy.Spec.DeepCopy()
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
		// Somebody was quicker, or an answer was lost: the same policy is success.
	}
	was, err := s.Cluster.UpdateSpec(ctx, writer, after, policy.ResourceVersion, set, &client.UpdateOptions{DryRun: dryRun})
	before, _ = was.(*v1alpha1.ClusterPolicy)
	return before, after, rejection.Translate("update policy", err)
}

func invalid(message string, wrong []governance.FieldError) error {
	return &governance.Error{Kind: governance.Invalid, Op: "check policy", Message: message, Fields: wrong}
}
