package progress

import (
	"slices"
	"time"
)

// Start is a start of the workers of a training.
type Start struct {
	At            time.Time
	ContinuedFrom time.Time // when the checkpoint was written that they continued from; zero if unknown
}

// Starts returns the starts that lines tell of, the earliest first.
func Starts(lines []Progress) (starts []Start) {
	for _, l := range lines {
		if !l.Started.IsZero() {
			starts = append(starts, Start{l.Started, l.ContinuedFrom})
		}
	}
	return Merged(starts)
}

// Merged returns starts in order, each once.
func Merged(starts ...[]Start) []Start {
	all := slices.Concat(starts...)
	slices.SortStableFunc(all, func(a, b Start) int { return a.At.Compare(b.At) })
	return slices.CompactFunc(all, func(a, b Start) bool { return a.At.UnixMilli() == b.At.UnixMilli() })
}

// Interruption is a moment at which a training lost its quota, or its size changed.
type Interruption struct {
	At      time.Time
	Shrinks bool // pods ended; otherwise more came
}

// Lost returns how much time of work interruptions cost, by their index in the order of time:
// from the checkpoint that the training then continued from until the interruption, and 0 if that
// checkpoint was written after it, as by a script that saves before it stops. An interruption
// is missing where that is not known: both the start of the workers before it and the next one
// have to be known.
//
// Of several interruptions between two starts, the first that ended pods stopped the work. If pods
// only came, the workers started again for the last ones.
func Lost(starts []Start, interruptions []Interruption) map[int]time.Duration {
	lost := map[int]time.Duration{}
	for i := 1; i < len(starts); i++ {
		from, next := starts[i-1], starts[i]
		if next.ContinuedFrom.IsZero() {
			continue
		}
		saved, shrinks, grows := -1, -1, -1
		for k, e := range interruptions {
			switch {
			case e.At.Before(from.At) || !e.At.Before(next.At):
			case !e.At.After(next.ContinuedFrom):
				saved = k
			case e.Shrinks && shrinks < 0:
				shrinks = k
			case !e.Shrinks:
				grows = k
			}
		}
		stopped := shrinks
		if stopped < 0 {
			stopped = grows
		}
		switch {
		case stopped >= 0:
			lost[stopped] = interruptions[stopped].At.Sub(next.ContinuedFrom)
		case saved >= 0:
			lost[saved] = 0
		}
	}
	return lost
}
