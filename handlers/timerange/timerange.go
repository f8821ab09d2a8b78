package timerange

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

const Day = 24 * time.Hour

// RefreshInterval returns how long a chart stays valid: a tenth of its buckets.
func (r Range) RefreshInterval() time.Duration {
	return max(5*time.Second, r.To.Sub(r.From)/time.Duration(10*r.Buckets))
}

// Range is the range of time of a page. In its address, range= names a predefined
// one; from= and to= are any other, in UTC.
type Range struct {
	From, To time.Time
	Buckets  int    // number of points of a chart, at equal distances
	Words    string // such as "the last 12 h", as ui.Sentence takes it
	Name     string // of a predefined range; else empty
	from, to string // as typed
	problem  string // a sentence about an invalid range; else empty
	usual    string // name of the default range of the address
}

// usualRanges are the predefined ranges, with the length of their buckets.
var usualRanges = []struct {
	name, label, title string
	length, bucket     time.Duration
}{
	{"1h", "1 h", "the last hour", time.Hour, 30 * time.Second},
	{"12h", "12 h", "the last 12 hours", 12 * time.Hour, 5 * time.Minute},
	{"24h", "24 h", "the last 24 hours", 24 * time.Hour, 10 * time.Minute},
	{"7d", "7 d", "the last 7 days", 7 * 24 * time.Hour, time.Hour},
	{"30d", "30 d", "the last 30 days", 30 * 24 * time.Hour, 6 * time.Hour},
	{"1y", "1 year", "the last year", 365 * 24 * time.Hour, 3 * 24 * time.Hour},
}

const (
	UsualRange  = "12h"
	rangeLayout = "2006-01-02T15:04" // as browsers send it
)

// Requested returns the range in an address. The default is the usual range, or a
// shorter one that covers all of a recently started history.
func Requested(ctx context.Context, past console.History, values url.Values, now time.Time) Range {
	var since time.Time
	if past != nil && !Chosen(values) {
		since, _ = past.Since(ctx) // the chart reports the error
	}
	return Parse(values, usualSince(since, now), now)
}

// Chosen reports whether an address has a range.
func Chosen(values url.Values) bool {
	return values.Get("range")+values.Get("from")+values.Get("to") != ""
}

// usualSince returns the name of the smallest range that covers history since that
// time, at most the usual one.
func usualSince(since, now time.Time) string {
	for _, u := range usualRanges {
		if u.name == UsualRange || !since.IsZero() && now.Sub(since) <= u.length {
			return u.name
		}
	}
	return UsualRange
}

// Parse reads a range from an address. An invalid range is reported by the picker,
// and the usual one used instead.
func Parse(values url.Values, usual string, now time.Time) Range {
	r := readRange(values, usual, now)
	r.usual = usual
	return r
}

func readRange(values url.Values, usual string, now time.Time) Range {
	asked, from, to := values.Get("range"), values.Get("from"), values.Get("to")
	if from == "" && to == "" {
		if asked == "" {
			return NamedRange(usual, now)
		}
		if r := NamedRange(asked, now); r.Name != "" {
			return r
		}
		return badRange(now, from, to, fmt.Sprintf("Unknown range %q.", format.Truncated(asked)))
	}
	begin, err := rangeTime(from)
	if err != nil {
		return badRange(now, from, to, fmt.Sprintf("From is %q, which is not a valid time. Write it as %s.", format.Truncated(from), now.UTC().Format(rangeLayout)))
	}
	end := now
	if to != "" {
		if end, err = rangeTime(to); err != nil {
			return badRange(now, from, to, fmt.Sprintf("To is %q, which is not a valid time. Write it as %s.", format.Truncated(to), now.UTC().Format(rangeLayout)))
		}
	}
	if end.After(now) {
		end = now
	}
	switch {
	case begin.After(now):
		return badRange(now, from, to, "The range begins in the future. Choose an earlier start.")
	case !begin.Before(end):
		return badRange(now, from, to, "The range ends before it begins. Choose a later end.")
	}
	r := ranged(begin, end, bucketOf(end.Sub(begin)))
	r.from, r.to = from, to
	r.Words = format.Time(begin) + " to " + format.Time(end)
	return r
}

func rangeTime(text string) (time.Time, error) {
	at, err := time.Parse(rangeLayout, text)
	if err != nil {
		at, err = time.Parse(rangeLayout+":05", text) // some browsers send seconds
	}
	if err == nil && (at.Year() < 2000 || at.Year() > 9000) {
		return at, fmt.Errorf("%s is outside of what is kept", text)
	}
	return at, err
}

// NamedRange returns a predefined range; the zero Range if none has that name.
func NamedRange(name string, now time.Time) Range {
	for _, u := range usualRanges {
		if u.name == name {
			r := ranged(now.Add(-u.length), now, u.bucket)
			r.Name, r.Words = name, u.title
			return r
		}
	}
	return Range{}
}

func badRange(now time.Time, from, to, why string) Range {
	r := NamedRange(UsualRange, now)
	r.from, r.to, r.problem = from, to, why+" Showing "+r.Words+"."
	return r
}

// ranged aligns a range with its buckets, so that the points of a chart do not move
// with time.
func ranged(from, to time.Time, bucket time.Duration) Range {
	from = from.UTC().Truncate(bucket)
	n := int((to.Sub(from) + bucket - 1) / bucket)
	return Range{From: from, To: from.Add(time.Duration(n) * bucket), Buckets: n}
}

// bucketOf returns a length of buckets with which a range has at most 150.
func bucketOf(length time.Duration) time.Duration {
	bucket := 10 * time.Second
	for _, b := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		if length <= 150*bucket {
			return bucket
		}
		bucket = b
	}
	for length > 150*bucket {
		bucket *= 2
	}
	return bucket
}

// SetValues adds the range to an address. A default that depends on the length of
// history is named, so that the address means the same later.
func (r Range) SetValues(values url.Values) {
	for _, pair := range [][2]string{{"range", r.named(r.Name)}, {"from", r.from}, {"to", r.to}} {
		if pair[1] != "" && r.problem == "" {
			values.Set(pair[0], pair[1])
		}
	}
}

// Picker returns the picker of ranges for the page at path. values are the other
// values of its address.
func (r Range) Picker(id, path string, values url.Values) views.RangePicker {
	p := views.RangePicker{ID: id, Action: path, From: typedTime(r.from), To: typedTime(r.to), Open: r.from != "" || r.to != "", Error: r.problem}
	if !p.Open {
		p.From, p.To = r.From.Format(rangeLayout), r.To.Format(rangeLayout)
	}
	for _, u := range usualRanges {
		p.Links = append(p.Links, views.RangeLink{
			Label: u.label, Title: u.label + ": " + u.title, Current: r.Name == u.name && r.problem == "",
			URL: urls.With(path, values, "range", r.named(u.name), "from", "", "to", ""),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != "range" && name != "from" && name != "to" {
			for _, value := range values[name] {
				p.Fields = append(p.Fields, views.HiddenField{Name: name, Value: value})
			}
		}
	}
	return p
}

// typedTime returns text if it is a valid time for an input; else "".
func typedTime(text string) string {
	if _, err := rangeTime(text); err != nil {
		return ""
	}
	return text
}

// named returns the name of a range for an address: "" for the usual one if it is
// the default.
func (r Range) named(name string) string {
	if name == UsualRange && r.usual == UsualRange {
		return ""
	}
	return name
}
