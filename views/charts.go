package views

import (
	"strconv"
	"strings"
	"time"
)

// Chart is figures over time: a picture, drawn in the browser from the table
// that stands below it for reading. Without a script the table is open.
type Chart struct {
	ID      string // stable HTML id; those of its parts begin with it
	Title   string
	Alone   bool    // what it stands in has its title and note already
	Note    string  // a sentence on what it says; empty for none
	Unit    string  // of all values, such as "GPUs"; empty for none
	Times   []int64 // Unix seconds, ascending, each once
	Series  []ChartSeries
	Stacked bool // areas on top of each other, from the first; series with Line stand before them
	Gaps    []ChartGap
	Max     float64 // that the axis reaches at least; 0 for what the values ask for
	Empty   string  // a sentence instead, where there is nothing to draw; else empty
}

// ChartSeries is one line or area of a chart, with a value for each of its times.
type ChartSeries struct {
	Label  string
	Tone   string // "own", "borrowed", "idle", "outside", "lost", "unplaced", "quota", "capacity", "ok", "wait", "bad", "pre" or "accent"
	Step   bool   // each value holds until the next
	Line   bool   // a line in a stacked chart
	Values []ChartValue
}

// ChartValue is a value at one time.
type ChartValue struct {
	Value float64
	Known bool   // a gap, where false
	Text  string // as the table has it, such as "1,024"; not read where it is not known
}

// ChartGap is a time of which nothing is known.
type ChartGap struct {
	From, To int64  // Unix seconds
	Why      string // a sentence; empty before history begins
}

// chartDashes tell lines apart without their colours, in CSS pixels.
var chartDashes = []string{"", "8 4", "2 3", "10 3 2 3", "5 3", "14 4", "1 2", "6 2 1 2 1 2"}

func chartDash(i int) string { return chartDashes[i%len(chartDashes)] }

// tone is the series' own, or "accent" where there is no such tone.
func (s ChartSeries) tone() string {
	switch s.Tone {
	case "own", "borrowed", "idle", "outside", "lost", "unplaced", "quota", "capacity", "ok", "wait", "bad", "pre":
		return s.Tone
	}
	return "accent"
}

// area tells whether a series is drawn filled.
func (c Chart) area(s ChartSeries) bool { return c.Stacked && !s.Line }

func (c Chart) kind(s ChartSeries) string {
	if c.area(s) {
		return "area"
	}
	return "line"
}

func (c Chart) rowID(i int) string { return c.ID + "-" + strconv.FormatInt(c.Times[i], 10) }

// head is a label with the unit, as heads of tables have it.
func (c Chart) head(label string) string {
	if c.Unit == "" {
		return label
	}
	return label + ", " + c.Unit
}

// value is what a series has at one time; one that has none there is not known.
func (s ChartSeries) value(i int) ChartValue {
	if i < len(s.Values) {
		return s.Values[i]
	}
	return ChartValue{}
}

func (v ChartValue) number() string { return strconv.FormatFloat(v.Value, 'f', -1, 64) }

func rfc3339(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

func unixText(unix int64) string { return strconv.FormatInt(unix, 10) }

// BarList is a list of bars that share one scale, the same with and without a
// script.
type BarList struct {
	ID   string
	Note string // what bar and mark mean; empty for nothing
	Max  float64
	Rows []BarRow
	More string // a sentence on those that are not shown; empty for all
}

// BarRow is one bar.
type BarRow struct {
	ID    string // stable HTML id
	Name  string
	URL   string // empty for no page
	Text  string // its figures, such as "8 of 6 GPUs"
	Parts []BarPart
	Mark  float64 // a line across the bar; 0 for none
}

// BarPart is one stretch of a bar.
type BarPart struct {
	Use   string // as ui.MeterPart has it
	Value float64
}

// RangePicker chooses the time that a page's figures are over.
type RangePicker struct {
	ID       string
	Links    []RangeLink
	Action   string        // where a range of one's own is sent
	Fields   []HiddenField // of the address, that are kept
	From, To string        // as typed or in force, such as 2026-11-22T09:30, in UTC
	Open     bool          // a range of one's own is in force, or was asked for
	Error    string        // a sentence on what was asked for and cannot be; empty for nothing
}

func (p RangePicker) describedBy() string {
	ids := []string{p.ID + "-zone"}
	if p.Error != "" {
		ids = append(ids, p.ID+"-from-error")
	}
	return strings.Join(ids, " ")
}
