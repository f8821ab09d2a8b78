package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is a plain reimplementation of the series.
type model struct {
	past map[SeriesKey][]piece
	open map[SeriesKey]piece
	seen int64
}

type piece struct{ from, to, amount int64 }

func newModel() *model {
	return &model{past: map[SeriesKey][]piece{}, open: map[SeriesKey]piece{}}
}

func (m *model) sample(sample Sample) {
	at := sample.At.UnixMilli()
	m.seen = at
	for _, a := range sample.Amounts {
		before, ok := m.open[a.SeriesKey]
		if ok && before.amount == a.Amount {
			continue // so that a gap before this sample ends it
		}
		if ok {
			m.past[a.SeriesKey] = append(m.past[a.SeriesKey], piece{before.from, at, before.amount})
		}
		m.open[a.SeriesKey] = piece{from: at, amount: a.Amount}
	}
}

func (m *model) gap(from time.Time) {
	for h, open := range m.open {
		m.past[h] = append(m.past[h], piece{open.from, min(m.seen, from.UnixMilli()), open.amount})
	}
	clear(m.open)
}

// total returns amount × ms and the known ms of a range.
func (m *model) total(h SeriesKey, from, to int64) (*big.Int, int64) {
	sum, known := new(big.Int), int64(0)
	pieces := m.past[h]
	if open, ok := m.open[h]; ok {
		pieces = append(pieces[:len(pieces):len(pieces)], piece{open.from, m.seen, open.amount})
	}
	for _, p := range pieces {
		if from, to := max(from, p.from), min(to, p.to); from < to {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(p.amount), big.NewInt(to-from)))
			known += to - from
		}
	}
	return sum, known
}

// compare compares totals and series of one range with the model.
func (m *model) compare(t *testing.T, s *Store, keys []SeriesKey, from, to time.Time, count int) {
	t.Helper()
	ctx := context.Background()
	for h, total := range must[map[SeriesKey]Total](t)(s.Totals(ctx, keys, from, to)) {
		sum, known := m.total(h, from.UnixMilli(), to.UnixMilli())
		if total.Sum.Cmp(sum) != 0 || total.Known.Milliseconds() != known {
			t.Fatalf("%v from %s to %s: %s in %s, want %s in %d ms", h, from, to, total.Sum, total.Known, sum, known)
		}
	}
	unit := time.Millisecond
	switch length := to.Sub(from); {
	case length > 60*24*time.Hour:
		unit = 24 * time.Hour
	case length > 48*time.Hour:
		unit = time.Hour
	}
	for h, points := range must[map[SeriesKey][]Point](t)(s.Series(ctx, keys, from, to, count)) {
		if from.Equal(to) {
			if len(points) > 0 {
				t.Fatalf("%d points of an empty range", len(points))
			}
			continue
		}
		end := to.Add(unit - 1).Truncate(unit)
		if len(points) == 0 || len(points) > count || !points[0].At.Equal(from.Truncate(unit)) || !points[len(points)-1].At.Before(end) {
			t.Fatalf("%d of %d points from %s to %s: %v", len(points), count, from, to, points)
		}
		for n, p := range points {
			bound := end
			if n+1 < len(points) {
				bound = points[n+1].At
				if length := bound.Sub(p.At); length%unit != 0 || length != points[1].At.Sub(points[0].At) {
					t.Fatalf("a bucket of %s in units of %s", length, unit)
				}
			}
			sum, known := m.total(h, p.At.UnixMilli(), bound.UnixMilli())
			want, _ := new(big.Float).SetInt(sum).Float64()
			want /= math.Max(1, float64(known))
			if p.Known != (known > 0) || math.Abs(p.Value-want) > 1e-9*math.Abs(want) {
				t.Fatalf("%v from %s to %s in %d: point %d at %s is %v, want %v over %d ms", h, from, to, count, n, p.At, p, want, known)
			}
		}
	}
}

// addUp are the measures whose sum is Physical at every moment.
var addUp = []Measure{OwnBound, BorrowedBound, Outside, Unhealthy, Idle}

