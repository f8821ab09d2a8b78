package tasks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelpers "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// failures are the reasons of Workloads that failed: other reasons are Kueue's own.
// FailedToStart has no name in Kueue's API (0.19).
var failures = []string{kueue.WorkloadFinishedReasonFailed, kueue.WorkloadFinishedReasonOutOfSync, "FailedToStart"}

// Part is one Workload of a task.
type Part struct {
	Workload  *kueue.Workload
	State     State
	Condition *metav1.Condition // that decides the state; nil for none
	Priority  int32
	Pods      int64 // pods
	MinPods   int64
	Admitted  int64
}

// OwnerOf returns the owner by which people know a Workload. A pod group has many
// owners, and a Workload that was created by hand none: such Workloads are their
// own owners.
func OwnerOf(w *kueue.Workload) (kind, name, uid string) {
	o := metav1.GetControllerOfNoCopy(w)
	for i := range w.OwnerReferences { // the pods of a StatefulSet are owners too
		if o == nil && w.OwnerReferences[i].Kind != "Pod" {
			o = &w.OwnerReferences[i]
		}
	}
	switch {
	case o == nil && len(w.OwnerReferences) == 0:
		return "Workload", w.Name, string(w.UID)
	case o == nil:
		return PodGroup, w.Name, string(w.UID)
	}
	if !plain(o.Kind) || !plain(o.Name) { // no object has such a name, but a reference may
		return "Workload", w.Name, string(w.UID)
	}
	return o.Kind, o.Name, string(o.UID)
}

// plain reports whether text can be a kind or a name in Kubernetes.
func plain(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return text != "" && text != "." && text != ".."
}

func ReadPart(w *kueue.Workload) Part {
	p := Part{Workload: w, Priority: ptr.Deref(w.Spec.Priority, 0)}
	p.State, p.Condition = state(w)
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		p.Pods += int64(set.Count)
		p.MinPods += int64(ptr.Deref(set.MinCount, set.Count))
	}
	for set := range admitted.PodSets(w) {
		p.Admitted += int64(set.Count)
	}
	return p
}

func (p Part) isReplaced() bool {
	return p.State.Finished() && p.Condition != nil && p.Condition.Reason == kueue.WorkloadSliceReplaced
}

// state returns the state of a Workload, and the condition that decides it.
func state(w *kueue.Workload) (State, *metav1.Condition) {
	get := func(name string) (*metav1.Condition, bool) {
		c := meta.FindStatusCondition(w.Status.Conditions, name)
		return c, c != nil && c.Status == metav1.ConditionTrue
	}
	finished, isFinished := get(kueue.WorkloadFinished)
	evicted, isEvicted := get(kueue.WorkloadEvicted)
	reserved, hasQuota := get(kueue.WorkloadQuotaReserved)
	admitted, isAdmitted := get(kueue.WorkloadAdmitted)
	ready, _ := get(kueue.WorkloadPodsReady)
	_, isPreempted := get(kueue.WorkloadPreempted)
	switch {
	case isFinished && slices.Contains(failures, finished.Reason):
		return Failed, finished
	case isFinished:
		return Succeeded, finished
	case isEvicted && hasQuota:
		return Stopping, evicted
	case w.Spec.Active != nil && !*w.Spec.Active && hasQuota: // Kueue has not seen it yet
		return Stopping, reserved
	case HeldByLoopGuard(w):
		return Preempted, evicted
	case w.Spec.Active != nil && !*w.Spec.Active:
		return Stopped, evicted
	case !hasQuota && reserved != nil && reserved.Reason == kueue.WorkloadOnHold && servesReplicas(w): // scaled to 0 (0.19)
		return Stopped, reserved
	case isAdmitted && ready != nil && ready.Status == metav1.ConditionFalse:
		return Starting, ready
	case isAdmitted:
		return Running, admitted
	case hasQuota:
		return Starting, admitted
	case isPreempted:
		return Preempted, reserved
	}
	return Pending, reserved
}

// HeldByLoopGuard reports whether the loop guard keeps w out of admission.
func HeldByLoopGuard(w *kueue.Workload) bool {
	_, held := loopguard.HoldOf(w)
	return held
}

// times sets when a part waited and ran. before is the earlier task: Kueue does not
// keep the begin of a second wait once it has ended.
func (p Part) times(t *Task, before *Task) {
	when := func(name string, status metav1.ConditionStatus) time.Time {
		if c := meta.FindStatusCondition(p.Workload.Status.Conditions, name); c != nil && (status == "" || c.Status == status) {
			return c.LastTransitionTime.Time
		}
		return time.Time{}
	}
	waits := slices.MaxFunc([]time.Time{p.Workload.CreationTimestamp.Time, when(kueue.WorkloadRequeued, ""), when(kueue.WorkloadEvicted, metav1.ConditionTrue)}, time.Time.Compare)
	admitted := when(kueue.WorkloadAdmitted, metav1.ConditionTrue)
	switch {
	case p.State.Waiting():
		t.WaitingSince = waits
	case p.State == Starting && admitted.IsZero(): // it waits for its checks
		t.WaitingSince = waits
		if before != nil && before.Main != nil && before.Main.UID == p.Workload.UID && !before.WaitingSince.IsZero() {
			t.WaitingSince = before.WaitingSince
		}
	case !admitted.IsZero():
		if before != nil && before.Main != nil && before.Main.UID == p.Workload.UID {
			switch {
			case before.AdmittedAt.Equal(admitted):
				t.LastWait = before.LastWait
			case !before.WaitingSince.IsZero():
				waits = before.WaitingSince
			}
		}
		if t.LastWait == 0 {
			t.LastWait = max(0, admitted.Sub(waits))
		}
	}
	t.AdmittedAt = admitted
	t.FinishedAt = when(kueue.WorkloadFinished, metav1.ConditionTrue)
	if s := p.Workload.Status.AccumulatedPastExecutionTimeSeconds; s != nil {
		t.RanBefore = max(0, time.Duration(*s)*time.Second)
	}
	if r := p.Workload.Status.RequeueState; r != nil && r.RequeueAt != nil {
		t.RetryAt = r.RequeueAt.Time
	}
}

