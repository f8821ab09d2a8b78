package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// enforcementInterval is how often the admission policies are read. They are
// read by name, so that those of the cluster need not be watched.
const enforcementInterval = 30 * time.Second

// EnforcementReconciler writes the parameters of the admission policies to a
// ConfigMap and reports whether the policies are installed. It does not install
// them: see package enforcement.
type EnforcementReconciler struct {
	client.Client                // reads from the cache
	APIReader      client.Reader // reads from the API server
	Naming         desired.Naming
	Namespace      string   // of the console
	JobControllers []string // users that create the pods and jobs of admitted jobs
}

// Reconcile implements reconcile.Reconciler.
func (r *EnforcementReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := clusterstate.Policy(ctx, r)
	if err != nil {
		return ctrl.Result{}, err
	}
	if policy == nil {
		return ctrl.Result{}, r.disable(ctx)
	}
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	types := catalog.New(catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: r.Naming.InstanceTypeLabel, Pools: policy.Status.Pools, ReportedTypes: policy.Status.ReportedTypes})
	if err := r.applyConfigMap(ctx, enforcement.Parameters(policy, types, r.JobControllers, r.Naming.InstanceTypeLabel)); err != nil {
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "ApplyFailed",
			"ConfigMap %s/%s, which the admission policies read, cannot be written, retrying: %v", r.Namespace, enforcement.ConfigMapName, err))))
	}
	state, err := r.condition(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	return requeueOnConflict(ctrl.Result{RequeueAfter: enforcementInterval}, patchPolicyStatus(ctx, r, policy, nil, state))
}

// applyConfigMap applies the ConfigMap if its data differs.
func (r *EnforcementReconciler) applyConfigMap(ctx context.Context, data map[string]string) error {
	live := corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: enforcement.ConfigMapName}, &live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && maps.Equal(live.Data, data) {
		return nil
	}
	return r.Apply(ctx, applycore.ConfigMap(enforcement.ConfigMapName, r.Namespace).WithLabels(map[string]string{desired.LabelManagedBy: desired.ManagedBy}).WithData(data), fieldOwner, client.ForceOwnership)
}

// disable makes the admission policies allow everything while there is no
// ClusterPolicy.
func (r *EnforcementReconciler) disable(ctx context.Context) error {
	live := corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: enforcement.ConfigMapName}, &live)
	if err != nil || live.Data["enforcement"] == string(v1alpha1.EnforcementNone) {
		return client.IgnoreNotFound(err)
	}
	return r.applyConfigMap(ctx, map[string]string{"enforcement": string(v1alpha1.EnforcementNone)})
}

// condition returns the Enforcement condition.
func (r *EnforcementReconciler) condition(ctx context.Context, policy *v1alpha1.ClusterPolicy) (metav1.Condition, error) {
	if policy.Spec.Enforcement == v1alpha1.EnforcementNone {
		return newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Off", "jobs without a queue are admitted"), nil
	}
	missing, err := r.missingPolicies(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "Forbidden", "the console has no permission to read the admission policies: %v", err), nil
	case err != nil:
		return metav1.Condition{}, err
	case len(missing) > 0:
		return newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "NotInstalled",
			"jobs without a queue are not rejected, because admission policies are missing: %s. Apply deploy/rbac/enforcement.yaml with kubectl apply --server-side", strings.Join(missing, ", ")), nil
	}
	return newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Enforced", "jobs without a queue are rejected in team namespaces"), nil
}

// missingPolicies returns the admission policies that do not exist or have no
// binding.
func (r *EnforcementReconciler) missingPolicies(ctx context.Context) (names []string, err error) {
	for _, name := range enforcement.PolicyNames() {
		for _, object := range []client.Object{&admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{}} {
			err := r.APIReader.Get(ctx, client.ObjectKey{Name: name}, object)
			if apierrors.IsNotFound(err) {
				names = append(names, name)
				break
			}
			if err != nil {
				return nil, fmt.Errorf("get %s: %w", name, err)
			}
		}
	}
	return names, nil
}
