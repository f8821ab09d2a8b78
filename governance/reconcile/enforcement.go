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

// enforcementLook is how often the admission policies are looked for: they are
// asked for by name, so that those of the cluster need not be watched.
const enforcementLook = 30 * time.Second

// Enforcement writes down what the admission policies need to know, and tells
// whether they are there. It does not install them: see package enforcement.
type Enforcement struct {
	client.Client               // reads from the cache
	Live          client.Reader // asks the API server itself
	Naming        desired.Naming
	Namespace     string   // the console's own
	Controllers   []string // the users that make the parts of admitted jobs
}

// Reconcile brings both up to date.
func (r *Enforcement) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	policy, err := clusterstate.Policy(ctx, r)
	if err != nil {
		return ctrl.Result{}, err
	}
	if policy == nil {
		return ctrl.Result{}, r.letGo(ctx)
	}
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	types := catalog.New(catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: r.Naming.InstanceTypeLabel, Pools: policy.Status.Pools, Reported: policy.Status.ReportedTypes})
	if err := r.write(ctx, enforcement.Parameters(policy, types, r.Controllers, r.Naming.InstanceTypeLabel)); err != nil {
		return again(ctrl.Result{}, errors.Join(err, writePolicyStatus(ctx, r, policy, nil, component(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "ApplyFailed",
			"ConfigMap %s/%s, which the admission policies read, cannot be written, retrying: %v", r.Namespace, enforcement.ConfigMap, err))))
	}
	state, err := r.state(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	return again(ctrl.Result{RequeueAfter: enforcementLook}, writePolicyStatus(ctx, r, policy, nil, state))
}

// write makes the ConfigMap hold what it should, where it does not.
func (r *Enforcement) write(ctx context.Context, data map[string]string) error {
	live := corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: enforcement.ConfigMap}, &live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && maps.Equal(live.Data, data) {
		return nil
	}
	return r.Apply(ctx, applycore.ConfigMap(enforcement.ConfigMap, r.Namespace).WithLabels(map[string]string{desired.LabelManagedBy: desired.ManagedBy}).WithData(data), fieldOwner, client.ForceOwnership)
}

// letGo has the admission policies refuse nothing: there is no policy.
func (r *Enforcement) letGo(ctx context.Context) error {
	live := corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: enforcement.ConfigMap}, &live)
	if err != nil || live.Data["enforcement"] == string(v1alpha1.EnforcementNone) {
		return client.IgnoreNotFound(err)
	}
	return r.write(ctx, map[string]string{"enforcement": string(v1alpha1.EnforcementNone)})
}

// state says whether jobs beside Kueue are refused.
func (r *Enforcement) state(ctx context.Context, policy *v1alpha1.ClusterPolicy) (metav1.Condition, error) {
	if policy.Spec.Enforcement == v1alpha1.EnforcementNone {
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Off", "jobs without a queue are admitted"), nil
	}
	missing, err := r.missing(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "Forbidden", "the console has no permission to read the admission policies: %v", err), nil
	case err != nil:
		return metav1.Condition{}, err
	case len(missing) > 0:
		return component(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "NotInstalled",
			"jobs without a queue are not rejected, because admission policies are missing: %s. Apply deploy/rbac/enforcement.yaml with kubectl apply --server-side", strings.Join(missing, ", ")), nil
	}
	return component(v1alpha1.ConditionEnforcement, metav1.ConditionTrue, "Enforced", "jobs without a queue are rejected in team namespaces"), nil
}

// missing are the admission policies that are not there, or not bound.
func (r *Enforcement) missing(ctx context.Context) (names []string, err error) {
	for _, name := range enforcement.Names() {
		for _, object := range []client.Object{&admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{}} {
			err := r.Live.Get(ctx, client.ObjectKey{Name: name}, object)
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
