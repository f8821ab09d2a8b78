package index

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Kueue creates one Workload for each pod of a Deployment, and makes the pod its owner.
// The index makes the Deployment its owner too, so that the Workloads of all its pods
// are parts of one task:
//
//	Workload ── owner ──► pod ── owner ──► ReplicaSet NAME-HASH
//	                       └── label pod-template-hash ──► Deployment NAME
//
// ReplicaSets are not watched: a cluster has many, and their names are enough.

// deploymentOf returns the name of the Deployment whose ReplicaSet controls a pod;
// empty for none.
func deploymentOf(o *corev1.Pod, owner *metav1.OwnerReference) string {
	hash := o.Labels["pod-template-hash"]
	if owner.Kind != "ReplicaSet" || hash == "" {
		return ""
	}
	name, ok := strings.CutSuffix(owner.Name, "-"+hash)
	if !ok {
		return ""
	}
	return intern(name)
}

// podsOfDeployment identifies the pods of a Deployment among those by controller.
func podsOfDeployment(namespace, name string) member {
	return member{namespace, tasks.DeploymentKind + "/" + name}
}

// deployment returns the Deployment of a pod; nil for none, or while it is unknown.
func (x *Index) deployment(p *Pod) *job {
	if p == nil || p.Deployment == "" {
		return nil
	}
	return x.deployments[member{p.Namespace, p.Deployment}]
}

// setDeployment records a Deployment, and makes it the task of its pods.
func (x *Index) setDeployment(j *job) {
	known := x.deployments[member{j.Namespace, j.Name}]
	x.deployments[member{j.Namespace, j.Name}] = j
	if known != nil && known.UID == j.UID {
		return
	}
	for p := range x.podsBy[podsOfDeployment(j.Namespace, j.Name)] {
		x.regroup(p)
		x.podChanged(p)
	}
}

func (x *Index) dropDeployment(j *job) {
	if known := x.deployments[member{j.Namespace, j.Name}]; known != nil && known.UID == j.UID {
		delete(x.deployments, member{j.Namespace, j.Name})
	}
}

// ownByDeployment returns a Workload with the Deployment of its pod as controller,
// beside the pod; any other Workload as it is. A Workload keeps its service after its pod
// is deleted, or after the service is and Kubernetes removed the reference.
func (x *Index) ownByDeployment(w *kueue.Workload) *kueue.Workload {
	kind, _, uid := tasks.OwnerOf(w)
	if kind != "Pod" && kind != tasks.PodGroup {
		return w
	}
	owner := x.serviceOf(w.UID)
	if p := x.pods[types.UID(uid)]; owner == nil && p != nil && p.Namespace == w.Namespace {
		if d := x.deployment(p); d != nil {
			owner = &metav1.OwnerReference{APIVersion: "apps/v1", Kind: tasks.DeploymentKind, Name: d.Name, UID: d.UID, Controller: ptr.To(true)}
		}
	}
	if owner == nil {
		return w
	}
	owned := *w // it is shared with the cache
	owned.OwnerReferences = slices.Clone(w.OwnerReferences)
	if pod := metav1.GetControllerOfNoCopy(&owned); pod != nil {
		pod.Controller = nil
	}
	owned.OwnerReferences = append(owned.OwnerReferences, *owner)
	return &owned
}

// serviceOf returns the reference to the service that a known Workload belongs to; nil
// for none.
func (x *Index) serviceOf(workload types.UID) *metav1.OwnerReference {
	parts := x.parts[x.group[workload]]
	at := partOf(parts, workload)
	if at < 0 {
		return nil
	}
	kind, _, uid := tasks.OwnerOf(parts[at])
	i := slices.IndexFunc(parts[at].OwnerReferences, func(o metav1.OwnerReference) bool { return string(o.UID) == uid })
	if i < 0 || !tasks.IsServingKind(kind) {
		return nil
	}
	return &parts[at].OwnerReferences[i]
}

// regroup moves the Workload of a pod to its Deployment, once both are known.
func (x *Index) regroup(p *Pod) {
	key := tasks.Key{Namespace: p.Namespace, UID: string(p.UID)}
	first := x.undecided[key]
	for _, w := range slices.Clone(x.parts[key]) {
		if owned := x.ownByDeployment(w); owned != w {
			x.removeWorkload(key, w.UID)
			x.addWorkload(owned, first)
		}
	}
	if _, waits := x.undecided[key]; waits {
		x.rebuild(key, first)
	}
}

