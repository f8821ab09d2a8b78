package submit

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks/explain"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of services, which run until they are scaled to 0 or deleted.
const (
	Deployment      Kind = "Deployment"
	StatefulSet     Kind = "StatefulSet"
	LeaderWorkerSet Kind = "LeaderWorkerSet"
)

const (
	// DefaultHome is where the home of a notebook is mounted.
	DefaultHome = "/home/jovyan"

	// MaxReplicas bounds the replicas of a service.
	MaxReplicas = 1000
	// homeVolume is the volume with the home of a notebook. The claim that Kubernetes
	// creates for it is named home-NAME-0.
	homeVolume = "home"
	// podsLabel is the label by which a service selects its pods.
	podsLabel = "app.kubernetes.io/name"
)

// Serving makes a request a service: Request.Pods are the pods of one replica, which
// start together. If that is one pod, the service is a Deployment, else a
// LeaderWorkerSet.
type Serving struct {
	Replicas int32
	Port     int32     // that its containers listen on; 0 for none
	Notebook *Notebook // makes it a StatefulSet of one pod
}

// Notebook has the home of a notebook: an existing PersistentVolumeClaim, or a new one of
// a size. Without either, files are lost when the pod ends.
type Notebook struct {
	Home  string // where it is mounted; empty is DefaultHome
	Claim string
	Size  *resource.Quantity
}

// Kind returns the kind of a service whose replicas have this many pods.
func (s *Serving) Kind(pods int32) Kind {
	switch {
	case s.Notebook != nil:
		return StatefulSet
	case pods > 1:
		return LeaderWorkerSet
	}
	return Deployment
}

func (n *Notebook) home() string { return cmp.Or(n.Home, DefaultHome) }

// serviceKinds returns the kinds of services that Kueue manages; none while its
// configuration is unknown.
func serviceKinds(policy *v1alpha1.ClusterPolicy) []Kind {
	if policy == nil || policy.Status.Kueue == nil {
		return nil
	}
	return managedBy(policy.Status.Kueue.Integrations, Deployment, StatefulSet, LeaderWorkerSet)
}

// addServices sets the kinds of services that user can create, and how they can reach one.
func (s *Service) addServices(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy, t *Team) (err error) {
	if t.ServiceKinds, err = s.allowed(ctx, user, serviceKinds(policy), t.Namespace); err != nil || len(t.ServiceKinds) == 0 {
		return err
	}
	if t.MayForward, err = s.Access.May(ctx, user, "create", schema.GroupVersionResource{Resource: "pods/portforward"}, t.Namespace); err != nil {
		return err
	}
	t.MayExpose, err = s.Access.May(ctx, user, "create", schema.GroupVersionResource{Resource: "services"}, t.Namespace)
	return err
}

// MayServe reports whether the console can submit a service of one of these kinds.
func (t Team) MayServe(kinds ...Kind) bool {
	return t.Writes && slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(t.ServiceKinds, k) })
}

// validateServing returns the errors of a service.
func (r Request) validateServing(t Team) (wrong governance.FieldErrors) {
	s, kind := r.Serving, r.Kind
	switch {
	case slices.Contains(t.ServiceKinds, kind):
	case kind == LeaderWorkerSet:
		wrong.Add("pods", "several pods per replica need a LeaderWorkerSet, which Kueue does not manage here, or which you have no permission to create")
	case kind == Deployment && slices.Contains(t.ServiceKinds, LeaderWorkerSet):
		wrong.Add("pods", "must be 2 or more: one pod per replica needs a Deployment, which Kueue does not manage here, or which you have no permission to create")
	default:
		wrong.Addf("", "Kueue does not manage a %s here, or you have no permission to create one in the team's namespace", kind)
	}
	if class, _ := t.Class(r.Class); kind == Deployment && class.MaximumTimeLimit > 0 {
		wrong.Add("class", "tasks of this class have a time limit, and Kueue cannot limit a Deployment: choose another class")
	}
	if s.Replicas < 1 || s.Replicas > MaxReplicas {
		wrong.Add("replicas", "must be a whole number from 1 to 1,000")
	}
	if s.Port < 0 || s.Port > 65535 {
		wrong.Add("port", "must be a whole number from 1 to 65,535")
	}
	if r.Elastic != nil {
		wrong.Add("elastic", "a service is not elastic: scale it instead")
	}
	n := s.Notebook
	if n == nil {
		return wrong
	}
	if r.Pods > 1 || s.Replicas > 1 {
		wrong.Add("pods", "a notebook has one pod")
	}
	home := n.home()
	switch {
	case !path.IsAbs(home) || path.Clean(home) != home || home == "/":
		wrong.Addf("homePath", "%q is no path to mount at, such as %s", home, DefaultHome)
	case slices.ContainsFunc(r.Volumes, func(v ClaimMount) bool { return v.Path == home }):
		wrong.Addf("homePath", "%s is mounted twice", home)
	}
	switch {
	case n.Claim != "" && n.Size != nil:
		wrong.Add("homeSize", "give the size of a new volume, or name an existing claim, not both")
	case n.Size != nil && n.Size.Sign() <= 0:
		wrong.Add("homeSize", "must be more than 0")
	case n.Claim != "" && len(validation.IsDNS1123Subdomain(n.Claim)) > 0:
		wrong.Addf("home", "%q is no name of a PersistentVolumeClaim", n.Claim)
	}
	return wrong
}

