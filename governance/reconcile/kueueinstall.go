package reconcile

import (
	"context"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueueconfig"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	configKey   = "controller_manager_config.yaml"
	managerName = "manager"                 // the container that is Kueue
	restartMark = "kuota.dev/configuration" // on the ConfigMap, and on the pod template once Kueue runs with it

)

// KueueInstall says where Kueue's configuration is, and whether it may be
// changed.
type KueueInstall struct {
	Namespace, ConfigMap, Deployment string
	Manage                           bool
}

// DefaultKueueInstall is how Kueue installs itself.
var DefaultKueueInstall = KueueInstall{Namespace: "kueue-system", ConfigMap: "kueue-manager-config", Deployment: "kueue-controller-manager", Manage: true}

// installation is Kueue's configuration as the cluster has it.
type installation struct {
	config     corev1.ConfigMap
	deployment appsv1.Deployment
	at         int // of the container that is Kueue
}

// read asks the API server for Kueue's configuration.
func (r *Kueue) read(ctx context.Context) (in installation, err error) {
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Install.Namespace, Name: r.Install.ConfigMap}, &in.config); err != nil {
		return in, err
	}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Install.Namespace, Name: r.Install.Deployment}, &in.deployment); err != nil {
		return in, err
	}
	in.at = slices.IndexFunc(in.deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == managerName })
	if in.at < 0 {
		return in, apierrors.NewNotFound(appsv1.Resource("containers"), managerName)
	}
	return in, nil
}

func (in *installation) manager() *corev1.Container {
	return &in.deployment.Spec.Template.Spec.Containers[in.at]
}

// want is the configuration as a policy asks for it.
func (in *installation) want(spec *v1alpha1.ClusterPolicySpec) (kueueconfig.Wanted, error) {
	return kueueconfig.Want(kueueconfig.Seen{Text: in.config.Data[configKey], Args: in.manager().Args, Image: in.manager().Image}, spec)
}

func (in *installation) replicas() int32 {
	if in.deployment.Spec.Replicas == nil {
		return 1
	}
	return *in.deployment.Spec.Replicas
}

// stopped tells whether somebody scaled Kueue to nothing.
func (in *installation) stopped() bool { return in.replicas() == 0 }

// rolling tells whether Kueue has pods of an older template, or too few that are
// ready.
func (in *installation) rolling() bool {
	status := in.deployment.Status
	return status.ObservedGeneration < in.deployment.Generation || status.UpdatedReplicas < in.replicas() ||
		status.AvailableReplicas < in.replicas() || status.Replicas > in.replicas()
}