// decidesLater reports whether Workloads can turn out to be those of a Deployment: the
// index does not know their pod, or the Deployment of that, and may receive it within
// WorkloadGrace. The task is rebuilt then. first is as for rebuild.
func (x *Index) decidesLater(key tasks.Key, parts []*kueue.Workload, first bool) bool {
	wait := time.Duration(0)
	if pod := metav1.GetControllerOfNoCopy(parts[0]); pod != nil && pod.Kind == "Pod" {
		p := x.pods[pod.UID]
		since := parts[0].CreationTimestamp.Time
		if since.Before(x.started) {
			since = x.started
		}
		if p == nil && !x.podsComplete || p == nil && since.After(x.started) || p != nil && p.Deployment != "" {
			wait = WorkloadGrace - x.Now().Sub(since)
		}
	}
	if wait <= 0 || wait > WorkloadGrace {
		delete(x.undecided, key)
		return false
	}
	if _, waits := x.undecided[key]; !waits {
		x.undecided[key] = first
	}
	x.rebuildLater(key, wait)
	return true
}

// current returns the Workloads of a serving task that count: without those that have
// finished, and without those of deleted pods that use no quota. Their controllers
// replace them.
func (x *Index) current(parts []*kueue.Workload) []*kueue.Workload {
	kind, _, _ := tasks.OwnerOf(parts[0])
	if !tasks.IsServingKind(kind) {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), func(w *kueue.Workload) bool {
		state := tasks.ReadPart(w).State
		if state.Finished() || kind != tasks.DeploymentKind || state.UsesQuota() {
			return state.Finished()
		}
		i := slices.IndexFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" })
		if i < 0 { // it was created by hand
			return false
		}
		p := x.pods[w.OwnerReferences[i].UID]
		return p == nil && x.podsComplete || p != nil && (p.DeletionTimestamp != nil || p.ended())
	})
}

// stoppedReplicas returns how many replicas a task had when it was stopped; 0 if
// unknown.
func stoppedReplicas(annotations map[string]string) int32 {
	n, err := strconv.ParseInt(annotations[v1alpha1.AnnotationStoppedReplicas], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// serving sets what the index knows of a serving task by its job.
func (x *Index) serving(t *tasks.Task, j *job) {
	t.Submitted = j.CreationTimestamp.Time
	if t.State == tasks.Stopped {
		t.StoppedReplicas = j.stoppedReplicas
	}
	lives := func(p *Pod) bool { return p.DeletionTimestamp == nil && !p.ended() }
	if j.stoppedReplicas > 0 && x.podsComplete && t.State.UsesQuota() && !slices.ContainsFunc(x.podsOf(t), lives) {
		t.State = tasks.Stopping
	}
}

// servingPods returns the pods by which a serving task without a Workload exists: those
// that Kueue had time to create one for. Without any it is stopped.
func (x *Index) servingPods(t *tasks.Task) (found []*Pod) {
	for _, p := range x.podsOf(t) {
		if p.ended() || p.DeletionTimestamp != nil {
			continue
		}
		if wait := WorkloadGrace - x.Now().Sub(p.CreationTimestamp.Time); wait > 0 && wait <= WorkloadGrace {
			x.rebuildLater(t.Key(), wait)
			continue
		}
		found = append(found, p)
	}
	return found
}

// stopped makes t a task that is scaled to 0; nil if it has no queue.
func (x *Index) stopped(t *tasks.Task, j *job) *tasks.Task {
	if j.queue == "" {
		return nil
	}
	t.NoWorkload, t.State, t.Reason, t.StoppedReplicas = false, tasks.Stopped, "", j.stoppedReplicas
	t.Main.Spec.Active = ptr.To(false)
	t.Size.Wanted = int64(j.stoppedReplicas)
	return t
}

// taskOfPod returns the task that a pod is a part of by its controllers; nil for none.
func (x *Index) taskOfPod(p *Pod) *tasks.Task {
	owners := []types.UID{p.ElasticJob, p.Owner}
	if d := x.deployment(p); d != nil {
		owners = append(owners, d.UID)
	}
	for _, owner := range owners {
		if t := x.tasks[tasks.Key{Namespace: p.Namespace, UID: string(owner)}]; t != nil && owner != "" {
			return t
		}
	}
	return nil
}
