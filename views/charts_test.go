package views_test

import (
	"testing"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/htmlcheck"
)

func sampleChart() views.Chart {
	known := func(v float64, text string) views.ChartValue {
		return views.ChartValue{Value: v, Known: true, Text: text}
	}
	return views.Chart{
		ID: "held", Title: "Held", Note: hostile, Unit: "GPUs", Times: []int64{1700000000, 1700000300, 1700000600}, Stacked: true, Max: 1024,
		Series: []views.ChartSeries{
			{Label: "Own", Tone: "own", Step: true, Values: []views.ChartValue{known(1024, "1,024"), {}, known(0.5, "0.5")}},
			{Label: hostile, Tone: hostile, Line: true, Values: []views.ChartValue{known(3, hostile)}},
		},
		Gaps: []views.ChartGap{{From: 1700000300, To: 1700000500, Why: hostile}},
	}
}

func samplePicker() views.RangePicker {
	return views.RangePicker{
		ID: "time", Action: "/", Links: []views.RangeLink{{Label: "1 h", Title: "The last hour", URL: "/?range=1h", Current: true}}, Fields: []views.HiddenField{{"q", hostile}},
		From: hostile, To: "2026-11-22T09:30", Open: true, Error: hostile,
	}
}

// The script draws the numbers of the table, and nothing where there is no data.
func TestChartsAreReadFromTheirTables(t *testing.T) {
	doc := htmlcheck.Render(t, views.ChartFigure(sampleChart()))
	htmlcheck.Fragment(t, doc)
	if n := doc.Find("img, script").Length(); n != 0 {
		t.Errorf("%d elements came out of texts", n)
	}
	heads, first, second := doc.Find("thead th[data-kind]"), doc.Find("#held-1700000000 td"), doc.Find("#held-1700000300 td")
	if heads.Eq(0).AttrOr("data-kind", "") != "area" || heads.Eq(1).AttrOr("data-kind", "") != "line" || heads.Eq(0).Text() != "Own, GPUs" {
		t.Errorf("heads are %s", heads.Text())
	}
	if heads.Eq(0).AttrOr("data-dash", "") == heads.Eq(1).AttrOr("data-dash", "") {
		t.Error("only their colours tell two series apart")
	}
	if first.Eq(0).AttrOr("data-value", "") != "1024" || first.Eq(0).Text() != "1,024" {
		t.Errorf("the first figure is %q, shown as %q", first.Eq(0).AttrOr("data-value", ""), first.Eq(0).Text())
	}
	for i := range 2 {
		if _, there := second.Eq(i).Attr("data-value"); there {
			t.Error("what is not known has a figure")
		}
	}
	if _, open := doc.Find("details.chart-figures").Attr("open"); !open {
		t.Error("without a script the table is closed")
	}
	if got := doc.Find(".chart-gaps li").AttrOr("data-to", ""); got != "1700000500" {
		t.Errorf("the gap ends at %q", got)
	}
}

func TestEmptyChartShowsReason(t *testing.T) {
	chart := sampleChart()
	chart.Empty = "Nothing was kept yet."
	doc := htmlcheck.Render(t, views.ChartFigure(chart))
	htmlcheck.Fragment(t, doc)
	if doc.Find(".chart-empty").Text() != chart.Empty || doc.Find("table, .chart-plot").Length() != 0 {
		t.Errorf("it shows %s", doc.Text())
	}
}

func TestRanges(t *testing.T) {
	picker := htmlcheck.Render(t, views.PickRange(samplePicker()))
	htmlcheck.Fragment(t, picker)
	if picker.Find(`a[aria-current=true]`).Text() != "1 h" || picker.Find("input[type=hidden]").AttrOr("value", "") != hostile || picker.Find(".error").Text() != hostile {
		t.Errorf("the picker is %s", picker.Text())
	}
}
