package history

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const scaleColumns = "task, number, at, namespace, name, team, cause, pods_before, pods, minimum, accelerator, per_pod, changed_by, node, other_part, other, idle, changes"

// row returns the fields of scaleColumns.
func (e *ScaleEvent) row() []any {
	return []any{&e.TaskUID, &e.Number, timeColumn(&e.At), &e.Namespace, &e.Name, &e.Team, &e.Cause, &e.From, &e.To, &e.Minimum,
		&e.Accelerator, &e.PerPod, textColumn(&e.By), &e.Node, &e.WorkloadUID, jsonColumn(&e.For, ""), jsonColumn(&e.Idle, ""), jsonColumn(&e.Changes, "")}
}

// RecordScaleEvents records changes of the size of elastic tasks, and returns those
// that were not recorded before. Recording the same again changes nothing.
func (s *Store) RecordScaleEvents(ctx context.Context, events []ScaleEvent) (added []ScaleEvent, err error) {
	type key struct {
		task   string
		number int64
	}
	byKey := map[key]ScaleEvent{}
	var rows [][]any
	for _, e := range events {
		k := key{e.TaskUID, e.Number}
		if _, again := byKey[k]; again {
			continue
		}
		byKey[k] = e
		rows = append(rows, e.row())
	}
	err = s.write(ctx, "record scale events", func(t *tx) error {
		added = nil
		return t.insert("scale_events ("+scaleColumns+")", rows, "ON CONFLICT (task, number) DO NOTHING RETURNING task, number", func(scan scanFunc) error {
			var k key
			err := scan(&k.task, &k.number)
			added = append(added, byKey[k])
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// ScaleEvents returns the latest changes of the size of a task, limit at most, by
// number.
func (s *Store) ScaleEvents(ctx context.Context, taskUID string, limit int) (found []ScaleEvent, err error) {
	found, err = readList(ctx, s, "list scale events", (*ScaleEvent).row, "SELECT "+scaleColumns+" FROM scale_events WHERE task = ? ORDER BY number DESC LIMIT ?", taskUID, limit)
	slices.Reverse(found)
	return found, err
}

// Gain is what an elastic task gained beyond its minimum.
type Gain struct {
	Steps              []GainStep // by number
	PodSeconds         int64      // of pods beyond the minimum
	AcceleratorSeconds int64      // the same, by the accelerators of these pods
	Missing            []Missing  // changes that are not known: the sums do not contain the time until the next one
}

// GainStep is a change of size, and what the task gained until the next one.
type GainStep struct {
	ScaleEvent
	Until              time.Time // of the next change, or the end of the sum; zero if the next change is not known
	PodSeconds         int64
	AcceleratorSeconds int64
}

// Missing are consecutive changes that are not known, by number.
type Missing struct{ First, Last int64 }

// GainOf returns what a task gained by growth, from its first known change until a
// time. Times count in whole seconds. Of several events with one number the first
// counts.
func GainOf(events []ScaleEvent, until time.Time) (g Gain) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b ScaleEvent) int { return cmp.Compare(a.Number, b.Number) })
	events = slices.CompactFunc(events, func(a, b ScaleEvent) bool { return a.Number == b.Number })
	var last int64
	for i, e := range events {
		if e.Number > last+1 {
			g.Missing = append(g.Missing, Missing{last + 1, e.Number - 1})
		}
		last = e.Number
		step := GainStep{ScaleEvent: e, Until: until}
		if i+1 < len(events) {
			step.Until = events[i+1].At
			if events[i+1].Number > e.Number+1 {
				step.Until = time.Time{}
			}
		}
		if !step.Until.IsZero() {
			step.PodSeconds = max(0, int64(e.To-e.Minimum)) * max(0, step.Until.Unix()-e.At.Unix())
			step.AcceleratorSeconds = step.PodSeconds * e.PerPod
		}
		g.PodSeconds += step.PodSeconds
		g.AcceleratorSeconds += step.AcceleratorSeconds
		g.Steps = append(g.Steps, step)
	}
	return g
}
