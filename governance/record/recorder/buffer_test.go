package recorder

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"
)

func at(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }

// The buffer keeps samples and gaps in order. If there are too many, they become one
// gap, and the next sample must contain all amounts.
func TestBufferOverflowBecomesGap(t *testing.T) {
	b := newBuffer()
	amounts := []history.Amount{{Amount: 1}}
	b.addGap(history.Gap{From: at(0), To: at(1), Reason: "before"})
	b.addSample(history.Sample{At: at(1), Amounts: amounts})
	b.addSample(history.Sample{At: at(2)})
	if _, gap, _, _ := b.next(); gap == nil || gap.Reason != "before" {
		t.Fatalf("next returns gap %+v, want the first", gap)
	} else {
		b.removeEntries(1, gap)
	}
	samples, gap, _, _ := b.next()
	if len(samples) != 2 || gap != nil {
		t.Fatalf("next returns %d samples and gap %+v, want 2 samples", len(samples), gap)
	}
	for i := range maxEntries { // while the first two are being written
		b.addSample(history.Sample{At: at(3 + i), Amounts: amounts})
	}
	b.removeEntries(len(samples), nil)
	if !b.takeOverflow() || b.takeOverflow() {
		t.Error("takeOverflow must report true once")
	}
	samples, gap, _, _ = b.next()
	if len(samples) != 0 || gap == nil || gap.Reason != reasonUnwritten || !gap.From.Equal(at(1)) {
		t.Fatalf("next returns %d samples and gap %+v, want a gap from the first sample", len(samples), gap)
	}
	b.removeEntries(1, gap)
	b.addSample(history.Sample{At: at(9), Amounts: amounts})
	if b.len() == 0 {
		t.Error("the sample after the gap is missing")
	}
}
