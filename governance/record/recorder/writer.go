package recorder

import (
	"context"
	"errors"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/record/history"
)

// retryInterval is the time between two attempts to reach the database.
const retryInterval = time.Second

// write writes the buffer until ctx ends, and then the rest of it if that takes
// less than a second. It returns at once when another replica began a term.
func (r *Recorder) write(ctx context.Context, b *buffer) {
	forget := time.NewTicker(forgetInterval)
	defer forget.Stop()
	for {
		err := r.flush(ctx, b)
		if errors.Is(err, history.ErrNotLeader) {
			return
		}
		if err != nil && governance.Sleep(ctx, retryInterval) == nil {
			continue
		}
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryInterval)
			defer cancel()
			_ = r.flush(ending, b) // the next console records the rest, or a gap
			return
		case <-b.wakeWriter:
		case <-forget.C:
			if err := r.Store.Forget(ctx, r.Clock()); err != nil {
				r.Log.Warn("old history not deleted", "error", err)
			}
		}
	}
}

// flush writes everything in the buffer.
func (r *Recorder) flush(ctx context.Context, b *buffer) error {
	for {
		samples, gap, tasks, scales := b.next()
		if len(samples) == 0 && gap == nil && len(tasks) == 0 && len(scales) == 0 {
			r.reportWrite(b, time.Time{}, nil)
			return nil
		}
		var until time.Time
		var err error
		switch {
		case gap != nil:
			// Samples that were dropped may have been written in the meantime.
			rest := *gap
			rest.From = governance.Earlier(governance.Later(gap.From, r.State().WrittenUntil), gap.To)
			err = history.WriteOrSetAside(ctx, r.Store, writerGaps, []history.Gap{rest}, func(ctx context.Context, gaps []history.Gap) error { return r.Store.RecordGap(ctx, gaps[0]) })
			if err == nil {
				gaps.Inc()
				b.removeEntries(1, gap)
			}
		case len(samples) > 0:
			last := samples[len(samples)-1].At
			if err = r.appendSamples(ctx, samples); errors.Is(err, history.ErrOutOfOrder) {
				// They were written and the answer was lost, or another console writes too.
				var sampledUntil time.Time
				if sampledUntil, err = r.Store.SampledUntil(ctx); err == nil && !sampledUntil.Equal(last) {
					b.setOverflow()
				}
			}
			if err == nil {
				until = last
				b.removeEntries(len(samples), nil)
			}
		}
		if err == nil && len(tasks) > 0 {
			if err = history.WriteOrSetAside(ctx, r.Store, writerTasks, tasks, r.Store.RecordTasks); err == nil {
				b.removeTasks(len(tasks))
			}
		}
		if err == nil && len(scales) > 0 {
			err = history.WriteOrSetAside(ctx, r.Store, writerScales, scales, func(ctx context.Context, scales []history.ScaleEvent) error {
				added, err := r.Store.RecordScaleEvents(ctx, scales)
				countScales(added)
				return err
			})
			if err == nil {
				b.removeScales(len(scales))
			}
		}
		if r.reportWrite(b, until, err); err != nil {
			return err
		}
	}
}

// Names of what is written, of records that are set aside.
const (
	writerSamples = "samples"
	writerGaps    = "gaps"
	writerTasks   = "tasks"
	writerScales  = "scale events"
	writerStarts  = "starts of trainings"
)

// appendSamples writes samples, a large one in parts. Amounts that the database refuses
// are set aside.
func (r *Recorder) appendSamples(ctx context.Context, samples []history.Sample) error {
	if len(samples) == 1 && len(samples[0].Amounts) > amountsPerCall {
		for part := range slices.Chunk(samples[0].Amounts, amountsPerCall) {
			if err := r.appendSamples(ctx, []history.Sample{{At: samples[0].At, Amounts: part}}); err != nil {
				return err
			}
		}
		return nil
	}
	err := r.Store.AppendSamples(ctx, samples)
	if err == nil || history.Retryable(err) {
		return err
	}
	for _, sample := range samples {
		if err := r.Store.AppendSamples(ctx, []history.Sample{{At: sample.At}}); err != nil && history.Retryable(err) {
			return err
		}
		err := history.WriteOrSetAside(ctx, r.Store, writerSamples, sample.Amounts, func(ctx context.Context, amounts []history.Amount) error {
			return r.Store.AppendSamples(ctx, []history.Sample{{At: sample.At, Amounts: amounts}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reportWrite updates the state, metrics and log after an attempt to write. until
// is the time of the last sample that was written; zero for none.
func (r *Recorder) reportWrite(b *buffer, until time.Time, err error) {
	outcome := outcomeWritten
	if err != nil {
		outcome = outcomeFailed
	}
	writes.WithLabelValues(outcome).Inc()
	r.update(func(s *State) {
		if err != nil && s.LastError == "" {
			r.Log.Warn("history cannot be written; retrying", "error", err)
		}
		if err == nil && s.LastError != "" {
			r.Log.Info("history is written again")
		}
		s.Pending, s.LastError = b.len(), ""
		if err != nil {
			s.LastError = err.Error()
		}
		if !until.IsZero() {
			s.WrittenUntil = until
			writtenUntil.Store(until.UnixMilli())
		}
		pending.Set(float64(s.Pending))
	})
}