// testAmounts appends random samples with gaps, and reopens the store in between.
func testAmounts(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{DetailRetention: 1000 * 24 * time.Hour})
	r := rand.New(rand.NewPCG(3, 3))
	m := newModel()
	pool := func(measure Measure) SeriesKey { return SeriesKey{"", "a100", "memory", measure} }
	keys := []SeriesKey{pool(Physical), {"vision", "a100", "nvidia.com/gpu", Used}, {"nlp", "a100", "nvidia.com/gpu", Used}, {"vision", "a100", "nvidia.com/gpu", Quota}}
	for _, measure := range addUp {
		keys = append(keys, pool(measure))
	}
	at := start
	var pending []Sample
	flush := func() {
		ok(t, s.AppendSamples(ctx, pending))
		pending = nil
	}
	for n := range 1200 {
		at = at.Add([]time.Duration{0, time.Millisecond, time.Duration(r.IntN(1000)) * time.Millisecond, time.Duration(r.IntN(100)) * time.Minute,
			time.Duration(r.IntN(9)) * 20 * time.Minute, time.Duration(r.IntN(36)) * time.Hour}[min(r.IntN(36), 5)])
		if r.IntN(20) == 0 {
			at = at.Add(time.Hour - 1).Truncate(time.Hour)
		}
		if n%150 == 149 { // the console was not running
			flush()
			from := at.Add(time.Duration(r.IntN(3)-1) * time.Minute)
			if r.IntN(2) == 0 {
				from = time.UnixMilli(m.seen).Add(-time.Duration(r.IntN(100)) * time.Millisecond)
			}
			at = at.Add(time.Hour + time.Duration(r.IntN(50))*time.Hour)
			ok(t, s.Close())
			s = open(t, url, Options{DetailRetention: 1000 * 24 * time.Hour})
			ok(t, s.RecordGap(ctx, Gap{from, at, "The console was not running."}))
			m.gap(from)
		}
		sample := Sample{At: at}
		if r.IntN(4) > 0 || len(m.open) == 0 {
			parts := int64(0)
			for _, measure := range addUp {
				amount := r.Int64N(1 << 30)
				parts += amount
				sample.Amounts = append(sample.Amounts, Amount{pool(measure), amount})
			}
			sample.Amounts = append(sample.Amounts, Amount{pool(Physical), parts})
		}
		for _, h := range keys[1:4] {
			if r.IntN(changesOneIn(h)) == 0 {
				amount := r.Int64N(4) * r.Int64N(100)
				if r.IntN(8) == 0 { // such as bytes, or a quota that is meant as no limit
					amount = r.Int64N(math.MaxInt64)
				}
				sample.Amounts = append(sample.Amounts, Amount{h, amount})
			}
		}
		m.sample(sample)
		pending = append(pending, sample)
		if r.IntN(3) == 0 {
			flush()
		}
	}
	flush()
	if days := at.Sub(start).Hours() / 24; days < 70 {
		t.Fatalf("only %.0f days", days)
	}
	if seen := must[time.Time](t)(s.SampledUntil(ctx)); !seen.Equal(at) {
		t.Errorf("SampledUntil is %s, want %s", seen, at)
	}
	if since := must[time.Time](t)(s.Since(ctx)); !since.Equal(time.UnixMilli(firstOf(m))) {
		t.Errorf("Since is %s", since)
	}
	current := map[SeriesKey]int64{}
	for h, open := range m.open {
		current[h] = open.amount
	}
	if diff := cmp.Diff(current, must[map[SeriesKey]int64](t)(s.CurrentAmounts(ctx))); diff != "" {
		t.Errorf("current amounts (-want +got):\n%s", diff)
	}
	unknown := SeriesKey{Team: "unknown", Pool: "a100"}
	for range 200 {
		from, to := ordered(between(r, start.Add(-48*time.Hour), at.Add(48*time.Hour)), between(r, start.Add(-48*time.Hour), at.Add(48*time.Hour)))
		if r.IntN(2) == 0 {
			to = from.Add(time.Duration(r.Int64N(int64(60*time.Hour)/1e6)) * time.Millisecond)
		}
		m.compare(t, s, append(keys, unknown), from, to, 1+r.IntN(150))
		totals := must[map[SeriesKey]Total](t)(s.Totals(ctx, keys, from, to))
		sum := new(big.Int)
		for _, measure := range addUp {
			sum.Add(sum, totals[pool(measure)].Sum)
		}
		if sum.Cmp(totals[pool(Physical)].Sum) != 0 {
			t.Fatalf("from %s to %s the parts sum up to %s, and the whole is %s", from, to, sum, totals[pool(Physical)].Sum)
		}
	}
}

