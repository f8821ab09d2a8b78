package tasks

import (
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/format"
)

// minFolded is how many preemptions that repeat one another are told as one.
const minFolded = 3

// holdDelay is how far the eviction of a task may be from the hold that causes it.
// It may come first: Kueue keeps the time of a preemption that it follows.
const holdDelay = 10 * time.Second

// fold is what a preemption stands for that repeats others.
type fold struct {
	times int32
	first time.Time
	ran   time.Duration // before all of them; negative where none is known
}

// chains are the preemptions that repeat one another, by their places in a life;
// one that repeats none is a chain by itself.
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

// timesOf is how often a chain preempted its task: by Kueue's count, since
// several preemptions of one second may be told as one.
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

// folded is a life with one step in the place of preemptions that repeat one
// another, and of what lies between them. What Kueue does because the loop guard
// holds a task is left out: the hold tells of it. holds says that the task has its
// quota after all of that.
func folded(life []event, holds bool) []event {
	life = slices.Clone(life)
	gone := make([]bool, len(life))
	for _, chain := range chains(life) {
		if timesOf(life, chain) < minFolded {
			continue
		}
		last := chain[len(chain)-1]
		life[last].fold = foldOf(life, chain)
		for k := chain[0]; k < last; k++ {
			if what := life[k].Type; what == timeline.Preempted || gainsQuota(what) || what == timeline.Requeued {
				gone[k] = gone[k] || life[k].WorkloadUID == life[last].WorkloadUID
			}
		}
		// Of what happened in the second of the last one, the order is not known.
		end := last + 1
		for end < len(life) && life[end].At.Unix() == life[last].At.Unix() {
			end++
		}
		told := map[timeline.EventType]bool{}
		for k := end - 1; k > last; k-- {
			if what := life[k].Type; gainsQuota(what) && life[k].WorkloadUID == life[last].WorkloadUID {
				gone[k] = told[what] || !admittedAfter(life, k, holds)
				told[what] = true
			}
		}
	}
	var kept []event
	for i, l := range life {
		if !gone[i] && !causedByHold(life, l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// gainsQuota reports whether a task gains its quota by a step, or runs with it.
func gainsQuota(what timeline.EventType) bool {
	return what == timeline.Reserved || what == timeline.Admitted || what == timeline.Ready
}

// admittedAfter reports whether a Workload had its quota after the second of a step: it
// countLosses that later on, without an admission in between, or never.
func admittedAfter(life []event, i int, holds bool) bool {
	for _, l := range life[i+1:] {
		switch {
		case l.WorkloadUID != life[i].WorkloadUID || l.At.Unix() == life[i].At.Unix():
		case l.Type == timeline.Admitted, l.Deactivated() && causedByHold(life, l):
			return false
		case l.Type.Lost(), l.Type == timeline.Finished:
			return true
		}
	}
	return holds
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

// title says how often and for how long a task was preempted.
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
