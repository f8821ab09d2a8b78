package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/desired"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// enforcementInterval is how often the admission policies are read. They are
	// read by name, so that those of the cluster need not be watched.
	enforcementInterval = 30 * time.Second
	// probeInterval is how soon the API server is probed again that does not reject
	// the probe, and probeLimit how long it may take to read new policies and
	// parameters, which it does within two seconds.
	probeInterval = 250 * time.Millisecond
	probeLimit    = 10 * time.Second
)

// EnforcementReconciler writes the parameters of the admission policies to a
// ConfigMap and reports whether the policies are installed. It does not install
// them: see package enforcement.
type EnforcementReconciler struct {
	client.Client                // reads from the cache
	APIReader      client.Reader // reads from the API server
	Naming         desired.Naming
	Namespace      string   // of the console
	JobControllers []string // users that create the pods and jobs of admitted jobs
	Now            func() time.Time

	probeFailedSince time.Time // zero if the API server rejected the last probe
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
	types, err := clusterstate.Catalog(ctx, r, r.Naming.InstanceTypeLabel)
	if err != nil {
		return ctrl.Result{}, err
	}
	labels, err := r.defaultClassExists(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	parameters := enforcement.Parameters(policy, types, r.JobControllers, r.Naming.InstanceTypeLabel, labels)
	if parameters[enforcement.InstallationKey], err = r.installation(ctx); err != nil {
		return ctrl.Result{}, err
	}
	queues, err := r.queues(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	maps.Copy(parameters, enforcement.QueueParameters(queues))
	if err := r.applyConfigMap(ctx, parameters); err != nil {
		return requeueOnConflict(ctrl.Result{}, errors.Join(err, patchPolicyStatus(ctx, r, policy, nil, newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "ApplyFailed",
			"ConfigMap %s/%s, which the admission policies read, cannot be written, retrying: %v", r.Namespace, enforcement.ConfigMapName, err))))
	}
	state, err := r.condition(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	if state == nil {
		return ctrl.Result{RequeueAfter: probeInterval}, nil
	}
	return requeueOnConflict(ctrl.Result{RequeueAfter: enforcementInterval}, patchPolicyStatus(ctx, r, policy, nil, *state))
}

// defaultClassExists reports whether Kueue's default priority class exists.
func (r *EnforcementReconciler) defaultClassExists(ctx context.Context) (bool, error) {
	var class kueue.WorkloadPriorityClass
	err := r.Get(ctx, client.ObjectKey{Name: enforcement.DefaultClass}, &class)
	return err == nil, client.IgnoreNotFound(err)
}

// queues returns the LocalQueues in namespaces of teams.
func (r *EnforcementReconciler) queues(ctx context.Context) (queues []kueue.LocalQueue, err error) {
	var namespaces corev1.NamespaceList
	if err := r.List(ctx, &namespaces, client.MatchingLabels{desired.LabelGoverned: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	governed := map[string]bool{}
	for i := range namespaces.Items {
		governed[namespaces.Items[i].Name] = true
	}
	var list kueue.LocalQueueList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(q kueue.LocalQueue) bool { return !governed[q.Namespace] }), nil
}

// installation returns the UID of the probe's policy; empty if it does not exist or
// the console may not read it, which condition reports.
func (r *EnforcementReconciler) installation(ctx context.Context) (string, error) {
	var policy admission.ValidatingAdmissionPolicy
	err := r.APIReader.Get(ctx, client.ObjectKey{Name: enforcement.ProbePolicy}, &policy)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return string(policy.UID), err
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

// condition returns the Enforcement condition; nil if the API server may not have
// read the policies and their parameters yet.
func (r *EnforcementReconciler) condition(ctx context.Context, policy *v1alpha1.ClusterPolicy) (*metav1.Condition, error) {
	report := func(status metav1.ConditionStatus, reason, format string, args ...any) (*metav1.Condition, error) {
		r.probeFailedSince = time.Time{}
		c := newCondition(v1alpha1.ConditionEnforcement, status, reason, format, args...)
		return &c, nil
	}
	if policy.Spec.Enforcement == v1alpha1.EnforcementNone {
		return report(metav1.ConditionTrue, "Off", "jobs without a queue are admitted")
	}
	missing, err := MissingPolicies(ctx, r.APIReader, enforcement.PolicyNames(), &admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{})
	switch {
	case apierrors.IsForbidden(err):
		return report(metav1.ConditionFalse, "Forbidden", "the console has no permission to read the admission policies: %v", err)
	case err != nil:
		return nil, err
	case len(missing) > 0:
		return report(metav1.ConditionFalse, "NotInstalled",
			"not all jobs outside Kueue are rejected, because admission policies are missing: %s. The settings page shows how to install them", strings.Join(missing, ", "))
	}
	result, err := ProbeEnforcement(ctx, r, r.Namespace)
	if err != nil {
		return nil, err
	}
	if result == enforcement.ProbeRejected {
		return report(metav1.ConditionTrue, "Enforced", "jobs without a queue are rejected in team namespaces")
	}
	if r.probeFailedSince.IsZero() {
		r.probeFailedSince = r.Now()
	}
	if r.Now().Sub(r.probeFailedSince) < probeLimit {
		return nil, nil
	}
	c := newCondition(v1alpha1.ConditionEnforcement, metav1.ConditionFalse, "NotApplied", "%s", NotAppliedMessage(result, r.Namespace))
	return &c, nil
}

// NotAppliedMessage describes a probe that the API server did not reject, and what
// to do.
func NotAppliedMessage(result enforcement.ProbeResult, namespace string) string {
	what := "The API server admits jobs without a queue: it does not read"
	if result == enforcement.ProbeOutdated {
		what = "The API server applies outdated settings: it does not read changes of"
	}
	return fmt.Sprintf("%s ConfigMap %s/%s, the parameters of the admission policies. Restart every API server: after all policies with a ConfigMap as parameter were deleted once, Kubernetes 1.36 stops watching ConfigMaps. Before that, check that the policies' bindings name this ConfigMap",
		what, namespace, enforcement.ConfigMapName)
}

// ProbeEnforcement checks, by a dry run, that the API server rejects what the
// admission policies must reject. It changes nothing. Without the ConfigMap the
// result is enforcement.ProbeUnknown. Of several API servers it checks the one
// that responds.
func ProbeEnforcement(ctx context.Context, c client.Client, namespace string) (enforcement.ProbeResult, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: enforcement.ConfigMapName}}
	err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(enforcement.ProbePatch)), client.DryRunAll)
	if apierrors.IsNotFound(err) {
		return enforcement.ProbeUnknown, nil
	}
	if result := enforcement.ProbeResultOf(err); result != enforcement.ProbeUnknown {
		return result, nil
	}
	return enforcement.ProbeUnknown, fmt.Errorf("probe the admission policies: %w", err)
}

// MissingPolicies returns the admission policies of a kind that do not exist or have no
// binding, whose name is the same. The error is the first one of those that cannot be read.
func MissingPolicies(ctx context.Context, reader client.Reader, names []string, policy, binding client.Object) (missing []string, failed error) {
	for _, name := range names {
		for _, object := range []client.Object{policy, binding} {
			err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
			if apierrors.IsNotFound(err) {
				missing = append(missing, name)
				break
			}
			if err != nil && failed == nil {
				failed = fmt.Errorf("get %s: %w", name, err)
			}
		}
	}
	return missing, failed
}