// changesOneIn returns how rarely a series changes.
func changesOneIn(h SeriesKey) int {
	if h.Measure == Quota {
		return 400
	}
	return 2
}

func firstOf(m *model) int64 {
	first := int64(math.MaxInt64)
	for _, pieces := range m.past {
		first = min(first, pieces[0].from)
	}
	return first
}

// A value that stays for months takes three rows, and overflows nothing.
func testLongRuns(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	m := newModel()
	h := SeriesKey{"vision", "a100", "memory", Quota}
	at := start
	for n, amount := range []int64{lowerAmounts - 1, math.MaxInt64, lowerAmounts, 7, 0, -math.MaxInt64} {
		sample := Sample{at, []Amount{{h, amount}}}
		ok(t, s.AppendSamples(ctx, []Sample{sample}))
		m.sample(sample)
		at = at.Add(time.Duration(n+1) * 1001 * time.Hour).Add(time.Minute)
	}
	end := Sample{At: at}
	ok(t, s.AppendSamples(ctx, []Sample{end}))
	m.sample(end)
	var rows int
	ok(t, s.reader.QueryRow("SELECT COUNT(*) FROM amount_hours").Scan(&rows))
	if rows > 24 {
		t.Errorf("%d rows for six amounts, half of them in two series", rows)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		from, to := ordered(between(r, start, at), between(r, start, at))
		m.compare(t, s, []SeriesKey{h}, from, to, 1+r.IntN(50))
	}
}

func testSamples(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	for name, read := range map[string]func(context.Context) (time.Time, error){"SampledUntil": s.SampledUntil, "Since": s.Since} {
		if at := must[time.Time](t)(read(ctx)); !at.IsZero() {
			t.Errorf("empty store: %s is %s", name, at)
		}
	}
	h, other := SeriesKey{"vision", "a100", "cpu", Used}, SeriesKey{"vision", "a100", "cpu", Quota}
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ok(t, s.AppendSamples(ctx, nil))
	ok(t, s.AppendSamples(ctx, []Sample{{at(0), []Amount{{h, 5}, {h, 6}}}, {at(10), []Amount{{h, 6}}}, {At: at(20)}}))
	ok(t, s.AppendSamples(ctx, []Sample{{at(20), []Amount{{h, 0}}}, {at(20), []Amount{{h, 1}}}, {at(30), []Amount{{h, 0}}}}))
	for _, wrong := range [][]Sample{{{At: at(29)}}, {{At: at(40), Amounts: []Amount{{h, 9}, {other, 1}}}, {At: at(39)}}} {
		if err := s.AppendSamples(ctx, wrong); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("samples out of order: %v", err)
		}
	}
	ok(t, s.AppendSamples(ctx, []Sample{{At: at(50)}}))
	if diff := cmp.Diff(map[SeriesKey]int64{h: 0}, must[map[SeriesKey]int64](t)(s.CurrentAmounts(ctx))); diff != "" {
		t.Error(diff)
	}
	total := must[map[SeriesKey]Total](t)(s.Totals(ctx, []SeriesKey{h, other}, at(-100), at(100)))
	if got := total[h]; got.Sum.Int64() != (20*6+10*1)*60_000 || got.Known != 50*time.Minute || got.Average() != 2.6 {
		t.Errorf("%s in %s", got.Sum, got.Known)
	}
	if got := total[other]; got.Sum.Sign() != 0 || got.Known != 0 {
		t.Errorf("a failed call stored %s in %s", got.Sum, got.Known)
	}
	var rows int
	ok(t, s.reader.QueryRow("SELECT COUNT(*) FROM amounts").Scan(&rows))
	if rows != 2 {
		t.Errorf("%d intervals, want 2", rows)
	}
	var many []Amount
	for n := range 1500 {
		many = append(many, Amount{SeriesKey{fmt.Sprint("team-", n), "a100", "cpu", Used}, int64(n)})
	}
	for n := range 3 {
		for k := range many {
			many[k].Amount += int64(n)
		}
		ok(t, s.AppendSamples(ctx, []Sample{{at(60 + n), many}}))
	}
	if current := must[map[SeriesKey]int64](t)(s.CurrentAmounts(ctx)); len(current) != 1501 || current[many[1499].SeriesKey] != 1502 {
		t.Errorf("%d amounts, the last is %d", len(current), current[many[1499].SeriesKey])
	}
}

