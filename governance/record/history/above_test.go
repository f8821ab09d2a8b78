package history

import (
	"context"
	"testing"
	"time"
)

// Two series of one sum, one of them beyond lowerAmounts; a gap; a sum that falls in between.
func testAbove(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	key := func(team string) SeriesKey { return SeriesKey{Team: team, Pool: "p", Resource: "gpu", Measure: Used} }
	sample := func(minutes int, a, b int64) Sample {
		return Sample{At: at(minutes), Amounts: []Amount{{key("a"), a}, {key("b"), b}}}
	}
	const large = 3 * lowerAmounts
	ok(t, s.AppendSamples(ctx, []Sample{sample(0, 9, large), sample(10, 0, large)}))
	ok(t, s.RecordGap(ctx, Gap{From: at(20), To: at(30), Reason: "test"}))
	ok(t, s.AppendSamples(ctx, []Sample{sample(30, 2, large), sample(40, 5, large), sample(45, 6, large-1), sample(50, 1, large+4), sample(60, 2, large+4)}))
	sums := []Above{
		{[]SeriesKey{key("a")}, 0},
		{[]SeriesKey{key("a"), key("b")}, large + 2},
		{[]SeriesKey{key("a"), key("b")}, large + 5},
		{[]SeriesKey{key("a"), key("b")}, large + 6},
		{[]SeriesKey{key("nobody")}, 0},
		{nil, -1},
	}
	for from, want := range map[int][]int{5: {30, 40, 60, -1, -1, -1}, 35: {35, 40, 60, -1, -1, -1}, 55: {55, 55, 60, -1, -1, -1}, 70: {-1, -1, -1, -1, -1, -1}} {
		got, err := s.AboveSince(ctx, sums, at(from))
		ok(t, err)
		for i := range sums {
			wanted := time.Time{}
			if want[i] >= 0 {
				wanted = at(want[i])
			}
			if !got[i].Equal(wanted) {
				t.Errorf("from minute %d, sum %d is above since %s, want %s", from, i, got[i], wanted)
			}
		}
	}
}
