package index

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodName names a pod.
type PodName struct{ Namespace, Name string }

func (x *Index) PodOwners() map[PodName]*tasks.Task {
	x.mu.Lock()
	var holding []*tasks.Task
	for _, t := range x.tasks {
		if t.State.UsesQuota() || t.NoWorkload && !t.State.Finished() {
			holding = append(holding, t)
		}
	}
	x.mu.Unlock()
	found := map[PodName]*tasks.Task{}
	for _, t := range holding { // one task at a time, so that others get the lock
		x.mu.Lock()
		for _, p := range x.podsOf(t) {
			if !p.ended() {
				found[PodName{p.Namespace, p.Name}] = t
			}
		}
		x.mu.Unlock()
	}
	return found
}

const (
	groupName = "kueue.x-k8s.io/pod-group-name" // a label, or an annotation (Kueue 0.18 and later)

	// Kueue's labels on pods: of templates that it admits, and of pods that are
	// Workloads themselves.
	podSetLabel     = "kueue.x-k8s.io/podset"
	managedLabel    = "kueue.x-k8s.io/managed"
	localQueueLabel = "kueue.x-k8s.io/local-queue-name" // Kueue 0.17 and later
)

// Pod is what the cache keeps of a pod. It is immutable.
type Pod struct {
	metav1.ObjectMeta           // name, namespace, UID and creation time
	Owner             types.UID // its controller; empty for none
	ElasticJob        types.UID // whose Job its controller is, also once that is deleted; empty for none
	Deployment        string    // name, of the one whose ReplicaSet its controller is; empty for none
	Group             string    // pod group; empty for none
	Node              string    // empty while it has none
	Phase             corev1.PodPhase
	Gated             bool // a scheduling gate keeps it from the scheduler
	Provision         bool // growth that asks for a node, which need not exist yet
	Ready             bool
	Problem           string    // the scheduler's message while it finds no node
	Since             time.Time // of its problem
	Trouble           *Trouble  // of its containers; nil for none
	containers        string    // names, see Containers
	endedContainers   uint64    // bits of those that have ended, in the order of containers
	Requests          quota.Resources
	Index             *int32 // of an array, or its place in another Job of indexes; nil for none
	queue, class      string // by its labels
	admittedTo        string // LocalQueue, by Kueue's label; empty if unknown
	part              bool   // of the job that is the task
	admitted          bool   // Kueue labels the pods of what it admits
}

func (p *Pod) ended() bool { return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed }

// terminating reports whether the pod is deleted, and its node still counts its requests.
func (p *Pod) terminating() bool { return p.Node != "" && !p.ended() && p.DeletionTimestamp != nil }

// Unscheduled reports whether the pod waits for a node that should have room for it.
func (p *Pod) Unscheduled() bool {
	return p.Node == "" && !p.Gated && !p.Provision && !p.ended() && p.DeletionTimestamp == nil
}

// slimPod returns what the cache keeps of a pod, for a watch.
func (x *Index) slimPod(object any) (any, error) {
	if o, ok := object.(*corev1.Pod); ok {
		return x.PodOf(o), nil
	}
	return object, nil
}