func testGaps(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ok(t, s.RecordGap(ctx, Gap{at(-60), at(-30), "before anything"}))
	h := SeriesKey{"vision", "a100", "cpu", Used}
	ok(t, s.AppendSamples(ctx, []Sample{{at(0), []Amount{{h, 1}}}, {At: at(10)}}))
	ok(t, s.RecordGap(ctx, Gap{at(15), at(20), "not running"})) // no sample after minute 10
	ok(t, s.RecordGap(ctx, Gap{at(15), at(20), "not running"}))
	ok(t, s.RecordGap(ctx, Gap{at(20), at(30), "not running"}))
	ok(t, s.RecordGap(ctx, Gap{at(30), at(40), "a full disk"}))
	if err := s.RecordGap(ctx, Gap{at(50), at(40), "backwards"}); err == nil {
		t.Error("accepted a gap that ends before it begins")
	}
	if current := must[map[SeriesKey]int64](t)(s.CurrentAmounts(ctx)); len(current) > 0 {
		t.Errorf("values across a gap: %v", current)
	}
	ok(t, s.AppendSamples(ctx, []Sample{{at(40), []Amount{{h, 1}}}, {At: at(45)}}))
	ok(t, s.RecordGap(ctx, Gap{at(45), at(45), "nothing"}))
	want := []Gap{{at(-60), at(-30), "before anything"}, {at(10), at(30), "not running"}, {at(30), at(40), "a full disk"}}
	for _, test := range []struct{ from, to, first, end int }{{-100, 100, 0, 3}, {-30, 10, 0, 0}, {-30, 11, 1, 2}, {30, 31, 2, 3}, {-31, -30, 0, 1}} {
		got := must[[]Gap](t)(s.Gaps(ctx, at(test.from), at(test.to)))
		if diff := cmp.Diff(want[test.first:test.end], append([]Gap{}, got...)); diff != "" {
			t.Errorf("from %d to %d: %s", test.from, test.to, diff)
		}
	}
	if total := must[map[SeriesKey]Total](t)(s.Totals(ctx, []SeriesKey{h}, at(-60), at(60)))[h]; total.Known != 15*time.Minute || total.Sum.Int64() != 15*60_000 {
		t.Errorf("%s in %s", total.Sum, total.Known)
	}
}

// Growth is recorded from the first on, and its average counts the time before.
func testFirstGrowth(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	used := SeriesKey{"vision", "a100", "cpu", Used}
	growth, none := used.Of(Growth), SeriesKey{"other", "a100", "cpu", Growth}
	ok(t, s.AppendSamples(ctx, []Sample{{start, []Amount{{used, 10}}}, {start.Add(45 * time.Minute), []Amount{{used, 18}, {growth, 8}}}, {At: start.Add(2 * time.Hour)}}))
	points := must[map[SeriesKey][]Point](t)(s.Series(ctx, []SeriesKey{growth, none}, start, start.Add(2*time.Hour), 2))
	want := map[SeriesKey][]Point{
		growth: {{start, 2, true}, {start.Add(time.Hour), 8, true}},
		none:   {{start, 0, false}, {start.Add(time.Hour), 0, false}},
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// CurrentAmounts returns the current value of every series that has one.
func (s *Store) CurrentAmounts(ctx context.Context) (map[SeriesKey]int64, error) {
	current := map[SeriesKey]int64{}
	err := s.read(ctx, "read current amounts", func(t *tx) error {
		query := "SELECT h.team, h.pool, h.resource, h.measure, o.amount FROM open_amounts o JOIN holders h ON h.id = o.holder"
		return t.query(query, nil, func(scan scanFunc) error {
			var k SeriesKey
			var amount int64
			err := scan(&k.Team, &k.Pool, &k.Resource, &k.Measure, &amount)
			if lower, ok := strings.CutSuffix(string(k.Measure), upperPart); ok {
				k.Measure, amount = Measure(lower), amount*lowerAmounts
			}
			current[k] += amount
			return err
		})
	})
	return current, err
}