// ran returns how long a completed or replaced part had quota.
func (p Part) ran() time.Duration {
	var t Task
	p.times(&t, nil)
	if t.FinishedAt.IsZero() {
		return t.RanBefore
	}
	return t.Ran(t.FinishedAt)
}

// pools adds the flavors of an admission to found, sorted.
func pools(admission *kueue.Admission, found []string) []string {
	for i := range admission.PodSetAssignments {
		for _, pool := range admission.PodSetAssignments[i].Flavors {
			if !slices.Contains(found, string(pool)) {
				found = append(found, string(pool))
			}
		}
	}
	slices.Sort(found)
	return found
}

// asked adds the requests of a Workload: what Kueue counts, or before it does, the
// requests of a pod × its count.
func asked(w *kueue.Workload, into quota.Resources) {
	if w.Status.Admission == nil && len(w.Status.ResourceRequests) > 0 {
		for i := range w.Status.ResourceRequests {
			for name, amount := range w.Status.ResourceRequests[i].Resources {
				into[string(name)] = into[string(name)].Plus(resources.AmountFromQuantity(string(name), amount))
			}
		}
		return
	}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		for name, amount := range PodRequests(&set.Template.Spec) {
			into[name] = into[name].Plus(amount.Times(int64(set.Count)))
		}
	}
}

// PodRequests returns the requests of one pod, as Kubernetes and Kueue count them.
// A limit without a request counts as one, as the API server sets it.
func PodRequests(spec *corev1.PodSpec) quota.Resources {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: withLimits(spec.InitContainers), Containers: withLimits(spec.Containers), Overhead: spec.Overhead, Resources: spec.Resources,
	}}
	total := quota.Resources{}
	for name, amount := range resourcehelpers.PodRequests(pod, resourcehelpers.PodResourcesOptions{}) {
		total[string(name)] = resources.AmountFromQuantity(string(name), amount)
	}
	return total
}

func withLimits(containers []corev1.Container) []corev1.Container {
	some := make([]corev1.Container, len(containers))
	for i := range containers {
		some[i].RestartPolicy = containers[i].RestartPolicy
		requests, limits := containers[i].Resources.Requests, containers[i].Resources.Limits
		some[i].Resources.Requests = requests
		for name, amount := range limits {
			if _, asks := requests[name]; !asks {
				if len(some[i].Resources.Requests) == len(requests) {
					some[i].Resources.Requests = maps.Clone(requests)
				}
				if some[i].Resources.Requests == nil {
					some[i].Resources.Requests = corev1.ResourceList{}
				}
				some[i].Resources.Requests[name] = amount
			}
		}
	}
	return some
}

// FirstLine returns the first line of a message.
func FirstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return text
}

// byAge orders parts, the oldest first. Of slices created in the same second, the
// replaced ones come first.
func byAge(parts []Part) {
	named := make(map[string]*kueue.Workload, len(parts))
	for _, p := range parts {
		named[p.Workload.Namespace+"/"+p.Workload.Name] = p.Workload
	}
	before := func(w *kueue.Workload) (n int) {
		for n < len(parts) {
			if w = named[w.Annotations[SliceReplacementAnnotation]]; w == nil {
				break
			}
			n++
		}
		return n
	}
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(a.Workload.CreationTimestamp.Compare(b.Workload.CreationTimestamp.Time), cmp.Compare(before(a.Workload), before(b.Workload)), strings.Compare(a.Workload.Name, b.Workload.Name))
	})
}

// PodGroup is the kind of a task that is a group of pods.
const PodGroup = "PodGroup"

// Annotations of Workloads that tasks are read from.
const (
	// AdmissionGatedByAnnotation keeps a Workload out of admission (Kueue 0.18 and later).
	AdmissionGatedByAnnotation = "kueue.x-k8s.io/admission-gated-by"
	// PriorityBoostAnnotation is added to the priority of a Workload (Kueue 0.17 and
	// later, with the gate PriorityBoost).
	PriorityBoostAnnotation = "kueue.x-k8s.io/priority-boost"
	// SliceNameAnnotation is shared by the Workloads of one elastic job: the name of the
	// first (Kueue 0.18 and later).
	SliceNameAnnotation = "kueue.x-k8s.io/workload-slice-name"
	// SliceReplacementAnnotation names the slice that this one replaces (Kueue 0.18 and later).
	SliceReplacementAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"
	// ElasticJobAnnotation marks the Workloads of elastic jobs (Kueue 0.13 and later).
	ElasticJobAnnotation = "kueue.x-k8s.io/elastic-job"
	// AllowedFlavorsAnnotation restricts the flavors of a Workload (Kueue 0.18 and later,
	// with the gate ConcurrentAdmission).
	AllowedFlavorsAnnotation = "kueue.x-k8s.io/workload-allowed-resource-flavors"
)

// ArrayFirstAnnotation is the first index of an array, on its pods; 0 without it.
const ArrayFirstAnnotation = "kuota.dev/array-first"

// PreemptionConfigAnnotation names the PreemptionConfig of a ClusterQueue (Kueue
// 0.20, with the gate ConfigurablePreemption).
const PreemptionConfigAnnotation = "kueue.x-k8s.io/preemption-config-name"