// PodOf returns what the cache keeps of a pod.
func (x *Index) PodOf(o *corev1.Pod) *Pod {
	p := &Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: intern(o.Namespace), Name: o.Name, UID: o.UID, CreationTimestamp: o.CreationTimestamp, DeletionTimestamp: o.DeletionTimestamp},
		Node:       intern(o.Spec.NodeName), Phase: corev1.PodPhase(intern(string(o.Status.Phase))), Gated: len(o.Spec.SchedulingGates) > 0, Provision: o.Spec.PriorityClassName == v1alpha1.ProvisionClass,
		Group: intern(cmp.Or(o.Annotations[groupName], o.Labels[groupName])),
		queue: intern(o.Labels[tasks.QueueLabel]), class: intern(o.Labels[desired.PriorityClassLabel]),
		Requests: x.requests.of(tasks.PodRequests(&o.Spec)),
		admitted: o.Labels[podSetLabel] != "" || o.Labels[managedLabel] == "true", admittedTo: intern(cmp.Or(o.Labels[localQueueLabel], o.Labels[tasks.QueueLabel])),
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		p.Owner = owner.UID
		p.part = managed[owner.Kind] || p.queue == ""
		p.Deployment = deploymentOf(o, owner)
		if owner.Kind == "Job" {
			_, p.ElasticJob = v1alpha1.ElasticJobOf(owner.Name, o.Labels)
		}
	}
	for i := range o.Status.Conditions {
		switch c := &o.Status.Conditions[i]; {
		case c.Type == corev1.PodReady:
			p.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable:
			p.Problem, p.Since = intern(truncate(tasks.FirstLine(c.Message))), c.LastTransitionTime.Time
		}
	}
	p.Trouble = troubleOf(&o.Status)
	if place, err := strconv.ParseInt(o.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32); err == nil {
		first, _ := strconv.ParseInt(o.Annotations[tasks.ArrayFirstAnnotation], 10, 32)
		p.Index = new(int32(place + first))
	}
	p.setContainers(o)
	return p
}

// setContainers keeps the names of the containers as one text, which pods of equal
// templates share: "init,sidecar|main".
func (p *Pod) setContainers(o *corev1.Pod) {
	var names strings.Builder
	ended := map[string]bool{}
	for _, list := range [][]corev1.ContainerStatus{o.Status.InitContainerStatuses, o.Status.ContainerStatuses} {
		for i := range list {
			ended[list[i].Name] = list[i].State.Terminated != nil
		}
	}
	n := 0
	add := func(list []corev1.Container) {
		for i := range list {
			if i > 0 {
				names.WriteByte(',')
			}
			names.WriteString(list[i].Name)
			if ended[list[i].Name] {
				p.endedContainers |= 1 << n // further than 64 are never shown as ended
			}
			n++
		}
	}
	add(o.Spec.InitContainers)
	names.WriteByte('|')
	add(o.Spec.Containers)
	p.containers = intern(names.String())
}

// Containers returns the names of the init containers and of the others.
func (p *Pod) Containers() (initial, main []string) {
	before, after, _ := strings.Cut(p.containers, "|")
	split := func(names string) []string {
		if names == "" {
			return nil
		}
		return strings.Split(names, ",")
	}
	return split(before), split(after)
}

// HasEnded reports whether a container of the pod has ended and was not started again.
func (p *Pod) HasEnded(container string) bool {
	initial, main := p.Containers()
	i := slices.Index(append(initial, main...), container)
	return i >= 0 && p.endedContainers&(1<<i) != 0
}

// ExitCode returns with what the pod ended; nil while it has not, and if unknown.
func (p *Pod) ExitCode() *int32 {
	switch {
	case p.Phase == corev1.PodSucceeded:
		return new(int32(0))
	case p.Phase == corev1.PodFailed && p.Trouble != nil && p.Trouble.Terminated.Container != "":
		return new(p.Trouble.Terminated.ExitCode)
	}
	return nil
}

// Restarts returns how often containers of the pod were started again.
func (p *Pod) Restarts() int32 {
	if p.Trouble == nil {
		return 0
	}
	return p.Trouble.Restarts
}

func (x *Index) SetPod(p *Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removePod(p.UID)
	x.pods[p.UID] = p
	if p.Owner != "" {
		addTo(x.podsBy, member{p.Namespace, string(p.Owner)}, p)
	}
	if p.ElasticJob != "" {
		addTo(x.podsBy, member{p.Namespace, string(p.ElasticJob)}, p)
	}
	if p.Deployment != "" {
		addTo(x.podsBy, podsOfDeployment(p.Namespace, p.Deployment), p)
	}
	if p.Group != "" {
		addTo(x.podsIn, member{p.Namespace, p.Group}, p)
	}
	if p.terminating() {
		x.terminating[p] = struct{}{}
	}
	if p.Unscheduled() {
		addTo(x.unscheduled, p.Namespace, p)
	}
	x.addPodUsage(p, 1)
	x.regroup(p)
	x.podChanged(p)
}

