package tasks_test

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func one(w *kueue.Workload) *tasks.Task { return tasks.FromWorkloads([]*kueue.Workload{w}, nil) }

func is(name, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isNot(name, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// The conditions are those that Kueue 0.19.2 writes.
func TestState(t *testing.T) {
	inactive := false
	cases := map[string]struct {
		conditions  []metav1.Condition
		active      *bool
		want        tasks.State
		wantMessage string
	}{
		"just created":   {nil, nil, tasks.Pending, ""},
		"waiting":        {[]metav1.Condition{isNot(kueue.WorkloadQuotaReserved, "WaitingForQuota", "2 more needed\nsecond line")}, nil, tasks.Pending, "2 more needed"},
		"running":        {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", "The workload is admitted")}, nil, tasks.Running, ""},
		"pods not ready": {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", ""), isNot(kueue.WorkloadPodsReady, "WaitForStart", "Not all pods are ready")}, nil, tasks.Starting, "Not all pods are ready"},
		"checks pending": {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), isNot(kueue.WorkloadAdmitted, "UnsatisfiedChecks", "waits for a check")}, nil, tasks.Starting, "waits for a check"},
		"being evicted":  {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", ""), is(kueue.WorkloadEvicted, "Preempted", "Preempted to accommodate a workload")}, nil, tasks.Stopping, "Preempted to accommodate a workload"},
		"preempted":      {[]metav1.Condition{isNot(kueue.WorkloadQuotaReserved, "WaitingForQuota", "1 more needed"), is(kueue.WorkloadEvicted, "Preempted", ""), is(kueue.WorkloadPreempted, "InClusterQueue", "")}, nil, tasks.Preempted, "1 more needed"},
		"admitted again": {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", ""), isNot(kueue.WorkloadEvicted, "QuotaReserved", "Previously: …"), isNot(kueue.WorkloadPreempted, "QuotaReserved", "Previously: …")}, nil, tasks.Running, ""},
		"deactivated":    {[]metav1.Condition{isNot(kueue.WorkloadQuotaReserved, "Deactivated", ""), is(kueue.WorkloadEvicted, "Deactivated", "The workload is deactivated")}, &inactive, tasks.Stopped, "The workload is deactivated"},
		"succeeded":      {[]metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", ""), is(kueue.WorkloadFinished, "Succeeded", "Job finished successfully")}, nil, tasks.Succeeded, ""},
		"failed":         {[]metav1.Condition{is(kueue.WorkloadFinished, "Failed", "BackoffLimitExceeded")}, nil, tasks.Failed, "BackoffLimitExceeded"},
		"never started":  {[]metav1.Condition{is(kueue.WorkloadFinished, "FailedToStart", "no such pod set")}, nil, tasks.Failed, "no such pod set"},
		"out of sync":    {[]metav1.Condition{is(kueue.WorkloadFinished, "OutOfSync", "The prebuilt workload is out of sync with its user job")}, nil, tasks.Failed, "The prebuilt workload is out of sync with its user job"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := one(&kueue.Workload{Spec: kueue.WorkloadSpec{Active: tc.active}, Status: kueue.WorkloadStatus{Conditions: tc.conditions}})
			if got.State != tc.want || got.Message != tc.wantMessage {
				t.Errorf("got %s with %q, want %s with %q", got.State, got.Message, tc.want, tc.wantMessage)
			}
		})
	}
}

// The conditions are those that Kueue 0.19.2 writes when it deactivates a Workload.
func TestTimedOut(t *testing.T) {
	inactive, limit := false, int32(60)
	for name, tc := range map[string]struct {
		limit   *int32
		message string
		want    bool
	}{
		"at its time limit":    {&limit, "The workload is deactivated due to exceeding the maximum execution time", true},
		"by a user":            {&limit, "The workload is deactivated", false},
		"without a time limit": {nil, "The workload is deactivated due to exceeding the maximum number of re-queuing retries", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := one(&kueue.Workload{
				Spec:   kueue.WorkloadSpec{Active: &inactive, MaximumExecutionTimeSeconds: tc.limit},
				Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{isNot(kueue.WorkloadQuotaReserved, "Deactivated", ""), is(kueue.WorkloadEvicted, "Deactivated", tc.message)}},
			})
			if got.TimedOut() != tc.want {
				t.Errorf("got %t, want %t", got.TimedOut(), tc.want)
			}
		})
	}
}

func TestRequestsAndUsage(t *testing.T) {
	controller := true
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: "job-train-12345", Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "train", Controller: &controller}},
		},
		Spec: kueue.WorkloadSpec{
			PriorityClassRef: &kueue.PriorityClassRef{Name: "training-priority"},
			PodSets: []kueue.PodSet{{Count: 3, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "nvidia.com/gpu": resource.MustParse("2")}},
			}}}}}},
		},
	}
	waiting := one(w)
	if waiting.Name != "train" || waiting.Kind != "Job" || waiting.PriorityClass != "training-priority" || waiting.Requests["cpu"] != 1500 || waiting.Requests["nvidia.com/gpu"] != 6 {
		t.Errorf("the waiting task is %+v", waiting)
	}
	// Of a partial admission the usage counts, not the requests.
	w.Status.Conditions = []metav1.Condition{is(kueue.WorkloadQuotaReserved, "QuotaReserved", ""), is(kueue.WorkloadAdmitted, "Admitted", "")}
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "ml.g5.2xlarge", "nvidia.com/gpu": "ml.g5.2xlarge"},
		ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("4")},
	}}}
	admitted := one(w)
	if admitted.Usage["cpu"] != 1000 || admitted.Usage["nvidia.com/gpu"] != 4 || len(admitted.Pools) != 1 || admitted.Pools[0] != "ml.g5.2xlarge" {
		t.Errorf("the admitted task is %+v", admitted)
	}
	// Kueue gives its quota to others while its pods are ending.
	w.Spec.Active = ptr.To(false)
	if stopping := one(w); stopping.State != tasks.Stopping || len(stopping.Usage) != 0 || stopping.Growing() || stopping.Requests["cpu"] != 1500 {
		t.Errorf("the deactivated task is %+v", stopping)
	}
	bare := one(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "raw"}})
	if bare.Name != "raw" || bare.Kind != "Workload" {
		t.Errorf("the task without an owner is %+v", bare)
	}
}

// The sum of the pods of all sets is right beyond what one set can have.
func TestManyPods(t *testing.T) {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "raw"}, Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "a", Count: 2147483647, MinCount: ptr.To[int32](2147483646)}, {Name: "b", Count: 1000}}}}
	if size := one(w).Size; size.Wanted != 2147484647 || size.Min != 2147484646 {
		t.Errorf("got %+v", size)
	}
}
