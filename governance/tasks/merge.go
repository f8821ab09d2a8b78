package tasks

import (
	"kuota.dev/kuota/governance/admitted"
	"kuota.dev/kuota/governance/quota"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// FromWorkloads reads the Workloads of one owner as one task. before is the task
// that they made earlier, nil for none: it tells what Kueue forgets.
func FromWorkloads(workloads []*kueue.Workload, before *Task) *Task {
	parts := make([]part, 0, len(workloads))
	for _, w := range workloads {
		parts = append(parts, readPart(w))
	}
	byAge(parts)
	chief := decides(parts)
	t := &Task{Namespace: chief.w.Namespace, Queue: string(chief.w.Spec.QueueName), Priority: chief.priority, State: chief.state, main: chief.w}
	t.Kind, t.Name, t.UID = owner(chief.w)
	if ref := chief.w.Spec.PriorityClassRef; ref != nil {
		t.PriorityClass = ref.Name
	}
	if chief.told != nil {
		t.Since = chief.told.LastTransitionTime.Time
		if t.State != Running && t.State != Succeeded {
			t.Reason, t.Message = chief.told.Reason, firstLine(chief.told.Message)
		}
	}
	chief.times(t, before)
	t.Submitted = parts[0].w.CreationTimestamp.Time
	t.measure(parts, chief)
	for i := len(parts) - 1; i >= 0; i-- {
		t.Parts = append(t.Parts, parts[i].w)
		for _, e := range evictions(parts[i].w) {
			t.Evictions += e.Count
			if e.Reason == kueue.WorkloadEvictedByPreemption {
				t.Preemptions += e.Count
			}
		}
		// Slices follow one another, so that their times add up.
		if p := parts[i]; p.w != chief.w && p.w.Annotations[sliceName] != "" && p.w.Annotations[sliceName] == chief.w.Annotations[sliceName] {
			t.RanBefore += p.ran()
		}
	}
	t.AdmittedWorkloads = t.holding()
	return t
}

// decides is the part that tells the state: of those that hold quota the one of
// the highest priority, else of those that want it, else the newest.
func decides(parts []part) part {
	best := -1
	rank := func(p part) int {
		switch {
		case p.isReplaced():
			return 0
		case p.state.Finished():
			return 1
		case p.state.UsesQuota():
			return 3
		}
		return 2
	}
	for i, p := range parts {
		if best < 0 {
			best = i
			continue
		}
		b := parts[best]
		switch r, was := rank(p), rank(b); {
		case r != was:
			if r > was {
				best = i
			}
		case r <= 1, p.priority > b.priority: // the newest of those that ended
			best = i
		}
	}
	return parts[best]
}

// measure fills in sizes and resources.
func (t *Task) measure(parts []part, chief part) {
	elastic := t.Elastic()
	t.Usage, t.Requests = quota.Resources{}, quota.Resources{}
	if chief.state.Finished() {
		t.Size = Size{Min: chief.least, Admitted: 0, Wanted: chief.wanted}
		asked(chief.w, t.Requests)
		if a := chief.w.Status.Admission; a != nil {
			t.Pools = pools(a, nil)
		}
		return
	}
	var newest part
	highest := chief.priority
	for _, p := range parts {
		if !p.state.Finished() && p.priority > highest {
			highest = p.priority
		}
	}
	mixed := false
	for _, p := range parts {
		if p.state.Finished() {
			continue
		}
		mixed = mixed || p.priority != highest
		if p.state.UsesQuota() {
			t.Size.Admitted += p.admitted
			if p.priority == highest {
				t.Size.Guaranteed += p.admitted
			}
			if a := p.w.Status.Admission; a != nil {
				t.Pools = pools(a, t.Pools)
			}
			for set := range admitted.PodSets(p.w) {
				t.Usage.Add(set.Usage)
			}
		} else if chief.state.UsesQuota() && p.told != nil {
			t.PendingMessage = firstLine(p.told.Message)
		}
		if elastic { // a new slice is the whole job in its new size
			newest = p
			continue
		}
		t.Size.Wanted += p.wanted
		if p.priority == highest {
			t.Size.Min += p.least
		}
		asked(p.w, t.Requests)
	}
	if elastic {
		t.Size.Wanted, t.Size.Min = newest.wanted, newest.least
		asked(newest.w, t.Requests)
	}
	if !mixed {
		t.Size.Guaranteed = t.Size.Admitted
	}
}

func evictions(w *kueue.Workload) []kueue.WorkloadSchedulingStatsEviction {
	if s := w.Status.SchedulingStats; s != nil {
		return s.Evictions
	}
	return nil
}