func (x *Index) deletePod(p *Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removePod(p.UID)
	x.podChanged(p)
}

func (x *Index) removePod(uid types.UID) {
	p := x.pods[uid]
	if p == nil {
		return
	}
	delete(x.pods, uid)
	delete(x.terminating, p)
	removeFrom(x.unscheduled, p.Namespace, p)
	removeFrom(x.podsBy, member{p.Namespace, string(p.Owner)}, p)
	removeFrom(x.podsBy, member{p.Namespace, string(p.ElasticJob)}, p)
	removeFrom(x.podsBy, podsOfDeployment(p.Namespace, p.Deployment), p)
	removeFrom(x.podsIn, member{p.Namespace, p.Group}, p)
	x.addPodUsage(p, -1)
}

// addPodUsage adds or subtracts the requests of a pod that has not ended to those
// of its node.
func (x *Index) addPodUsage(p *Pod, sign int64) {
	if p.Node == "" || p.ended() {
		return
	}
	on := x.nodeUsage[p.Node]
	if on == nil {
		on = &nodeUsage{requests: quota.Resources{}, admitted: map[tasks.Place]quota.Resources{}, unplaced: map[*Pod]struct{}{}}
		x.nodeUsage[p.Node] = on
	}
	on.pods += sign
	for name, amount := range p.Requests {
		on.requests[name] = on.requests[name].Plus(amount.Times(sign))
	}
	switch place := (tasks.Place{Namespace: p.Namespace, LocalQueue: p.admittedTo}); {
	case !p.admitted:
	case p.admittedTo != "":
		of := on.admitted[place]
		if of == nil {
			of = quota.Resources{}
			on.admitted[place] = of
		}
		empty := true
		for name, amount := range p.Requests {
			of[name] = of[name].Plus(amount.Times(sign))
		}
		for _, amount := range of {
			empty = empty && amount == 0
		}
		if empty {
			delete(on.admitted, place)
		}
	case sign > 0:
		on.unplaced[p] = struct{}{}
	default:
		delete(on.unplaced, p)
	}
	if on.pods <= 0 {
		delete(x.nodeUsage, p.Node)
	}
}

// nodeUsage sums the requests of a node's pods.
type nodeUsage struct {
	pods     int64
	requests quota.Resources
	admitted map[tasks.Place]quota.Resources // of pods that Kueue admitted
	unplaced map[*Pod]struct{}               // those of them without their LocalQueue
}

// podChanged rebuilds a task without a Workload when its pods change, and a Deployment
// when one is deleted. A pod without a job can be a task of its own.
func (x *Index) podChanged(p *Pod) {
	part := p.part || x.deployment(p) != nil
	if alone := (tasks.Key{Namespace: p.Namespace, UID: string(p.UID)}); x.jobs[alone] != nil && (part || p.Group != "") { // it was adopted
		x.removeJob(x.jobs[alone])
	}
	if !part {
		if j := p.job(x); j.ended {
			x.removeJob(j)
		} else {
			x.addJob(j)
		}
	}
	deleted := x.pods[p.UID] != p || p.DeletionTimestamp != nil || p.ended()
	t := x.taskOfPod(p)
	if t != nil && (len(t.Parts) == 0 || deleted && t.Kind == tasks.DeploymentKind || x.unplaced(t) != t.Unplaced) {
		x.rebuild(t.Key(), false)
	}
}

// unplaced reports whether fewer pods of a running task have a node than it starts with.
func (x *Index) unplaced(t *tasks.Task) bool {
	if !x.podsComplete || len(t.Parts) == 0 || t.State != tasks.Running && !t.Unplaced {
		return false
	}
	if t.Size.Wanted == 0 {
		return !t.IsServing()
	}
	if len(x.unscheduled[t.Namespace]) == 0 {
		return false
	}
	_, count := x.countPods(t)
	return count.Unscheduled > 0 && t.Size.Admitted-int64(count.Unscheduled) < t.Size.Min
}

