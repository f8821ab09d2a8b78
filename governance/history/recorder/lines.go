package recorder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance/history"
)

const (
	retry      = time.Second
	mostLines  = 20_000 // moments and gaps that wait for the database
	mostTasks  = 2 * batch
	atOnce     = 100     // moments in one transaction
	mostChange = 100_000 // amounts in moments that wait
)

// unwritten is why what was seen is not known any more.
const unwritten = "The history database could not be written for too long."

// line is a moment, or a gap.
type line struct {
	history.Sample
	gap *history.Gap
}

// lines are what was seen and is not written yet, in order. They are bounded:
// where the database is away for too long, they become one gap.
type lines struct {
	mu      sync.Mutex
	waiting []line
	amounts int
	tasks   []history.Record
	more    bool // tasks were left behind
	over    bool // moments were dropped, and not told anew yet
	wake    chan struct{}
	want    chan struct{}
}

func (l *lines) signals() (wake, want chan struct{}) {
	if l.wake == nil {
		l.wake, l.want = make(chan struct{}, 1), make(chan struct{}, 1)
	}
	return l.wake, l.want
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *lines) moment(m history.Sample) { l.add(line{Sample: m}) }
func (l *lines) gap(g history.Gap)       { l.add(line{Sample: history.Sample{At: g.To}, gap: &g}) }

func (l *lines) add(n line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake, _ := l.signals()
	defer tell(wake)
	l.waiting = append(l.waiting, n)
	l.amounts += len(n.Amounts)
	if len(l.waiting) > mostLines || l.amounts > mostChange && len(l.waiting) > 1 {
		l.drop()
	}
}

// drop makes one gap of all that waits: from the first, which may be being
// written, until the next moment that tells all amounts.
func (l *lines) drop() {
	first := l.waiting[0]
	from := first.At
	if first.gap != nil {
		from = first.gap.From
	}
	to := l.waiting[len(l.waiting)-1].At
	l.waiting = []line{{Sample: history.Sample{At: to}, gap: &history.Gap{From: from, To: to, Reason: unwritten}}}
	l.amounts, l.over = 0, true
}

// overflown tells, once, whether moments were dropped, so that all has to be told
// anew.
func (l *lines) overflown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.over
	l.over = false
	return was
}

// again has all told anew.
func (l *lines) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// takes tells whether there is room for tasks.
func (l *lines) takes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks) < mostTasks
}

// records notes tasks; more says that others changed as well.
func (l *lines) records(tasks []history.Record, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake, want := l.signals()
	l.tasks = append(l.tasks, tasks...)
	if l.more = more; more && len(l.tasks) < mostTasks {
		tell(want)
	}
	if len(tasks) > 0 {
		tell(wake)
	}
}

// wanting tells when a look for tasks is due.
func (l *lines) wanting() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, want := l.signals()
	return want
}

// next are what is written next: moments without a gap between them, or one gap,
// and tasks. done takes them away.
func (l *lines) next() (moments []history.Sample, gap *history.Gap, tasks []history.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.waiting {
		if n.gap != nil || len(moments) == atOnce {
			break
		}
		moments = append(moments, n.Sample)
	}
	if len(moments) == 0 && len(l.waiting) > 0 {
		gap = l.waiting[0].gap
	}
	return moments, gap, slices.Clone(l.tasks[:min(batch, len(l.tasks))])
}

// wrote takes the first lines away, but not those that became a gap meanwhile.
func (l *lines) wrote(moments int, gap *history.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.waiting) == 0:
	case gap != nil && l.waiting[0].gap == gap:
		l.waiting = l.waiting[1:]
	case gap == nil && l.waiting[0].gap == nil:
		for _, n := range l.waiting[:moments] {
			l.amounts -= len(n.Amounts)
		}
		l.waiting = slices.Delete(l.waiting, 0, moments)
	}
}

func (l *lines) recorded(tasks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, want := l.signals()
	l.tasks = slices.Delete(l.tasks, 0, tasks)
	if l.more {
		tell(want)
	}
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) + len(l.tasks)
}

// write writes what is noted until ctx ends, and then what is left, if that is
// quick.
func (r *Recorder) write(ctx context.Context, l *lines) {
	l.mu.Lock()
	wake, _ := l.signals()
	l.mu.Unlock()
	forget := time.NewTicker(forgets)
	defer forget.Stop()
	for {
		if err := r.flush(ctx, l); err != nil && pause(ctx, retry) == nil {
			continue
		}
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), retry)
			defer cancel()
			_ = r.flush(ending, l) // what is not written is a gap, or told again
			return
		case <-wake:
		case <-forget.C:
			if err := r.Store.Forget(ctx, r.Clock()); err != nil {
				r.Log.Warn("old history not deleted", "error", err)
			}
		}
	}
}

// flush writes all that waits.
func (r *Recorder) flush(ctx context.Context, l *lines) error {
	for {
		moments, gap, tasks := l.next()
		if len(moments) == 0 && gap == nil && len(tasks) == 0 {
			r.settle(l, time.Time{}, nil)
			return nil
		}
		var until time.Time
		var err error
		switch {
		case gap != nil:
			// What was dropped may have been written meanwhile.
			begins := *gap
			begins.From = earlier(later(gap.From, r.State().WrittenUntil), gap.To)
			if err = r.Store.RecordGap(ctx, begins); err == nil {
				gaps.Inc()
				l.wrote(1, gap)
			}
		case len(moments) > 0:
			last := moments[len(moments)-1].At
			if err = r.Store.AppendSamples(ctx, moments); errors.Is(err, history.ErrOutOfOrder) {
				// They were written and the answer was lost, or another console writes too.
				var seen time.Time
				if seen, err = r.Store.SampledUntil(ctx); err == nil && !seen.Equal(last) {
					l.again()
				}
			}
			if err == nil {
				until = last
				l.wrote(len(moments), nil)
			}
		}
		if err == nil && len(tasks) > 0 {
			if err = r.Store.RecordTasks(ctx, tasks); err == nil {
				l.recorded(len(tasks))
			}
		}
		if r.settle(l, until, err); err != nil {
			return err
		}
	}
}

// settle tells how writing goes.
func (r *Recorder) settle(l *lines, until time.Time, err error) {
	outcome := "written"
	if err != nil {
		outcome = "failed"
	}
	writes.WithLabelValues(outcome).Inc()
	r.tell(func(s *State) {
		if err != nil && s.LastError == "" {
			r.Log.Warn("history cannot be written; retrying", "error", err)
		}
		if err == nil && s.LastError != "" {
			r.Log.Info("history is written again")
		}
		s.Pending, s.LastError = l.count(), ""
		if err != nil {
			s.LastError = err.Error()
		}
		if !until.IsZero() {
			s.WrittenUntil = until
			written.Store(until.UnixMilli())
		}
		waiting.Set(float64(s.Pending))
	})
}
