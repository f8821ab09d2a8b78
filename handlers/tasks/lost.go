package tasks

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/handlers/format"
)

// starts returns the known starts of the workers of a task: those in history, and those that lines
// of its log tell of.
func (h *Pages) starts(ctx context.Context, uid string, lines []progress.Progress) []progress.Start {
	starts := progress.Starts(lines)
	if h.History == nil {
		return starts
	}
	recorded, err := h.History.TrainingStarts(ctx, uid, readScales)
	if err != nil {
		return starts
	}
	var before []progress.Start
	for _, s := range recorded {
		before = append(before, progress.Start{At: s.At, ContinuedFrom: s.ContinuedFrom})
	}
	return progress.Merged(before, starts)
}

// lostAmount is work that an interruption cost, in hours of a unit.
type lostAmount struct {
	hours float64
	unit  string
}

func lostFor(lost time.Duration, count int64, unit string) lostAmount {
	return lostAmount{lost.Hours() * float64(count), unit}
}

// words describes the amount on a timeline.
func (l lostAmount) words() string {
	if l.hours == 0 {
		return "it lost no work"
	}
	return "it lost " + format.Average(l.hours) + " " + l.unit + " of work"
}

// lostOf returns what changes of size cost, by their index: nothing of one that is not known.
func lostOf(list []scale, starts []progress.Start) map[int]lostAmount {
	var at []int // index in list
	var interruptions []progress.Interruption
	for i, e := range list {
		if e.From > 0 && e.To != e.From { // otherwise nothing ran before
			at, interruptions = append(at, i), append(interruptions, progress.Interruption{At: e.At, Shrinks: e.To < e.From})
		}
	}
	found := map[int]lostAmount{}
	for k, lost := range progress.Lost(starts, interruptions) {
		e := list[at[k]]
		count := int64(e.From)
		if e.Accelerator != "" {
			count *= e.PerPod
		}
		found[at[k]] = lostFor(lost, count, gainUnit(list[at[k]:at[k]+1]))
	}
	return found
}

// lostByPreemption returns words about what the losses of quota of a task cost, by their second;
// none for a task whose size changed, of which it is not known what it used at each.
func lostByPreemption(life []event, uses quota.Resources, starts []progress.Start) map[int64]string {
	accelerator, count := uses.Accelerator()
	var interruptions []progress.Interruption
	for _, e := range life {
		if e.Size > 0 {
			return nil
		}
		if e.Type.Lost() && !e.AtOrBefore {
			interruptions = append(interruptions, progress.Interruption{At: e.At, Shrinks: true})
		}
	}
	if accelerator == "" {
		return nil
	}
	words := map[int64]string{}
	for k, lost := range progress.Lost(starts, interruptions) {
		words[interruptions[k].At.Unix()] = lostFor(lost, int64(count), format.HourUnit(accelerator)).words()
	}
	return words
}

// withLost returns the events with what they cost, which words have by their second.
func withLost(life []event, words map[int64]string) []event {
	if len(words) == 0 {
		return life
	}
	life = slices.Clone(life)
	for i := range life {
		if life[i].Type.Lost() && !life[i].AtOrBefore {
			life[i].lost = words[life[i].At.Unix()]
		}
	}
	return life
}
