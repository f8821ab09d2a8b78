package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// kueueInterval is how often Kueue's configuration is read. It is read from the
	// API server, so that the ConfigMaps of the cluster need not be watched.
	kueueInterval = 15 * time.Second
	// kueueRolloutInterval is how often it is read while Kueue restarts.
	kueueRolloutInterval = 500 * time.Millisecond
)

// KueueReconciler sets the parts of Kueue's configuration that the policy
// determines: fair sharing and gang scheduling. Kueue reads its configuration
// at startup only, so each change restarts its Deployment. So does the first share of an
// existing team: see noteOrder.
type KueueReconciler struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
	Install       KueueInstall
	Now           func() time.Time // the clock

	mu   sync.Mutex
	made []attempt // by this process
}

// Reconcile implements reconcile.Reconciler.
func (r *KueueReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := clusterstate.Policy(ctx, r)
	if policy == nil || err != nil {
		return ctrl.Result{}, err
	}
	out, err := r.reconcileConfiguration(ctx, policy)
	fairShare, gang := out.components(policy)
	return requeueOnConflict(ctrl.Result{RequeueAfter: out.requeueAfter}, errors.Join(err, patchPolicyStatus(ctx, r, policy, func(status *v1alpha1.ClusterPolicyStatus) {
		status.Kueue = out.status
	}, fairShare, gang)))
}

// components returns the FairShare and GangScheduling conditions.
func (out kueueResult) components(policy *v1alpha1.ClusterPolicy) (fairShare, gang metav1.Condition) {
	fairShare, gang = out.condition, out.condition
	if out.condition.Status == metav1.ConditionTrue {
		fairShare.Reason, fairShare.Message = fairShareMessage(policy)
		gang.Reason, gang.Message = gangSchedulingMessage(policy)
		if len(out.unsupported) > 0 { // only the feature gate of gang scheduling can be unsupported
			gang.Status, gang.Reason, gang.Message = metav1.ConditionFalse, "Cannot", strings.Join(out.unsupported, " ")
		}
	}
	fairShare.Type, gang.Type = v1alpha1.ConditionFairShare, v1alpha1.ConditionGangScheduling
	return fairShare, gang
}

func fairShareMessage(policy *v1alpha1.ClusterPolicy) (reason, message string) {
	if policy.Spec.IdleCompute.Strategy == v1alpha1.IdleFirstComeFirstServe {
		return "FirstComeFirstServe", "idle compute is borrowed first come, first served"
	}
	return "FairShare", "idle compute is shared by fair-share weights"
}

func gangSchedulingMessage(policy *v1alpha1.ClusterPolicy) (reason, message string) {
	if policy.Spec.GangScheduling.Enabled {
		return "On", "the pods of a task start together, or the task is requeued"
	}
	return "Off", "Kueue does not wait for the pods of a task"
}

// Plan returns what a policy would change in Kueue's configuration: whether
// Kueue would restart, or the patch to apply by hand where the console has no
// permission.
func (r *KueueReconciler) Plan(ctx context.Context, spec *v1alpha1.ClusterPolicySpec) (restart bool, patch string, err error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return false, "", err
	}
	want, err := in.desired(spec)
	if err != nil || !want.ConfigChanged && !want.ArgsChanged {
		return false, "", err
	}
	if r.Install.Manage && in.owner() == "" {
		switch err := r.Update(ctx, &in.config, fieldOwner, client.DryRunAll); {
		case err == nil:
			return true, "", nil
		case !apierrors.IsForbidden(err):
			return false, "", err
		}
	}
	return false, want.Patch, nil
}

// kueueResult is the outcome of one comparison of Kueue's configuration with
// the policy.
type kueueResult struct {
	condition    metav1.Condition // for both components
	status       *v1alpha1.KueueStatus
	requeueAfter time.Duration
	unsupported  []string // sentences about parts of the policy that Kuota cannot configure
}

func kueueCondition(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return newCondition("", status, reason, format, args...)
}

// reconcileConfiguration compares Kueue's configuration with the policy, and
// changes it if it is managed.
func (r *KueueReconciler) reconcileConfiguration(ctx context.Context, policy *v1alpha1.ClusterPolicy) (kueueResult, error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return r.readFailure(err)
	}
	if policy.Spec.AdmissionFairSharing != nil {
		if in.orderChange, err = r.lastOrderChange(ctx); err != nil {
			return r.readFailure(err)
		}
	}
	want, err := in.desired(&policy.Spec)
	if err != nil {
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "NotUnderstood", "Kueue's configuration in ConfigMap %s/%s cannot be read: %v", in.config.Namespace, in.config.Name, err), requeueAfter: kueueInterval}, nil
	}
	seen, differs := in.status(want), want.ConfigChanged || want.ArgsChanged
	if r.Install.Manage && differs {
		if why, ok := r.mayWrite(policy, &in, &want); !ok {
			seen.Patch = want.Patch
			return kueueResult{condition: why, status: seen, requeueAfter: kueueInterval}, nil
		}
	}
	switch {
	case r.Install.Manage && (differs || in.restartPending()):
		return r.writeConfiguration(ctx, policy, in, want)
	case differs:
		seen.Patch = want.Patch
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue does not match the policy, and --manage-kueue=false keeps this console from changing Kueue's configuration: %s", strings.Join(want.Changes, "; ")), status: seen, requeueAfter: kueueInterval}, nil
	case in.restartPending():
		seen.Patch = in.restartPatch()
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue must be restarted to order tasks by the usage of shares, and --manage-kueue=false keeps this console from restarting it"), status: seen, requeueAfter: kueueInterval}, nil
	case in.scaledToZero():
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "NotRunning", "Kueue is not running: Deployment %s/%s has 0 replicas", in.deployment.Namespace, in.deployment.Name), status: seen, requeueAfter: kueueInterval}, nil
	case in.rolloutFailure() != "":
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "NotStarting", "Kueue does not become ready with its new configuration, check the pods of Deployment %s/%s: %s", in.deployment.Namespace, in.deployment.Name, in.rolloutFailure()), status: seen, requeueAfter: kueueInterval}, nil
	case in.rollingOut():
		return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Restarting", "Kueue is restarting; running tasks continue"), status: seen, requeueAfter: kueueRolloutInterval}, nil
	}
	return kueueResult{condition: kueueCondition(metav1.ConditionTrue, "Configured", "Kueue is configured as the policy requires"), status: seen, requeueAfter: kueueInterval, unsupported: want.Unsupported}, nil
}

// readFailure returns the result when Kueue's configuration cannot be read.
func (r *KueueReconciler) readFailure(err error) (kueueResult, error) {
	const unknown = "so it is unknown whether Kueue matches the policy"
	switch {
	case apierrors.IsNotFound(err):
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "NotFound", "Kueue's configuration was not found, %s: %v", unknown, err), requeueAfter: kueueInterval}, nil
	case apierrors.IsForbidden(err):
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Forbidden", "the console has no permission to read Kueue's configuration in namespace %s, %s", r.Install.Namespace, unknown), requeueAfter: kueueInterval}, nil
	}
	return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Unread", "Kueue's configuration cannot be read, retrying")}, err
}
