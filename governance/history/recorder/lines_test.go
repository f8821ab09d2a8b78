package recorder

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/history"
)

func at(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }

// While the database is away lines wait in order; where there are too many, they
// become one gap that says so, and all is told anew.
func TestLinesAreBounded(t *testing.T) {
	l := &lines{}
	amounts := []history.Amount{{Amount: 1}}
	l.gap(history.Gap{From: at(0), To: at(1), Reason: "before"})
	l.moment(history.Sample{At: at(1), Amounts: amounts})
	l.moment(history.Sample{At: at(2)})
	if _, gap, _ := l.next(); gap == nil || gap.Reason != "before" {
		t.Fatalf("first comes %+v", gap)
	} else {
		l.wrote(1, gap)
	}
	moments, gap, _ := l.next()
	if len(moments) != 2 || gap != nil {
		t.Fatalf("then come %d moments and %+v", len(moments), gap)
	}
	for i := range mostLines { // while those are being written
		l.moment(history.Sample{At: at(3 + i), Amounts: amounts})
	}
	l.wrote(len(moments), nil)
	if !l.overflown() || l.overflown() {
		t.Error("it is not told once that moments were dropped")
	}
	moments, gap, _ = l.next()
	if len(moments) != 0 || gap == nil || gap.Reason != unwritten || !gap.From.Equal(at(1)) {
		t.Fatalf("what was dropped is %+v", gap)
	}
	l.wrote(1, gap)
	l.moment(history.Sample{At: at(9), Amounts: amounts})
	if l.count() == 0 {
		t.Error("nothing follows")
	}
}
