// Package taskstest builds Workloads for the tests of the packages of tasks.
package taskstest

import (
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Malformed returns changes by name, each of which makes a Workload malformed.
func Malformed() map[string]func(w *kueue.Workload) {
	later := Start.Add(24 * time.Hour)
	return map[string]func(w *kueue.Workload){
		"no priority":               func(w *kueue.Workload) { w.Spec.Priority = nil },
		"no conditions":             func(w *kueue.Workload) { w.Status.Conditions = nil },
		"created in the future":     func(w *kueue.Workload) { w.CreationTimestamp = metav1.NewTime(later) },
		"waiting since the future":  func(w *kueue.Workload) { w.Status.Conditions = Pending(later) },
		"running since the future":  func(w *kueue.Workload) { w.Status.Conditions = Admitted(later) },
		"ended before it began":     func(w *kueue.Workload) { w.Status.Conditions = Finished(later, Start) },
		"unknown reasons":           func(w *kueue.Workload) { w.Status.Conditions[0].Reason = "SomethingNew" },
		"unknown conditions":        func(w *kueue.Workload) { w.Status.Conditions[0].Type = "SomethingNew" },
		"no reason, no time":        func(w *kueue.Workload) { w.Status.Conditions = []metav1.Condition{{Type: "QuotaReserved"}} },
		"an admission of nothing":   func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{} },
		"no pod sets":               func(w *kueue.Workload) { w.Spec.PodSets = nil },
		"no queue":                  func(w *kueue.Workload) { w.Spec.QueueName = "" },
		"no owner":                  func(w *kueue.Workload) { w.OwnerReferences = nil },
		"an owner without a name":   func(w *kueue.Workload) { w.OwnerReferences[0] = metav1.OwnerReference{} },
		"a megabyte of annotations": func(w *kueue.Workload) { w.Annotations = map[string]string{"a": strings.Repeat("x", 1<<20)} },
		"a megabyte in Kueue's own": func(w *kueue.Workload) {
			w.Annotations = map[string]string{tasks.AdmissionGatedByAnnotation: strings.Repeat("x", 1<<20)}
		},
		"a megabyte of message": func(w *kueue.Workload) { w.Status.Conditions[0].Message = strings.Repeat("ä", 1<<20) },
		"run times below zero":  func(w *kueue.Workload) { w.Status.AccumulatedPastExecutionTimeSeconds = new(int32(-5)) },
		"more evictions than counts": func(w *kueue.Workload) {
			w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: 1 << 30}, {Reason: "New", Count: 1 << 30}}}
		},
	}
}

// Start is the time at which the clock of a test begins.
var Start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// Clock is a time that tests set.
type Clock struct{ At time.Time }

func (c *Clock) Now() time.Time { return c.At }

// Workload returns a Workload that Kueue created for a Job. Empty is without a class.
func Workload(namespace, name, class string, priority int32, created time.Time, conditions ...metav1.Condition) *kueue.Workload {
	yes := true
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "job-" + name, UID: types.UID("w-" + namespace + name), CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: name, UID: types.UID("j-" + namespace + name), Controller: &yes}},
		},
		Spec:   kueue.WorkloadSpec{Priority: &priority, QueueName: "main", PodSets: []kueue.PodSet{{Count: 1}}},
		Status: kueue.WorkloadStatus{Conditions: conditions},
	}
	if class != "" {
		w.Spec.PriorityClassRef = &kueue.PriorityClassRef{Name: class, Kind: kueue.WorkloadPriorityClassKind}
	}
	return w
}

// UsingGPUs sets the admission of w to this many GPUs of a ClusterQueue, and returns w.
func UsingGPUs(w *kueue.Workload, queue string, gpus int64) *kueue.Workload {
	amount := resource.NewQuantity(gpus, resource.DecimalSI)
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue), PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "a100"}, ResourceUsage: corev1.ResourceList{"nvidia.com/gpu": *amount},
	}}}
	return w
}

// Condition returns a condition that is true if yes, and false otherwise.
func Condition(name string, yes bool, reason string, at time.Time) metav1.Condition {
	status := metav1.ConditionFalse
	if yes {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: name, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
}

// Pending returns the conditions of a Workload that waits for quota.
func Pending(at time.Time) []metav1.Condition {
	return []metav1.Condition{Condition("QuotaReserved", false, "WaitingForQuota", at)}
}

// Admitted returns the conditions of an admitted Workload.
func Admitted(at time.Time) []metav1.Condition {
	return []metav1.Condition{Condition("QuotaReserved", true, "QuotaReserved", at), Condition("Admitted", true, "Admitted", at)}
}

// Finished returns the conditions of a Workload that succeeded.
func Finished(admitted, at time.Time) []metav1.Condition {
	return append(Admitted(admitted), Condition("Finished", true, "Succeeded", at))
}

// PreemptedBy returns the conditions of a Workload that Kueue preempted for the
// Workload uid.
func PreemptedBy(uid string, at time.Time) []metav1.Condition {
	c := Condition("Evicted", true, "Preempted", at)
	c.Message = "Preempted to accommodate a workload (UID: " + uid + ", JobUID: x) due to prioritization in the ClusterQueue; preemptor path: /q; preemptee path: /q"
	return append(Pending(at), Condition("Admitted", false, "NoReservation", at), c, Condition("Preempted", true, "InClusterQueue", at))
}

// Teams returns teams by pairs of a namespace and a name, each with a ClusterQueue
// NAME-queue.
func Teams(namespacesAndNames ...string) clusterstate.Teams {
	var allocations []*v1alpha1.ComputeAllocation
	var queues []*kueue.ClusterQueue
	for i := 0; i < len(namespacesAndNames); i += 2 {
		namespace, name := namespacesAndNames[i], namespacesAndNames[i+1]
		allocations = append(allocations, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Status: v1alpha1.ComputeAllocationStatus{Namespace: namespace}})
		queues = append(queues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name + "-queue", Labels: map[string]string{desired.LabelTeam: name}}})
	}
	return clusterstate.NewTeams(allocations, queues, nil)
}
