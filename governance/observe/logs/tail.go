package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

// What a Tail keeps of the lines that its reader has not fetched.
const (
	maxLines = 500
	maxBytes = 256 << 10
)

// batchGap is the least time between two batches: what a browser renders in it does
// not disturb its reader.
const batchGap = time.Second

// Batch is a part of a log.
type Batch struct {
	Skipped int // lines before Lines that were dropped
	Lines   []Line
}

// Tail reads a log as fast as the container writes it, in a goroutine of its own,
// and keeps the latest lines until they are fetched. Its memory is bounded by maxLines
// and maxBytes.
type Tail struct {
	log      io.Closer
	contains []byte        // in lower case: other lines are dropped; empty for none
	news     chan struct{} // receives when there is something to fetch
	gap      <-chan time.Time

	mu      sync.Mutex
	pending pendingLines
	err     error // why the log ended; nil while it is read
}

// newTail reads a log, of which lines that do not contain a text are dropped,
// whatever their case.
func newTail(log io.ReadCloser, contains string, timestamps bool) *Tail {
	t := &Tail{log: log, contains: []byte(strings.ToLower(contains)), news: make(chan struct{}, 1)}
	go t.read(newLineReader(log, timestamps))
	return t
}

// Close stops reading. It must be called.
func (t *Tail) Close() { _ = t.log.Close() } // the reader gets its error

func (t *Tail) read(from *lineReader) {
	var lower []byte // of a line
	for {
		line, err := from.next()
		if err == nil && len(t.contains) > 0 {
			if lower = appendLower(lower[:0], line.text); !bytes.Contains(lower, t.contains) {
				continue
			}
		}
		t.mu.Lock()
		if err == nil {
			t.pending.add(line)
		}
		t.err = err
		t.mu.Unlock()
		t.signal()
		if err != nil {
			return
		}
	}
}

// appendLower appends text as it is shown, in lower case.
func appendLower(to, text []byte) []byte {
	if !plain(text) {
		return append(to, strings.ToLower(clean(text))...)
	}
	for _, b := range text {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		to = append(to, b)
	}
	return to
}

func (t *Tail) signal() {
	select {
	case t.news <- struct{}{}:
	default: // the reader has not fetched since
	}
}

// Next waits for lines, until batchGap after the last batch. After the last batch it
// returns io.EOF, or why the log cannot be read any more. It returns an empty batch
// after patience.
func (t *Tail) Next(ctx context.Context, patience time.Duration) (Batch, error) {
	if t.gap != nil {
		select {
		case <-t.gap:
			t.gap = nil
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
	patient := time.NewTimer(patience)
	defer patient.Stop()
	select {
	case <-t.news:
	case <-patient.C:
		return Batch{}, nil
	case <-ctx.Done():
		return Batch{}, ctx.Err()
	}
	t.gap = time.After(batchGap)
	t.mu.Lock()
	defer t.mu.Unlock()
	batch := t.pending.take()
	if t.err != nil {
		if len(batch.Lines) == 0 {
			return batch, t.err
		}
		t.signal() // for the error
	}
	return batch, nil
}

// All reads the log to its end and returns its last lines.
func (t *Tail) All(ctx context.Context) (all Batch, err error) {
	for {
		select {
		case <-t.news:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
		t.mu.Lock()
		ended := t.err
		if ended != nil {
			all = t.pending.take()
		}
		t.mu.Unlock()
		if ended != nil {
			if errors.Is(ended, io.EOF) {
				ended = nil
			}
			return all, ended
		}
	}
}

// pendingLines are the latest lines, at most maxLines and maxBytes, and how many were
// dropped. The text is cleaned when it is taken: most lines of a fast log are not.
type pendingLines struct {
	text    []byte // of all lines
	lines   []pendingLine
	first   int // index of the first line that is kept
	skipped int
}

type pendingLine struct {
	at, text, end int // in text: the time is text[at:text], the line text[text:end]
	cut           bool
}

func (p *pendingLines) add(line rawLine) {
	at := len(p.text)
	p.text = append(append(p.text, line.at...), line.text...)
	p.lines = append(p.lines, pendingLine{at: at, text: at + len(line.at), end: len(p.text), cut: line.cut})
	for len(p.lines)-p.first > maxLines || len(p.text)-p.lines[p.first].at > maxBytes {
		p.first++
		p.skipped++
	}
	if p.first > maxLines || p.lines[p.first].at > maxBytes { // what was dropped is as large as what is kept
		p.compact()
	}
}

// compact frees the space of the lines that were dropped.
func (p *pendingLines) compact() {
	offset := p.lines[p.first].at
	p.text = append(p.text[:0], p.text[offset:]...)
	p.lines = append(p.lines[:0], p.lines[p.first:]...)
	for i := range p.lines {
		p.lines[i].at -= offset
		p.lines[i].text -= offset
		p.lines[i].end -= offset
	}
	p.first = 0
}

func (p *pendingLines) take() Batch {
	batch := Batch{Skipped: p.skipped}
	for _, line := range p.lines[p.first:] {
		batch.Lines = append(batch.Lines, Line{At: clean(p.text[line.at:line.text]), Text: clean(p.text[line.text:line.end]), Cut: line.cut})
	}
	p.text, p.lines, p.first, p.skipped = p.text[:0], p.lines[:0], 0, 0
	return batch
}
