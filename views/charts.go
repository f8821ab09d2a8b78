package views

import (
	"strconv"
	"strings"
	"time"
)

// Chart is a chart over time. The script draws it from the table below it.
// Without the script the table is open.
type Chart struct {
	ID      string // stable HTML id; those of its parts begin with it
	Title   string
	Alone   bool    // whether the card around it shows title and note
	Note    string  // a sentence; empty for none
	Unit    string  // of all values, such as "GPUs"; empty for none
	Times   []int64 // Unix seconds, ascending, each once
	Days    bool    // whether Times are days, at 00:00 in UTC, of whatever time zone
	Series  []ChartSeries
	Stacked bool // stacked areas, from the first; series with Line are drawn over them
	Gaps    []ChartGap
	Max     float64 // minimum of the upper end of the axis; 0: from the values
	Empty   string  // shown instead of an empty chart
}

// ChartSeries is one line or area of a chart. Values has one value per time.
type ChartSeries struct {
	Label  string
	Tone   string // "own", "borrowed", "idle", "outside", "lost", "unplaced", "quota", "capacity", "ok", "wait", "bad", "pre" or "accent"
	Step   bool   // each value applies until the next
	Line   bool   // a line in a stacked chart
	Values []ChartValue
}

// ChartValue is a value at one time.
type ChartValue struct {
	Value float64
	Known bool   // false: a gap
	Text  string // in the table, such as "1,024"
}

// ChartGap is a period without data.
type ChartGap struct {
	From, To int64  // Unix seconds
	Why      string // a sentence; empty before history begins
}

// chartDashes distinguish lines without color, in CSS pixels.
var chartDashes = []string{"", "8 4", "2 3", "10 3 2 3", "5 3", "14 4", "1 2", "6 2 1 2 1 2"}

func chartDash(i int) string { return chartDashes[i%len(chartDashes)] }

// tone returns the tone of the series; "accent" for an unknown one.
func (s ChartSeries) tone() string {
	switch s.Tone {
	case "own", "borrowed", "idle", "outside", "lost", "unplaced", "quota", "capacity", "ok", "wait", "bad", "pre":
		return s.Tone
	}
	return "accent"
}

// area reports whether a series is drawn as an area.
func (c Chart) area(s ChartSeries) bool { return c.Stacked && !s.Line }

func (c Chart) kind(s ChartSeries) string {
	if c.area(s) {
		return "area"
	}
	return "line"
}

// day returns the date of a time of Days.
func day(at int64) string { return time.Unix(at, 0).UTC().Format("2 Jan 2006") }

func (c Chart) rowID(i int) string { return c.ID + "-" + strconv.FormatInt(c.Times[i], 10) }

// head returns the label with the unit, for the head of a column.
func (c Chart) head(label string) string {
	if c.Unit == "" {
		return label
	}
	return label + ", " + c.Unit
}

// value returns the value at a time; the zero value, a gap, if there is none.
func (s ChartSeries) value(i int) ChartValue {
	if i < len(s.Values) {
		return s.Values[i]
	}
	return ChartValue{}
}

func (v ChartValue) number() string { return strconv.FormatFloat(v.Value, 'f', -1, 64) }

func rfc3339(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

func unixText(unix int64) string { return strconv.FormatInt(unix, 10) }

// RangePicker selects the time range of a page.
type RangePicker struct {
	ID       string
	Links    []RangeLink
	Action   string        // address for a custom range
	Fields   []HiddenField // other parameters of the address
	From, To string        // as typed or applied, such as 2026-11-22T09:30, in UTC
	Open     bool          // whether a custom range is applied or was requested
	Error    string        // why the requested range is invalid; empty for none
}

func (p RangePicker) describedBy() string {
	ids := []string{p.ID + "-zone"}
	if p.Error != "" {
		ids = append(ids, p.ID+"-from-error")
	}
	return strings.Join(ids, " ")
}
