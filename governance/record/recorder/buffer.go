package recorder

import (
	"slices"
	"sync"

	"kuota.dev/kuota/governance/record/history"
)

// Bounds of the buffer.
const (
	maxEntries     = 20_000  // samples and gaps
	maxAmounts     = 500_000 // several times those of 5,000 teams
	maxTasks       = 2 * taskBatch
	maxScales      = 2 * taskBatch
	samplesPerCall = 100 // samples in one transaction
	// amountsPerCall bounds a transaction, which has five seconds. After a gap a sample has
	// all amounts, 54,000 of 1,500 teams, which take PostgreSQL longer than that.
	amountsPerCall = 2_000
)

// reasonUnwritten is the reason of the gap that an overflow leaves.
const reasonUnwritten = "The history database could not be written for too long."

// entry is a sample or a gap.
type entry struct {
	history.Sample
	gap *history.Gap
}

// buffer contains what is sampled and not written yet, in order. If it exceeds its
// bounds, all samples in it become one gap. It is safe for concurrent use.
type buffer struct {
	wakeWriter chan struct{} // there is something to write
	wantTasks  chan struct{} // there is space for tasks or scale events that the last sample left behind

	mu        sync.Mutex
	entries   []entry
	amounts   int // in entries
	tasks     []history.Record
	moreTasks bool // changed tasks were left behind
	scales    []history.ScaleEvent
	overflow  bool // samples were dropped, and no complete sample has followed
}

func newBuffer() *buffer {
	return &buffer{wakeWriter: make(chan struct{}, 1), wantTasks: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (b *buffer) addSample(s history.Sample) { b.add(entry{Sample: s}) }
func (b *buffer) addGap(g history.Gap)       { b.add(entry{Sample: history.Sample{At: g.To}, gap: &g}) }

func (b *buffer) add(e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer signal(b.wakeWriter)
	b.entries = append(b.entries, e)
	b.amounts += len(e.Amounts)
	if len(b.entries) > maxEntries || b.amounts > maxAmounts && len(b.entries) > 1 {
		b.drop()
	}
}

// drop replaces all entries by one gap: from the first, which the writer may be
// writing, until the next sample, which contains all amounts.
func (b *buffer) drop() {
	first := b.entries[0]
	from := first.At
	if first.gap != nil {
		from = first.gap.From
	}
	to := b.entries[len(b.entries)-1].At
	b.entries = []entry{{Sample: history.Sample{At: to}, gap: &history.Gap{From: from, To: to, Reason: reasonUnwritten}}}
	b.amounts, b.overflow = 0, true
}

// takeOverflow reports, once, whether samples were dropped, so that the next one
// must contain all amounts.
func (b *buffer) takeOverflow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.overflow
	b.overflow = false
	return was
}

// setOverflow makes the next takeOverflow report true.
func (b *buffer) setOverflow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overflow = true
}

// acceptsTasks reports whether there is space for tasks.
func (b *buffer) acceptsTasks() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tasks) < maxTasks
}

// addTasks adds task records; more reports that other tasks changed as well.
func (b *buffer) addTasks(tasks []history.Record, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = append(b.tasks, tasks...)
	if b.moreTasks = more; more && len(b.tasks) < maxTasks {
		signal(b.wantTasks)
	}
	if len(tasks) > 0 {
		signal(b.wakeWriter)
	}
}

// scaleSpace returns how many scale events there is space for.
func (b *buffer) scaleSpace() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, maxScales-len(b.scales))
}

// addScales adds scale events.
func (b *buffer) addScales(events []history.ScaleEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.scales = append(b.scales, events...); len(events) > 0 {
		signal(b.wakeWriter)
	}
}

// removeScales removes the first n scale events.
func (b *buffer) removeScales(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := len(b.scales) == maxScales
	if b.scales = slices.Delete(b.scales, 0, n); full {
		signal(b.wantTasks) // the last sample may have left some behind
	}
}

// next returns what to write next: samples without a gap between them, or one gap,
// tasks, and scale events. They stay in the buffer until removeEntries, removeTasks and
// removeScales.
func (b *buffer) next() (samples []history.Sample, gap *history.Gap, tasks []history.Record, scales []history.ScaleEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	amounts := 0
	for _, e := range b.entries {
		if amounts += len(e.Amounts); e.gap != nil || len(samples) == samplesPerCall || len(samples) > 0 && amounts > amountsPerCall {
			break
		}
		samples = append(samples, e.Sample)
	}
	if len(samples) == 0 && len(b.entries) > 0 {
		gap = b.entries[0].gap
	}
	return samples, gap, slices.Clone(b.tasks[:min(taskBatch, len(b.tasks))]), slices.Clone(b.scales[:min(taskBatch, len(b.scales))])
}

// removeEntries removes the first n entries, unless they became a gap since next.
func (b *buffer) removeEntries(n int, gap *history.Gap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.entries) == 0:
	case gap != nil && b.entries[0].gap == gap:
		b.entries = b.entries[1:]
	case gap == nil && b.entries[0].gap == nil:
		for _, e := range b.entries[:n] {
			b.amounts -= len(e.Amounts)
		}
		b.entries = slices.Delete(b.entries, 0, n)
	}
}

// removeTasks removes the first n tasks.
func (b *buffer) removeTasks(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = slices.Delete(b.tasks, 0, n)
	if b.moreTasks {
		signal(b.wantTasks)
	}
}

func (b *buffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries) + len(b.tasks) + len(b.scales)
}
