package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueueconfig"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write changes Kueue's configuration and restarts Kueue with it. A stop
// between the two is finished by the next look, since the marks differ then.
func (r *Kueue) write(ctx context.Context, policy *v1alpha1.ClusterPolicy, in installation, want kueueconfig.Wanted) (outlook, error) {
	seen := in.seen(want)
	switch stored, err := r.stored(ctx, policy); {
	case err != nil:
		return notYet(seen), err
	case !stored:
		return outlook{state: stands(metav1.ConditionUnknown, "Applying", "the policy changed; Kueue's configuration is being updated"), seen: seen, again: kueueRolling}, nil
	}
	if want.ConfigChanged || !in.written() {
		config := in.config.DeepCopy()
		config.Data[configKey] = want.Text
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, restartMark, newMark(want, config.ResourceVersion))
		if err := r.Update(ctx, config, fieldOwner); err != nil {
			return unwritten(err, in, want)
		}
		in.config = *config
		var err error
		if want, err = in.want(&policy.Spec); err != nil { // what is left to do
			return unwritten(err, in, want)
		}
	}
	deployment := in.deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, restartMark, in.mark())
	deployment.Spec.Template.Spec.Containers[in.at].Args = want.Args
	if err := r.Update(ctx, deployment, fieldOwner); err != nil {
		return unwritten(err, in, want)
	}
	return outlook{state: stands(metav1.ConditionUnknown, "Restarting", "Kueue is restarting with its new configuration; running tasks continue"), seen: seen, again: kueueRolling}, nil
}

// stored tells whether a policy from the cache is the one that the API server
// has. After a watch stalled it is older, and would put back what another
// console has changed since.
func (r *Kueue) stored(ctx context.Context, policy *v1alpha1.ClusterPolicy) (bool, error) {
	var live v1alpha1.ClusterPolicy
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(policy), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == policy.UID && live.Generation == policy.Generation, nil
}

// unwritten says why Kueue's configuration could not be changed, and what to do
// by hand where the console may not.
func unwritten(err error, in installation, want kueueconfig.Wanted) (outlook, error) {
	seen := in.seen(want)
	switch {
	case !apierrors.IsForbidden(err):
		return notYet(seen), err
	case want.Patch == "":
		seen.Patch = "# Kueue reads its configuration at startup only, so:\n# " + in.restart() + "\n"
		return outlook{state: stands(metav1.ConditionFalse, "Differs", "Kueue's configuration matches the policy, but Kueue must be restarted to use it: the console has no permission to change Deployment %s/%s", in.deployment.Namespace, in.deployment.Name), seen: seen, again: kueueLook}, nil
	}
	seen.Patch = want.Patch
	return outlook{state: stands(metav1.ConditionFalse, "Differs", "Kueue does not match the policy, and the console has no permission to change Kueue's configuration: %s", strings.Join(want.Changes, "; ")), seen: seen, again: kueueLook}, nil
}

func notYet(seen *v1alpha1.KueueStatus) outlook {
	return outlook{state: stands(metav1.ConditionUnknown, "Applying", "Kueue's configuration cannot be changed yet, retrying"), seen: seen}
}

// newMark marks one write of a configuration. The same text written anew, after
// somebody put the old one back and restarted Kueue, has another mark.
func newMark(want kueueconfig.Wanted, resourceVersion string) string {
	sum := sha256.Sum256([]byte(want.Text + "\x00" + strings.Join(want.Args, "\x00") + "\x00" + resourceVersion))
	return hex.EncodeToString(sum[:8])
}
