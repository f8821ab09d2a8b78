package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeConfiguration updates Kueue's configuration and restarts Kueue. If the
// console stops in between, the next reconciliation restarts Kueue, because the
// Deployment lacks the pending annotations.
func (r *KueueReconciler) writeConfiguration(ctx context.Context, policy *v1alpha1.ClusterPolicy, in installation, want kueueconfig.Desired) (kueueResult, error) {
	seen := in.status(want)
	switch stored, err := r.isCurrent(ctx, policy); {
	case err != nil:
		return applyPending(seen), err
	case !stored:
		return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Applying", "the policy changed; Kueue's configuration is being updated"), status: seen, requeueAfter: kueueRolloutInterval}, nil
	}
	differed, changes := want.ConfigChanged || want.ArgsChanged, want.Changes
	if want.ConfigChanged || !in.restartPending() {
		config := in.config.DeepCopy()
		config.Data[configKey] = want.Text
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, configurationAnnotation, newConfigurationID(want, config.ResourceVersion))
		if err := cluster.Update(ctx, r.APIReader, r, &in.config, config, fieldOwner); err != nil {
			return writeFailure(err, in, want)
		}
		in.config = *config
		if differed {
			r.noteAttempt(policy)
			differed = false
		}
		var err error
		if want, err = in.desired(&policy.Spec); err != nil { // only the arguments may be left
			return writeFailure(err, in, want)
		}
	}
	deployment := in.deployment.DeepCopy()
	for name, value := range in.pending() {
		metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, name, value)
	}
	r.annotateAttempts(&in, deployment)
	deployment.Spec.Template.Spec.Containers[in.managerIndex].Args = want.Args
	if err := cluster.Update(ctx, r.APIReader, r, &in.deployment, deployment, fieldOwner); err != nil {
		return writeFailure(err, in, want)
	}
	if differed {
		r.noteAttempt(policy)
	}
	KueueRestarts.Inc()
	ctrl.LoggerFrom(ctx).Info("changed Kueue's configuration or arguments, which restarts Kueue", "changes", changes)
	return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Restarting", "Kueue is restarting to use what changed; running tasks continue"), status: seen, requeueAfter: kueueRolloutInterval}, nil
}

// isCurrent reports whether a policy from the cache has the generation of the
// API server. After a stalled watch it is older, and writing it would revert
// what another console changed since.
func (r *KueueReconciler) isCurrent(ctx context.Context, policy *v1alpha1.ClusterPolicy) (bool, error) {
	var live v1alpha1.ClusterPolicy
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(policy), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == policy.UID && live.Generation == policy.Generation, nil
}

// writeFailure returns the result when Kueue's configuration cannot be updated,
// with the patch to apply by hand if the console has no permission.
func writeFailure(err error, in installation, want kueueconfig.Desired) (kueueResult, error) {
	seen := in.status(want)
	switch {
	case !apierrors.IsForbidden(err):
		return applyPending(seen), err
	case want.Patch == "":
		seen.Patch = in.restartPatch()
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue's configuration matches the policy, but Kueue must be restarted to use it: the console has no permission to change Deployment %s/%s", in.deployment.Namespace, in.deployment.Name), status: seen, requeueAfter: kueueInterval}, nil
	}
	seen.Patch = want.Patch
	return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue does not match the policy, and the console has no permission to change Kueue's configuration: %s", strings.Join(want.Changes, "; ")), status: seen, requeueAfter: kueueInterval}, nil
}

func applyPending(seen *v1alpha1.KueueStatus) kueueResult {
	return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Applying", "Kueue's configuration cannot be changed yet, retrying"), status: seen}
}

// newConfigurationID returns the ID of one write of a configuration. The
// resourceVersion makes IDs of the same text differ, so that a text that was
// reverted and written again restarts Kueue again.
func newConfigurationID(want kueueconfig.Desired, resourceVersion string) string {
	sum := sha256.Sum256([]byte(want.Text + "\x00" + strings.Join(want.Args, "\x00") + "\x00" + resourceVersion))
	return hex.EncodeToString(sum[:8])
}
