package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
)

// objects is the part of client.Client that Kueue's scheduler, caches and queues
// call, on objects in memory. Any other call is an error, or a panic of the nil
// client, so that a call that a new version of Kueue adds does not stay unnoticed.
type objects struct {
	client.Client
	namespaces    map[string]*corev1.Namespace
	clusterQueues map[string]*kueue.ClusterQueue
	localQueues   map[client.ObjectKey]*kueue.LocalQueue
	limitRanges   map[string][]corev1.LimitRange // by namespace
	// admitted are the Workloads that have quota in the snapshot, by LocalQueue.
	admitted map[client.ObjectKey][]kueue.Workload

	mu        sync.Mutex // Kueue preempts in parallel
	workloads map[client.ObjectKey]*kueue.Workload
	changed   map[client.ObjectKey]*kueue.Workload // as they were before, since the last call of takeChanged
}

func newObjects() *objects {
	return &objects{
		namespaces: map[string]*corev1.Namespace{}, clusterQueues: map[string]*kueue.ClusterQueue{}, localQueues: map[client.ObjectKey]*kueue.LocalQueue{}, limitRanges: map[string][]corev1.LimitRange{},
		admitted: map[client.ObjectKey][]kueue.Workload{}, workloads: map[client.ObjectKey]*kueue.Workload{}, changed: map[client.ObjectKey]*kueue.Workload{},
	}
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: kueue.SchemeGroupVersion.Group, Resource: resource}, name)
}

// Get returns copies, as a client with a cache does.
func (o *objects) Get(_ context.Context, key client.ObjectKey, to client.Object, _ ...client.GetOption) error {
	switch to := to.(type) {
	case *kueue.Workload:
		o.mu.Lock()
		defer o.mu.Unlock()
		return copyTo(to, o.workloads[key], "workloads", key)
	case *corev1.Namespace:
		return copyTo(to, o.namespaces[key.Name], "namespaces", key)
	case *kueue.LocalQueue:
		return copyTo(to, o.localQueues[key], "localqueues", key)
	case *kueue.ClusterQueue:
		return copyTo(to, o.clusterQueues[key.Name], "clusterqueues", key)
	}
	return fmt.Errorf("get %T: not part of a simulation", to)
}

// copyTo copies an object, or returns that it is not found if it is nil.
func copyTo[T any, P interface {
	*T
	DeepCopyInto(*T)
}](to, from P, resource string, key client.ObjectKey) error {
	if from == nil {
		return notFound(resource, key.Name)
	}
	from.DeepCopyInto(to)
	return nil
}

// List returns the LocalQueues of a ClusterQueue, the LimitRanges of a namespace, and
// the admitted Workloads of a LocalQueue: the queues must know them so that their end
// lets others be tried again. All other Workloads are not listed, because the caches
// get them by events.
func (o *objects) List(_ context.Context, to client.ObjectList, options ...client.ListOption) error {
	var by client.ListOptions
	by.ApplyOptions(options)
	switch to := to.(type) {
	case *kueue.LocalQueueList:
		o.listLocalQueues(to, by)
	case *corev1.LimitRangeList:
		to.Items = o.limitRanges[by.Namespace]
	case *kueue.WorkloadList:
		if queue, has := by.FieldSelector.RequiresExactMatch(indexer.WorkloadQueueKey); has {
			to.Items = slices.Clone(o.admitted[client.ObjectKey{Namespace: by.Namespace, Name: queue}])
		}
	case *corev1.NodeList, *corev1.PodList:
	default:
		return fmt.Errorf("list %T: not part of a simulation", to)
	}
	return nil
}

func (o *objects) listLocalQueues(list *kueue.LocalQueueList, by client.ListOptions) {
	for _, q := range o.localQueues {
		if of, has := by.FieldSelector.RequiresExactMatch(indexer.QueueClusterQueueKey); has && string(q.Spec.ClusterQueue) == of {
			list.Items = append(list.Items, *q)
		}
	}
	slices.SortFunc(list.Items, func(a, b kueue.LocalQueue) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// Status returns the writer of Workload status.
func (o *objects) Status() client.SubResourceWriter { return statusWriter{objects: o} }

type statusWriter struct {
	client.SubResourceWriter
	objects *objects
}

// scheduledConditions are those that Kueue's admission manager owns: an apply
// without one removes it.
var scheduledConditions = []string{
	kueue.WorkloadQuotaReserved, kueue.WorkloadBlockedOnPreemptionGates, kueue.WorkloadEvicted, kueue.WorkloadAdmitted,
	kueue.WorkloadPreempted, kueue.WorkloadRequeued, kueue.WorkloadDeactivationTarget, kueue.WorkloadFinished, kueue.WorkloadPodsReady,
}

// Patch applies the status that Kueue's admission manager owns, and sets w to the
// result.
func (s statusWriter) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	w, ok := object.(*kueue.Workload)
	if !ok {
		return fmt.Errorf("patch the status of %T: not part of a simulation", object)
	}
	key := client.ObjectKeyFromObject(w)
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	old := s.objects.workloads[key]
	if old == nil {
		return notFound("workloads", key.Name)
	}
	next := old.DeepCopy()
	status := w.Status.DeepCopy()
	next.Status.Admission, next.Status.RequeueState, next.Status.AdmissionChecks = status.Admission, status.RequeueState, status.AdmissionChecks
	next.Status.ResourceRequests, next.Status.SchedulingStats = status.ResourceRequests, status.SchedulingStats
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c metav1.Condition) bool { return slices.Contains(scheduledConditions, c.Type) })
	for _, c := range status.Conditions {
		c.LastTransitionTime = c.LastTransitionTime.Rfc3339Copy() // the API's resolution
		next.Status.Conditions = append(next.Status.Conditions, c)
	}
	s.objects.set(key, next)
	next.DeepCopyInto(w)
	return nil
}

// set replaces a Workload, and remembers what it was. The caller locks.
func (o *objects) set(key client.ObjectKey, w *kueue.Workload) {
	if _, known := o.changed[key]; !known {
		o.changed[key] = o.workloads[key]
	}
	o.workloads[key] = w
}

// takeChanged returns the keys of the changed Workloads, sorted, with what each was
// before, and forgets them.
func (o *objects) takeChanged() (keys []client.ObjectKey, before map[client.ObjectKey]*kueue.Workload) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before = o.changed
	o.changed = map[client.ObjectKey]*kueue.Workload{}
	for key := range before {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys, before
}

// isTrue reports whether a condition of a Workload is true.
func isTrue(w *kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}
