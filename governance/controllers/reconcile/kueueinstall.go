package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	configKey               = "controller_manager_config.yaml"
	managerName             = "manager"                 // the container of Kueue
	configurationAnnotation = "kuota.dev/configuration" // on the ConfigMap, and on the pod template once Kueue runs with it
	orderAnnotation         = "kuota.dev/order"         // on the pod template: the lastOrderChange that Kueue started after
	// deadlineExceeded is the reason of Progressing=False when a rollout makes no
	// progress. The Kubernetes API has no constant for it.
	deadlineExceeded = "ProgressDeadlineExceeded"
)

// KueueInstall locates Kueue's configuration.
type KueueInstall struct {
	Namespace, ConfigMap, Deployment string
	Manage                           bool // Kuota changes the configuration
}

// DefaultKueueInstall has the names of Kueue's release manifests.
var DefaultKueueInstall = KueueInstall{Namespace: "kueue-system", ConfigMap: "kueue-manager-config", Deployment: "kueue-controller-manager", Manage: true}

// installation is Kueue's configuration and Deployment in the cluster.
type installation struct {
	config       corev1.ConfigMap
	deployment   appsv1.Deployment
	managerIndex int    // index of the container of Kueue
	orderChange  string // the lastOrderChange; empty if Kueue does not order by usage
}

// readInstallation reads Kueue's configuration from the API server.
func (r *KueueReconciler) readInstallation(ctx context.Context) (in installation, err error) {
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Install.Namespace, Name: r.Install.ConfigMap}, &in.config); err != nil {
		return in, err
	}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Install.Namespace, Name: r.Install.Deployment}, &in.deployment); err != nil {
		return in, err
	}
	in.managerIndex = slices.IndexFunc(in.deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == managerName })
	if in.managerIndex < 0 {
		return in, apierrors.NewNotFound(appsv1.Resource("containers"), managerName)
	}
	return in, nil
}

func (in *installation) manager() *corev1.Container {
	return &in.deployment.Spec.Template.Spec.Containers[in.managerIndex]
}

// desired returns the configuration that a policy requires.
func (in *installation) desired(spec *v1alpha1.ClusterPolicySpec) (kueueconfig.Desired, error) {
	return kueueconfig.ForPolicy(in.current(), spec)
}

func (in *installation) current() kueueconfig.Current {
	return kueueconfig.Current{Text: in.config.Data[configKey], Args: in.manager().Args, Image: in.manager().Image, RestartCommand: in.restartCommand()}
}

// account returns the username of Kueue's service account.
func (in *installation) account() string {
	return "system:serviceaccount:" + in.deployment.Namespace + ":" + cmp.Or(in.deployment.Spec.Template.Spec.ServiceAccountName, "default")
}

// restartPatch returns restartCommand as a patch to apply by hand.
func (in *installation) restartPatch() string {
	return "# Kueue reads its configuration and the order of queues at startup only, so:\n# " + in.restartCommand() + "\n"
}

// status returns the status.kueue of the policy.
func (in *installation) status(want kueueconfig.Desired) *v1alpha1.KueueStatus {
	return &v1alpha1.KueueStatus{Version: want.Version, Account: in.account(), Integrations: kueueconfig.Integrations(in.config.Data[configKey]), DefaultPriorityClass: kueueconfig.DefaultPriorityClass(in.current()), WaitForPodsReady: kueueconfig.WaitForPodsReady(in.current())}
}

// pending returns the annotations that the next restart of Kueue sets on its pod
// template, for what Kueue reads at startup only and Kuota changed since: its
// configuration, and how it orders the tasks of an existing ClusterQueue.
func (in *installation) pending() map[string]string {
	started, pending := in.deployment.Spec.Template.Annotations, map[string]string{}
	if id := in.config.Annotations[configurationAnnotation]; id != "" && started[configurationAnnotation] != id {
		pending[configurationAnnotation] = id
	}
	if in.orderChange > started[orderAnnotation] {
		pending[orderAnnotation] = in.orderChange
	}
	return pending
}

// restartPending reports whether Kueue must restart to use what Kuota wrote.
func (in *installation) restartPending() bool { return len(in.pending()) > 0 }

// restartCommand returns the command that restarts Kueue. While a restart is
// pending, the command also sets its annotations, so that Kuota detects the restart.
func (in *installation) restartCommand() string {
	if pending := in.pending(); len(pending) > 0 {
		annotations, _ := json.Marshal(pending)
		return fmt.Sprintf(`kubectl --namespace %s patch deployment %s --patch '{"spec":{"template":{"metadata":{"annotations":%s}}}}'`,
			in.deployment.Namespace, in.deployment.Name, annotations)
	}
	return fmt.Sprintf("kubectl --namespace %s rollout restart deployment %s", in.deployment.Namespace, in.deployment.Name)
}

func (in *installation) replicas() int32 { return ptr.Deref(in.deployment.Spec.Replicas, 1) }

// scaledToZero reports whether Kueue's Deployment has 0 replicas.
func (in *installation) scaledToZero() bool { return in.replicas() == 0 }

// rollingOut reports whether Kueue has pods of an older template, or too few
// available ones.
func (in *installation) rollingOut() bool {
	status := in.deployment.Status
	return status.ObservedGeneration < in.deployment.Generation || status.UpdatedReplicas < in.replicas() ||
		status.AvailableReplicas < in.replicas() || status.Replicas > in.replicas()
}

// rolloutFailure returns the reason why a rollout exceeded its progress
// deadline; empty if it did not.
func (in *installation) rolloutFailure() string {
	status := in.deployment.Status
	if !in.rollingOut() || status.ObservedGeneration < in.deployment.Generation {
		return ""
	}
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == deadlineExceeded {
			return c.Message
		}
	}
	return ""
}

// KueueState is how Kueue is installed and whether it runs.
type KueueState struct {
	kueueconfig.Current
	Account        string // username of Kueue's service account
	ScaledToZero   bool   // its Deployment has 0 replicas
	RolloutFailure string // why its rollout failed; empty if it did not
}

// Under returns Kueue's configuration as it is under a policy: the current one if
// Kuota does not or may not change it.
func (r *KueueReconciler) Under(ctx context.Context, spec *v1alpha1.ClusterPolicySpec) (kueueconfig.Current, error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return kueueconfig.Current{}, err
	}
	current := in.current()
	changes, _, err := r.Plan(ctx, spec)
	if err != nil || !changes {
		return current, err
	}
	want, err := in.desired(spec)
	current.Text, current.Args = want.Text, want.Args
	return current, err
}

// State reads Kueue's configuration and Deployment from the API server.
func (r *KueueReconciler) State(ctx context.Context) (KueueState, error) {
	in, err := r.readInstallation(ctx)
	if err != nil {
		return KueueState{}, err
	}
	return KueueState{Current: in.current(), Account: in.account(), ScaledToZero: in.scaledToZero(), RolloutFailure: in.rolloutFailure()}, nil
}
