package timerange

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestRanges(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 1, 7, 0, time.UTC)
	tests := map[string]struct {
		address   string
		from      string // of the shown range
		buckets   int
		wantWrong string
	}{
		"12 hours are usual":                      {"", "2026-11-22T00:00:00Z", 145, ""},
		"one by its name":                         {"range=1h", "2026-11-22T11:01:00Z", 121, ""},
		"a year":                                  {"range=1y", "2025-11-21T00:00:00Z", 123, ""},
		"one of one's own":                        {"from=2026-11-22T09:30&to=2026-11-22T10:30", "2026-11-22T09:30:00Z", 120, ""},
		"to now":                                  {"from=2026-11-22T12:00", "2026-11-22T12:00:00Z", 7, ""},
		"with seconds":                            {"from=2026-11-22T12:00:30", "2026-11-22T12:00:30Z", 4, ""},
		"what ends later ends now":                {"from=2026-11-22T12:00&to=2030-01-01T00:00", "2026-11-22T12:00:00Z", 7, ""},
		"an unknown name gives the usual":         {"range=2h", "2026-11-22T00:00:00Z", 145, `Unknown range "2h". Showing the last 12 hours.`},
		"no time gives the usual":                 {"from=yesterday", "2026-11-22T00:00:00Z", 145, `From is "yesterday", which is not a valid time. Write it as 2026-11-22T12:01.`},
		"an end alone gives the usual":            {"to=2026-11-22T09:30", "2026-11-22T00:00:00Z", 145, `From is ""`},
		"an end before the begin gives the usual": {"from=2026-11-22T10:30&to=2026-11-22T09:30", "2026-11-22T00:00:00Z", 145, "ends before it begins"},
		"no length gives the usual":               {"from=2026-11-22T10:30&to=2026-11-22T10:30", "2026-11-22T00:00:00Z", 145, "ends before it begins"},
		"the future gives the usual":              {"from=2027-01-01T00:00", "2026-11-22T00:00:00Z", 145, "begins in the future"},
		"the year 0 gives the usual":              {"from=0000-01-01T00:00", "2026-11-22T00:00:00Z", 145, "which is not a valid time"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values, err := url.ParseQuery(test.address)
			if err != nil {
				t.Fatal(err)
			}
			r := Parse(values, UsualRange, now)
			if got := r.From.Format(time.RFC3339); got != test.from || r.Buckets != test.buckets {
				t.Errorf("from %s in %d buckets, want %s in %d", got, r.Buckets, test.from, test.buckets)
			}
			if !strings.HasPrefix(r.problem, test.wantWrong) && !strings.Contains(r.problem, test.wantWrong) || (r.problem == "") != (test.wantWrong == "") {
				t.Errorf("got %q, want %q", r.problem, test.wantWrong)
			}
			bucket := r.To.Sub(r.From) / time.Duration(r.Buckets)
			if r.To.Before(r.From.Add(bucket)) || !r.From.Equal(r.From.Truncate(bucket)) || r.Buckets > 151 {
				t.Errorf("%s to %s in %d buckets do not lie where buckets do", r.From, r.To, r.Buckets)
			}
			kept := url.Values{}
			r.SetValues(kept)
			if again := Parse(kept, UsualRange, now); r.problem == "" && (!again.From.Equal(r.From) || !again.To.Equal(r.To)) {
				t.Errorf("its own address %q is another range", kept.Encode())
			}
		})
	}
}

func TestPickerKeepsOtherValues(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 1, 7, 0, time.UTC)
	values := url.Values{"tq": {"vis"}, "range": {"7d"}}
	p := Parse(values, UsualRange, now).Picker("time", "/", values)
	var current []string
	for _, link := range p.Links {
		if !strings.Contains(link.URL, "tq=vis") || link.Current != (link.Label == "7 d") {
			t.Errorf("%+v", link)
		}
		if link.Label == "12 h" {
			current = append(current, link.URL)
		}
	}
	if len(current) != 1 || current[0] != "/?tq=vis" {
		t.Errorf("the usual range is at %q", current)
	}
	if len(p.Fields) != 1 || p.Fields[0].Name != "tq" || p.Open {
		t.Errorf("the form is %+v", p)
	}
}

func TestRangeOfAShortHistoryIsTheSmallestThatCoversIt(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 1, 7, 0, time.UTC)
	for name, test := range map[string]struct {
		since time.Time
		want  string
	}{
		"no history":           {time.Time{}, "12h"},
		"history of a minute":  {now.Add(-time.Minute), "1h"},
		"history of an hour":   {now.Add(-time.Hour), "1h"},
		"history of two hours": {now.Add(-2 * time.Hour), "12h"},
		"history of a year":    {now.Add(-365 * Day), "12h"},
	} {
		t.Run(name, func(t *testing.T) {
			usual := usualSince(test.since, now)
			if usual != test.want {
				t.Fatalf("the range is %s, want %s", usual, test.want)
			}
			kept := url.Values{}
			Parse(url.Values{}, usual, now).SetValues(kept)
			if got := Parse(kept, UsualRange, now); got.Name != test.want {
				t.Errorf("once history is longer, its own address %q means %s, want %s", kept.Encode(), got.Name, test.want)
			}
			for _, link := range Parse(url.Values{}, usual, now).Picker("time", "/", nil).Links {
				address, err := url.Parse(link.URL)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.ReplaceAll(strings.ReplaceAll(link.Label, " ", ""), "1year", "1y")
				if got := Parse(address.Query(), usual, now); got.Name != want {
					t.Errorf("the link to %s leads to %s", want, got.Name)
				}
			}
			if got := Parse(url.Values{"range": {"24h"}}, usual, now); got.Name != "24h" {
				t.Errorf("an address that asks for 24 h gets %s", got.Name)
			}
		})
	}
}
