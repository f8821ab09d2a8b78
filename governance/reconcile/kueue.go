package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueueconfig"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// kueueLook is how often Kueue's configuration is looked at: it is read from
	// the API server, so that the ConfigMaps of the cluster need not be watched.
	kueueLook = 15 * time.Second
	// kueueRolling is how often while Kueue is being restarted.
	kueueRolling = 500 * time.Millisecond
)

// Kueue keeps those parts of Kueue's configuration that the policy decides:
// fair sharing and gang scheduling. Kueue reads it at start only, so that a
// change is followed by a restart of its Deployment.
type Kueue struct {
	client.Client               // reads from the cache
	Live          client.Reader // asks the API server itself
	Install       KueueInstall
}

// Reconcile brings Kueue's configuration to what the policy says, or tells
// what differs.
func (r *Kueue) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := allocations.Policy(ctx, r)
	if policy == nil || err != nil {
		return ctrl.Result{}, err
	}
	out, err := r.look(ctx, policy)
	fairShare, gang := out.state, out.state
	if out.state.Status == metav1.ConditionTrue {
		fairShare.Reason, fairShare.Message = fairShareInForce(policy)
		gang.Reason, gang.Message = gangInForce(policy)
	}
	fairShare.Type, gang.Type = v1alpha1.ConditionFairShare, v1alpha1.ConditionGangScheduling
	return again(ctrl.Result{RequeueAfter: out.again}, errors.Join(err, writePolicyStatus(ctx, r, policy, func(status *v1alpha1.ClusterPolicyStatus) {
		status.Kueue = out.seen
	}, fairShare, gang)))
}

func fairShareInForce(policy *v1alpha1.ClusterPolicy) (reason, message string) {
	if policy.Spec.IdleCompute.Strategy == v1alpha1.IdleFirstComeFirstServe {
		return "FirstComeFirstServe", "idle compute goes to whoever asks first"
	}
	return "FairShare", "idle compute is shared by the weights of the teams"
}

func gangInForce(policy *v1alpha1.ClusterPolicy) (reason, message string) {
	if policy.Spec.GangScheduling.Enabled {
		return "On", "the pods of a task start together, or the task is requeued"
	}
	return "Off", "Kueue does not wait for the pods of a task"
}

// Plan says what a policy would need of Kueue's configuration: whether Kueue
// would be restarted for it, or what would have to be changed by hand, where the
// console may not.
func (r *Kueue) Plan(ctx context.Context, spec *v1alpha1.ClusterPolicySpec) (restart bool, patch string, err error) {
	in, err := r.read(ctx)
	if err != nil {
		return false, "", err
	}
	want, err := in.want(spec)
	if err != nil || !want.ConfigChanged && !want.ArgsChanged {
		return false, "", err
	}
	if r.Install.Manage {
		switch err := r.Update(ctx, &in.config, fieldOwner, client.DryRunAll); {
		case err == nil:
			return true, "", nil
		case !apierrors.IsForbidden(err):
			return false, "", err
		}
	}
	return false, want.Patch, nil
}

// outlook is how Kueue's configuration stands, what was seen of it, and when to
// look again.
type outlook struct {
	state metav1.Condition // of both components
	seen  *v1alpha1.KueueStatus
	again time.Duration
}

func stands(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return component("", status, reason, format, args...)
}

