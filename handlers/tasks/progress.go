package tasks

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"
)

// progressOf returns how far a task is, as its reader may know it, the latest last; none for a
// task that does not report it, and while that cannot be read. Where Prometheus has it, no log is
// read.
func (h *Pages) progressOf(ctx context.Context, user governance.User, t *tasks.Task) []progress.Progress {
	all, _ := h.Hardware.Trainings(ctx)
	if training, ok := all[t.UID]; ok {
		return []progress.Progress{training.Progress}
	}
	if h.Logs == nil {
		return nil
	}
	lines, err := h.Logs.Progress(ctx, user, tasks.Address{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID})
	if err != nil {
		return nil
	}
	return lines
}

// progressCard returns the latest progress for a page; nil for none.
func progressCard(lines []progress.Progress) *taskviews.Progress {
	if len(lines) == 0 {
		return nil
	}
	p := lines[len(lines)-1]
	card := &taskviews.Progress{Step: format.Thousands(p.Step), Checkpoint: format.Time(p.Checkpoint), At: format.Time(p.At)}
	if !math.IsNaN(p.SamplesPerSecond) {
		card.SamplesPerSecond = format.AverageOverTime(p.SamplesPerSecond)
	}
	if p.HasLoss {
		card.Loss = strconv.FormatFloat(p.Loss, 'g', 4, 64)
	}
	if !math.IsNaN(p.CheckpointSeconds) {
		card.CheckpointTook = format.ShortAge(time.Duration(min(p.CheckpointSeconds, float64(math.MaxInt32)) * float64(time.Second)))
	}
	return card
}

// samplesChart returns the samples a second of an elastic task over the time of the chart of its
// sizes; nil if Prometheus has none.
func (h *Pages) samplesChart(ctx context.Context, namespace, name string, from, until time.Time) *views.Chart {
	span := utilization.Range{From: from, To: until, Step: max(chartStep, until.Sub(from)/chartPoints).Truncate(time.Second)}
	pods := regexp.QuoteMeta(name) + "-(base|grow-[0-9]+)-[0-9]+-[a-z0-9]{5}"
	times, rates, known := h.Hardware.Samples(ctx, namespace, pods, span)
	if !known || !slices.ContainsFunc(rates, func(v float64) bool { return !math.IsNaN(v) }) {
		return nil
	}
	c := &views.Chart{ID: "samples-chart", Title: "Samples a second over time", Alone: true, Unit: "samples/s"}
	line := views.ChartSeries{Label: "Samples a second", Tone: "accent"}
	for i, v := range rates {
		value := views.ChartValue{}
		if !math.IsNaN(v) {
			value = views.ChartValue{Value: math.Round(v*1000) / 1000, Known: true, Text: format.AverageOverTime(v)}
		}
		c.Times, line.Values = append(c.Times, times[i].Unix()), append(line.Values, value)
	}
	c.Series = []views.ChartSeries{line}
	return c
}

// The points of a chart of samples: at least chartStep apart, and at most chartPoints.
const (
	chartStep   = 30 * time.Second
	chartPoints = 240
)

// progressJSON is how far a training is, as far as it reports that.
type progressJSON struct {
	At                time.Time  `json:"at"` // when the training reported it
	Step              int64      `json:"step"`
	Samples           *float64   `json:"samples,omitempty"` // trained on
	SamplesPerSecond  *float64   `json:"samplesPerSecond,omitempty"`
	Loss              *float64   `json:"loss,omitempty"` // absent also if it is no number any more
	Workers           int        `json:"workers,omitempty"`
	Checkpoint        *time.Time `json:"checkpoint,omitempty"`        // when the last one was written
	CheckpointSeconds *float64   `json:"checkpointSeconds,omitempty"` // how long that took
}

func progressFields(lines []progress.Progress) *progressJSON {
	if len(lines) == 0 {
		return nil
	}
	number := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	p := lines[len(lines)-1]
	fields := &progressJSON{
		At: p.At.UTC(), Step: p.Step, Samples: number(p.Samples), SamplesPerSecond: number(p.SamplesPerSecond), Workers: p.World, CheckpointSeconds: number(p.CheckpointSeconds),
	}
	if p.HasLoss {
		fields.Loss = number(p.Loss)
	}
	if !p.Checkpoint.IsZero() {
		fields.Checkpoint = new(p.Checkpoint.UTC())
	}
	return fields
}