// service returns the object of a service.
func (p Plan) service() (client.Object, error) {
	meta, replicas := p.meta(), p.Serving.Replicas
	selected := map[string]string{podsLabel: p.name()}
	template := p.serviceTemplate()
	switch kind := p.Kind; kind {
	case Deployment:
		none, one := intstr.FromInt32(0), intstr.FromInt32(1)
		return &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: string(kind)}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template,
				// An update needs no quota for a pod beyond its replicas.
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &none, MaxUnavailable: &one}},
			},
		}, nil
	case StatefulSet:
		set := &appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: string(kind)}, ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template},
		}
		if size := p.Serving.Notebook.Size; size != nil {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: homeVolume},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *size}},
				},
			}}
		}
		return set, nil
	}
	return p.untyped("leaderworkerset.x-k8s.io/v1", LeaderWorkerSet, fields{
		"replicas": replicas, "leaderWorkerTemplate": fields{"size": p.Pods, "workerTemplate": template},
	})
}

// serviceTemplate returns the pod template of a service.
func (p Plan) serviceTemplate() corev1.PodTemplateSpec {
	template := p.template("main", "")
	template.Labels = map[string]string{podsLabel: p.name()}
	spec, c := &template.Spec, &template.Spec.Containers[0]
	if port := p.Serving.Port; port > 0 {
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: port}}
	}
	n := p.Serving.Notebook
	if n == nil || n.Claim == "" && n.Size == nil {
		return template
	}
	c.WorkingDir = n.home()
	c.VolumeMounts = append([]corev1.VolumeMount{{Name: homeVolume, MountPath: n.home()}}, c.VolumeMounts...)
	if n.Claim != "" {
		spec.Volumes = append([]corev1.Volume{{Name: homeVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: n.Claim},
		}}}, spec.Volumes...)
	}
	return template
}

// EndpointManifest returns the manifest of a Service of core/v1, by which other pods
// reach a service; of a LeaderWorkerSet, its leaders. It is empty without a port.
func (p Plan) EndpointManifest() (Manifest, error) {
	port := p.Serving.Port
	if port == 0 {
		return Manifest{}, nil
	}
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: p.name(), Namespace: p.Team.Namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{podsLabel: p.name()}, Ports: []corev1.ServicePort{{Name: "http", Port: port}}},
	}
	if p.Kind == LeaderWorkerSet { // its operator creates a headless Service of its name
		s.Name += "-leaders"
		s.Spec.Selector["leaderworkerset.sigs.k8s.io/worker-index"] = "0"
	}
	return writeManifest("Service", s)
}

// PortForward returns the command by which the user reaches one pod of a service from
// their computer; empty without a port.
func (p Plan) PortForward() string {
	port := p.Serving.Port
	if port == 0 {
		return ""
	}
	target := map[Kind]string{Deployment: "deployment/", StatefulSet: "statefulset/", LeaderWorkerSet: "pod/"}[p.Kind] + p.name()
	if p.Kind == LeaderWorkerSet { // kubectl finds no pod of it
		target += "-0"
	}
	return fmt.Sprintf("kubectl port-forward -n %s %s %d:%d", p.Team.Namespace, target, port, port)
}

// checkReplicas adds to the verdict on the first replica of a service how many would be
// admitted now without a preemption, and how many the team could ever have at once.
func (s *Service) checkReplicas(ctx context.Context, user governance.User, p Plan, v *Verdict) error {
	all := p
	all.Pods = p.Serving.Replicas * p.Pods
	proposal := all.proposal(all.Pods)
	h, err := s.Tasks.WouldStart(ctx, user, proposal)
	if err != nil {
		return err
	}
	if h.Verdict.Constraint == explain.ExceedsMax {
		v.MaxReplicas = int32(maxPodsOf(all, h.Verdict)) / p.Pods
	}
	if v.Outcome != Starts {
		return nil
	}
	rooms, err := s.Tasks.Rooms(ctx, nil)
	if err != nil {
		return err
	}
	room, err := rooms.Pods(ctx, proposal)
	v.Replicas = max(1, room/p.Pods)
	return err
}