// job returns a pod, or its pod group, as a job of its own.
func (p *Pod) job(x *Index) *job {
	there := x.pods[p.UID] != nil
	if p.Group == "" {
		return &job{ObjectMeta: p.ObjectMeta, kind: "Pod", alone: true, queue: p.queue, class: p.class, ended: !there || p.ended() || p.DeletionTimestamp != nil}
	}
	first, ended := p, true // the oldest pod stands for its group
	for other := range x.podsIn[member{p.Namespace, p.Group}] {
		ended = ended && (other.ended() || other.DeletionTimestamp != nil)
		if !there || cmp.Or(other.CreationTimestamp.Compare(first.CreationTimestamp.Time), strings.Compare(other.Name, first.Name)) < 0 {
			first, there = other, true
		}
	}
	j := &job{ObjectMeta: first.ObjectMeta, kind: tasks.PodGroup, alone: true, queue: first.queue, class: first.class, ended: ended}
	j.Name, j.UID = p.Group, types.UID(groupUID(p.Group))
	return j
}

// groupUID returns a stand-in for the UID of a pod group, which is no object.
func groupUID(name string) string { return "group/" + name }

// podsOf returns the pods of a task by name: those of its owner, of its jobs and of
// its groups, or the one that it is.
func (x *Index) podsOf(t *tasks.Task) []*Pod {
	found := map[*Pod]struct{}{}
	if p := x.pods[types.UID(t.UID)]; p != nil && p.Namespace == t.Namespace {
		found[p] = struct{}{}
	}
	seen := map[types.UID]bool{}
	var below func(uid types.UID)
	below = func(uid types.UID) {
		if seen[uid] {
			return
		}
		seen[uid] = true
		for p := range x.podsBy[member{t.Namespace, string(uid)}] {
			found[p] = struct{}{}
			below(p.UID) // such as executors of a driver
		}
		for child := range x.children[member{t.Namespace, string(uid)}] {
			below(child)
		}
	}
	below(types.UID(t.UID))
	if t.Kind == tasks.DeploymentKind {
		if d := x.deployments[member{t.Namespace, t.Name}]; d == nil || string(d.UID) == t.UID {
			for p := range x.podsBy[podsOfDeployment(t.Namespace, t.Name)] {
				found[p] = struct{}{}
			}
		}
	}
	for p := range x.podsIn[member{t.Namespace, t.Main.Name}] {
		found[p] = struct{}{}
	}
	for _, w := range t.Parts {
		for p := range x.podsIn[member{t.Namespace, w.Name}] {
			found[p] = struct{}{}
		}
	}
	list := make([]*Pod, 0, len(found))
	for p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Pod) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// TerminatingPods returns the pods that are deleted and still run.
func (x *Index) TerminatingPods() (found []explain.TerminatingPod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p := range x.terminating {
		t := explain.TerminatingPod{Node: p.Node, Namespace: p.Namespace, Requests: p.Requests, Until: p.DeletionTimestamp.Time}
		if of := x.taskOfPod(p); of != nil {
			t.Kind, t.Name, t.UID = of.Kind, of.Name, of.UID
		}
		found = append(found, t)
	}
	return found
}

// PodsSynced reports whether the index has all pods of the start.
func (x *Index) PodsSynced() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.podsComplete
}

// PodCount counts the pods of a task.
type PodCount struct {
	Total       int // that have not ended
	Unscheduled int // that wait for a node
	Gated       int // with a scheduling gate
	Ended       int
}

// Pods returns the pods of a task, by name.
func (x *Index) Pods(t *tasks.Task) ([]*Pod, PodCount) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.countPods(t)
}

func (x *Index) countPods(t *tasks.Task) (list []*Pod, n PodCount) {
	list = x.podsOf(t)
	for _, p := range list {
		switch {
		case p.ended():
			n.Ended++
			continue
		case p.Unscheduled():
			n.Unscheduled++
		case p.Gated && p.Node == "":
			n.Gated++
		}
		n.Total++
	}
	return list, n
}
