package tasks

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FromWorkloads reads the Workloads of one owner as one task. before is the task
// that they were earlier, nil for none: it has the begin of a wait, which Kueue
// overwrites.
func FromWorkloads(workloads []*kueue.Workload, before *Task) *Task {
	parts := make([]Part, 0, len(workloads))
	for _, w := range workloads {
		parts = append(parts, ReadPart(w))
	}
	byAge(parts)
	chief := decides(parts)
	t := &Task{Namespace: chief.Workload.Namespace, Queue: string(chief.Workload.Spec.QueueName), Priority: chief.Priority, State: chief.State, Main: chief.Workload}
	t.Kind, t.Name, t.UID = OwnerOf(chief.Workload)
	if ref := chief.Workload.Spec.PriorityClassRef; ref != nil {
		t.PriorityClass = ref.Name
	}
	if chief.Condition != nil {
		t.Since = chief.Condition.LastTransitionTime.Time
		if t.State != Running && t.State != Succeeded {
			t.Reason, t.Message = chief.Condition.Reason, FirstLine(chief.Condition.Message)
		}
	}
	chief.times(t, before)
	t.Submitted = parts[0].Workload.CreationTimestamp.Time
	t.measure(parts, chief)
	if t.Kind == v1alpha1.ElasticJobKind && !isBase(chief.Workload) && before != nil { // its base is deleted
		t.PriorityClass, t.Priority, t.AdmittedAt, t.LastWait, t.Submitted = before.PriorityClass, before.Priority, before.AdmittedAt, before.LastWait, before.Submitted
		if t.State.UsesQuota() {
			t.State = Stopping // its controller deletes growth without a base
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		t.Parts = append(t.Parts, parts[i].Workload)
		if t.IsGrowth(parts[i].Workload) { // it is preempted before its task is
			continue
		}
		of := EvictionsOf(parts[i].Workload)
		t.Evictions += of.Evictions
		t.Preemptions += of.Preemptions
		// Slices follow one another, so that their times add up.
		if p := parts[i]; p.Workload != chief.Workload && p.Workload.Annotations[SliceNameAnnotation] != "" && p.Workload.Annotations[SliceNameAnnotation] == chief.Workload.Annotations[SliceNameAnnotation] {
			t.RanBefore += p.ran()
		}
	}
	if t.IsServing() {
		t.serve(parts, chief, before)
	}
	t.AdmittedWorkloads = t.admittedWorkloads()
	return t
}

// decides returns the part that decides the state: the base of an ElasticJob; else of
// those that use quota the one of the highest priority, else of those that wait, else
// the newest. Of a serving task, parts that run come before those that start or stop.
func decides(parts []Part) Part {
	if bases := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return !isBase(p.Workload) }); len(bases) > 0 {
		parts = bases
	}
	serving := servesReplicas(parts[0].Workload)
	rank := func(p Part) int {
		switch {
		case serving && p.State == Running:
			return 5
		case serving && p.State == Starting:
			return 4
		case p.isReplaced():
			return 0
		case p.State.Finished():
			return 1
		case p.State.UsesQuota():
			return 3
		}
		return 2
	}
	best := parts[0]
	for _, p := range parts[1:] {
		r, was := rank(p), rank(best)
		if r > was || r == was && (r <= 1 || p.Priority > best.Priority) { // the newest of those that ended
			best = p
		}
	}
	return best
}