// look compares Kueue's configuration with the policy, and changes it where it
// may.
func (r *Kueue) look(ctx context.Context, policy *v1alpha1.ClusterPolicy) (outlook, error) {
	in, err := r.read(ctx)
	if err != nil {
		return r.unread(err)
	}
	want, err := in.want(&policy.Spec)
	if err != nil {
		return outlook{stands(metav1.ConditionFalse, "NotUnderstood", "Kueue's configuration in ConfigMap %s/%s cannot be read: %v", in.config.Namespace, in.config.Name, err), nil, kueueLook}, nil
	}
	seen := &v1alpha1.KueueStatus{Version: want.Version}
	mark := in.config.Annotations[restartMark]
	switch differs := want.ConfigChanged || want.ArgsChanged; {
	case !differs && r.Install.Manage && mark != "" && in.deployment.Spec.Template.Annotations[restartMark] != mark:
		return r.restart(ctx, in, want, mark) // stopped between the two writes
	case !differs && in.stopped():
		return outlook{stands(metav1.ConditionFalse, "NotRunning", "Kueue does not run: Deployment %s/%s has 0 replicas", in.deployment.Namespace, in.deployment.Name), seen, kueueLook}, nil
	case !differs && in.rolling():
		return outlook{stands(metav1.ConditionUnknown, "Restarting", "Kueue is being restarted; running tasks go on"), seen, kueueRolling}, nil
	case !differs:
		return outlook{stands(metav1.ConditionTrue, "Configured", "Kueue is configured as the policy says"), seen, kueueLook}, nil
	case !r.Install.Manage:
		seen.Patch = want.Patch
		return outlook{stands(metav1.ConditionFalse, "Differs", "policy and Kueue differ, and this console is told not to change Kueue's configuration: %s", strings.Join(want.Changes, "; ")), seen, kueueLook}, nil
	}
	mark = digest(want.Text, want.Args)
	in.config.Data[configKey] = want.Text
	metav1.SetMetaDataAnnotation(&in.config.ObjectMeta, restartMark, mark)
	if err := r.Update(ctx, &in.config, fieldOwner); err != nil {
		return r.unwritten(err, want)
	}
	return r.restart(ctx, in, want, mark)
}

// restart restarts Kueue with its configuration.
func (r *Kueue) restart(ctx context.Context, in installation, want kueueconfig.Wanted, mark string) (outlook, error) {
	metav1.SetMetaDataAnnotation(&in.deployment.Spec.Template.ObjectMeta, restartMark, mark)
	in.manager().Args = want.Args
	if err := r.Update(ctx, &in.deployment, fieldOwner); err != nil {
		return r.unwritten(err, want)
	}
	return outlook{stands(metav1.ConditionUnknown, "Restarting", "Kueue is being restarted with its new configuration; running tasks go on"), &v1alpha1.KueueStatus{Version: want.Version}, kueueRolling}, nil
}

// unread says why Kueue's configuration is not known.
func (r *Kueue) unread(err error) (outlook, error) {
	const unknown = "so it is not known whether policy and Kueue differ"
	switch {
	case apierrors.IsNotFound(err):
		return outlook{stands(metav1.ConditionFalse, "NotFound", "Kueue's configuration was not found, %s: %v", unknown, err), nil, kueueLook}, nil
	case apierrors.IsForbidden(err):
		return outlook{stands(metav1.ConditionFalse, "Forbidden", "the console may not read Kueue's configuration in namespace %s, %s", r.Install.Namespace, unknown), nil, kueueLook}, nil
	}
	return outlook{stands(metav1.ConditionUnknown, "Unread", "Kueue's configuration could not be read; it is tried again"), nil, 0}, err
}

// unwritten says why Kueue's configuration could not be changed, and what to
// change by hand where the console may not.
func (r *Kueue) unwritten(err error, want kueueconfig.Wanted) (outlook, error) {
	seen := &v1alpha1.KueueStatus{Version: want.Version}
	if apierrors.IsForbidden(err) {
		seen.Patch = want.Patch
		return outlook{stands(metav1.ConditionFalse, "Differs", "policy and Kueue differ, and the console may not change Kueue's configuration: %s", strings.Join(want.Changes, "; ")), seen, kueueLook}, nil
	}
	return outlook{stands(metav1.ConditionUnknown, "Applying", "Kueue's configuration could not be changed yet; it is tried again"), seen, 0}, err
}

// digest is a short hash of a configuration.
func digest(text string, args []string) string {
	sum := sha256.Sum256([]byte(text + "\x00" + strings.Join(args, "\x00")))
	return hex.EncodeToString(sum[:8])
}
