package tasks

import (
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/format"
)

// minFolded is the least number of repeated preemptions that are shown as one line.
const minFolded = 3

// holdDelay is the largest difference between the eviction of a task and the hold
// that causes it. The eviction can be the earlier of the two: Kueue keeps the time
// of the preemption that it follows.
const holdDelay = 10 * time.Second

// fold summarizes repeated preemptions.
type fold struct {
	times int32
	first time.Time
	ran   time.Duration // before all of them; negative if unknown
}

// chains returns the preemptions that repeat each other, as indices into life. A
// preemption that repeats none is a chain of one.
func chains(life []event) (found [][]int) {
	in := make([]bool, len(life))
	for i := range life {
		if in[i] || life[i].Type != timeline.Preempted {
			continue
		}
		chain := []int{i}
		for k := i + 1; k < len(life); k++ {
			next, last := &life[k].Event, &life[chain[len(chain)-1]].Event
			if next.WorkloadUID != last.WorkloadUID || !next.Type.Lost() && next.Type != timeline.Finished {
				continue
			}
			if !next.Repeats(last) {
				break
			}
			in[k] = true
			chain = append(chain, k)
		}
		found = append(found, chain)
	}
	return found
}

// timesOf returns how often a chain preempted its task, by Kueue's count: several
// preemptions within one second can be one event.
func timesOf(life []event, chain []int) (n int32) {
	first, last := life[chain[0]], life[chain[len(chain)-1]]
	if first.first > 0 && last.PreemptionCount >= first.first {
		return last.PreemptionCount - first.first + 1
	}
	for _, i := range chain {
		n += 1 + life[i].Omitted
	}
	return n
}

func foldOf(life []event, chain []int) *fold {
	f := &fold{times: timesOf(life, chain), first: life[chain[0]].At, ran: -1}
	for _, i := range chain {
		if l := life[i]; l.Ran >= 0 || l.OmittedRan > 0 {
			f.ran = max(0, f.ran) + max(0, l.Ran) + l.OmittedRan
		}
	}
	return f
}

// folded replaces each chain of repeated preemptions in life, and the events between
// them, by one event. It drops what Kueue does because the loop guard holds the
// task: the hold shows it. admitted reports whether the task has its quota after all
// events.
func folded(life []event, admitted bool) []event {
	life = slices.Clone(life)
	dropped := make([]bool, len(life))
	for _, chain := range chains(life) {
		if timesOf(life, chain) < minFolded {
			continue
		}
		last := chain[len(chain)-1]
		life[last].fold = foldOf(life, chain)
		for k := chain[0]; k < last; k++ {
			if what := life[k].Type; what == timeline.Preempted || gainsQuota(what) || what == timeline.Requeued {
				dropped[k] = dropped[k] || life[k].WorkloadUID == life[last].WorkloadUID
			}
		}
		// The order of events within the second of the last one is unknown.
		end := last + 1
		for end < len(life) && life[end].At.Unix() == life[last].At.Unix() {
			end++
		}
		seen := map[timeline.EventType]bool{}
		for k := end - 1; k > last; k-- {
			if what := life[k].Type; gainsQuota(what) && life[k].WorkloadUID == life[last].WorkloadUID {
				dropped[k] = seen[what] || !admittedAfter(life, k, admitted)
				seen[what] = true
			}
		}
	}
	var kept []event
	for i, l := range life {
		if !dropped[i] && !causedByHold(life, l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// gainsQuota reports whether a task gains its quota by an event, or runs with it.
func gainsQuota(what timeline.EventType) bool {
	return what == timeline.Reserved || what == timeline.Admitted || what == timeline.Ready
}

// admittedAfter reports whether the Workload had its quota after the second of an
// event: it lost the quota later without another admission in between, or never.
func admittedAfter(life []event, i int, admitted bool) bool {
	for _, l := range life[i+1:] {
		switch {
		case l.WorkloadUID != life[i].WorkloadUID || l.At.Unix() == life[i].At.Unix():
		case l.Type == timeline.Admitted, l.Deactivated() && causedByHold(life, l):
			return false
		case l.Type.Lost(), l.Type == timeline.Finished:
			return true
		}
	}
	return admitted
}

// causedByHold reports whether Kueue evicted a task because the loop guard holds it.
func causedByHold(life []event, evicted event) bool {
	if !evicted.Deactivated() {
		return false
	}
	return slices.ContainsFunc(life, func(held event) bool {
		after := evicted.At.Truncate(time.Second).Sub(held.At.Truncate(time.Second))
		return held.Type == timeline.Held && held.WorkloadUID == evicted.WorkloadUID && after.Abs() <= holdDelay &&
			!slices.ContainsFunc(life, func(released event) bool {
				return released.Type == timeline.Released && released.WorkloadUID == held.WorkloadUID && released.At.After(held.At) && released.At.Before(evicted.At)
			})
	})
}

// title returns how often and for how long a task was preempted.
func (f *fold) title(last time.Time) string {
	if took := last.Truncate(time.Second).Sub(f.first.Truncate(time.Second)); took > 0 {
		return fmt.Sprintf("Preempted %s in %s", format.Times(f.times), format.Duration(took))
	}
	return fmt.Sprintf("Preempted %s within a second", format.Times(f.times))
}

func (f *fold) ranWords() string {
	if f.ran < 0 {
		return ""
	}
	return "it had run for " + format.Duration(f.ran) + " in all"
}