// measure fills in sizes and resources.
func (t *Task) measure(parts []Part, chief Part) {
	elastic := t.Elastic()
	t.Usage, t.Requests = quota.Resources{}, quota.Resources{}
	if chief.State.Finished() {
		t.Size = Size{Min: chief.MinPods, Admitted: 0, Wanted: chief.Pods}
		asked(chief.Workload, t.Requests)
		if a := chief.Workload.Status.Admission; a != nil {
			t.Pools = pools(a, nil)
		}
		return
	}
	var newest Part
	highest := chief.Priority
	for _, p := range parts {
		if !p.State.Finished() && p.Priority > highest {
			highest = p.Priority
		}
	}
	mixed := false
	for _, p := range parts {
		if p.State.Finished() {
			continue
		}
		mixed = mixed || p.Priority != highest
		if p.State.UsesQuota() {
			t.Size.Admitted += p.Admitted
			if p.Priority == highest {
				t.Size.Guaranteed += p.Admitted
			}
			if a := p.Workload.Status.Admission; a != nil {
				t.Pools = pools(a, t.Pools)
			}
			for set := range admitted.PodSets(p.Workload) {
				t.Usage.Add(set.Usage)
			}
		} else if chief.State.UsesQuota() && p.Condition != nil {
			t.PendingMessage = FirstLine(p.Condition.Message)
		}
		if elastic { // a new slice is the whole job in its new size
			newest = p
			continue
		}
		t.Size.Wanted += p.Pods
		if p.Priority == highest {
			t.Size.Min += p.MinPods
		}
		asked(p.Workload, t.Requests)
	}
	if elastic {
		t.Size.Wanted, t.Size.Min = newest.Pods, newest.MinPods
		asked(newest.Workload, t.Requests)
	}
	if !mixed {
		t.Size.Guaranteed = t.Size.Admitted
	}
}

// admittedWorkloads returns what a task uses of each ClusterQueue: most often of one
// or none.
func (t *Task) admittedWorkloads() (list []explain.AdmittedWorkload) {
	for _, w := range t.Parts {
		for set := range admitted.PodSets(w) {
			of := t.Main // Kueue preempts all Workloads of a task at once, except growth and replicas
			if t.IsGrowth(w) || t.IsServing() {
				of = w
			}
			queue, uid := string(w.Status.Admission.ClusterQueue), string(of.UID)
			at := slices.IndexFunc(list, func(h explain.AdmittedWorkload) bool { return h.Queue == queue && h.WorkloadUID == uid })
			if at < 0 {
				at = len(list)
				list = append(list, explain.AdmittedWorkload{
					Name: t.Name, Kind: t.Kind, Namespace: t.Namespace, UID: t.UID,
					Queue: queue, Priority: ReadPart(of).Priority, QuotaReservedAt: reservedAt(t, of), WorkloadUID: uid, Usage: make(quota.FlavorResourceQuantities, len(set.Usage)),
				})
			}
			set.AddTo(list[at].Usage)
		}
	}
	return list
}

// IsGrowth reports whether w is growth of an ElasticJob: a part beyond its minimum.
func (t *Task) IsGrowth(w *kueue.Workload) bool {
	return t.Kind == v1alpha1.ElasticJobKind && ReadPart(w).Priority < t.Priority
}

// isBase reports whether w is the base of an ElasticJob.
func isBase(w *kueue.Workload) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	return owner != nil && owner.Kind == v1alpha1.ElasticJobKind && slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "Job" && o.Name == v1alpha1.ElasticPartName(owner.Name, 0)
	})
}

// reservedAt returns when Kueue reserved quota for a Workload of a task, which may be
// before its checks were done.
func reservedAt(t *Task, w *kueue.Workload) time.Time {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
		return c.LastTransitionTime.Time
	}
	return t.AdmittedAt
}

// PendingIncrement returns what a task that uses quota waits for, as a task of its own:
// the newest slice of an elastic job, or the first of its pending Workloads in queue
// order. nil if none is pending.
func (t *Task) PendingIncrement() *Task {
	var first *Part
	for _, w := range t.Parts { // the newest first
		if p := ReadPart(w); p.State.Waiting() && (first == nil || p.Priority > first.Priority || p.Priority == first.Priority && !t.Elastic()) {
			first = &p
		}
	}
	if first == nil {
		return nil
	}
	next := &Task{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Queue: t.Queue, PriorityClass: t.PriorityClass, Priority: first.Priority, State: first.State, Main: first.Workload}
	if first.Condition != nil {
		next.Reason, next.Message = first.Condition.Reason, FirstLine(first.Condition.Message)
	}
	first.times(next, nil)
	return next
}
