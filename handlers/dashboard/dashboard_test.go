package dashboard_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// historyDomain is a history in memory: every amount is constant over time.
type historyDomain struct {
	classes []history.ClassStats
	amounts map[history.SeriesKey]float64
	gaps    []history.Gap
	since   time.Time
	failure error
	asked   []history.SeriesKey
	from    time.Time
}

func (d *historyDomain) ClassStats(_ context.Context, _ []string, from, _ time.Time) ([]history.ClassStats, error) {
	d.from = from
	return d.classes, d.failure
}

func (d *historyDomain) Series(_ context.Context, keys []history.SeriesKey, from, to time.Time, count int) (map[history.SeriesKey][]history.Point, error) {
	d.asked = keys
	series := map[history.SeriesKey][]history.Point{}
	for _, key := range keys {
		for i := range count {
			amount, known := d.amounts[key]
			series[key] = append(series[key], history.Point{At: from.Add(to.Sub(from) / time.Duration(count) * time.Duration(i)), Value: amount, Known: known && i > 0})
		}
	}
	return series, d.failure
}

func (d *historyDomain) Totals(context.Context, []history.SeriesKey, time.Time, time.Time) (map[history.SeriesKey]history.Total, error) {
	return map[history.SeriesKey]history.Total{{}: {Sum: new(big.Int)}}, d.failure
}

func (d *historyDomain) Usage(_ context.Context, _ history.UsageQuery, bounds []time.Time) ([]map[history.SeriesKey]history.Total, error) {
	return make([]map[history.SeriesKey]history.Total, len(bounds)-1), d.failure
}

func (d *historyDomain) TaskUsage(context.Context, history.UsageKey, history.TaskUsageQuery, time.Time, time.Time) ([]history.TaskUsageTotal, error) {
	return nil, d.failure
}

func (d *historyDomain) TasksOf(context.Context, []string) (map[string]history.Task, error) {
	return nil, d.failure
}

func (d *historyDomain) Recorded(context.Context) (pools, resources []string, err error) {
	return nil, nil, d.failure
}

func (d *historyDomain) SampledUntil(context.Context) (time.Time, error) {
	return time.Time{}, d.failure
}

func (d *historyDomain) Gaps(context.Context, time.Time, time.Time) ([]history.Gap, error) {
	return d.gaps, d.failure
}

func (d *historyDomain) Tasks(context.Context, history.Query) ([]history.Task, error) {
	return nil, d.failure
}

func (d *historyDomain) Trends(context.Context, history.TrendKey, []string, time.Time, time.Time, int) (map[string][]history.Trend, error) {
	return nil, d.failure
}

func (d *historyDomain) Activity(context.Context, history.ActivityQuery) ([]history.Activity, error) {
	return nil, d.failure
}

func (d *historyDomain) Timeline(context.Context, string) (history.Task, []history.Event, bool, error) {
	return history.Task{}, nil, false, d.failure
}

func (d *historyDomain) TrainingStarts(context.Context, string, int) ([]history.TrainingStart, error) {
	return nil, nil
}

func (d *historyDomain) ScaleEvents(context.Context, string, int) ([]history.ScaleEvent, error) {
	return nil, d.failure
}

// AboveSince is what no page of this package asks.
func (d *historyDomain) AboveSince(context.Context, []history.Above, time.Time) ([]time.Time, error) {
	return nil, d.failure
}

func (d *historyDomain) Since(context.Context) (time.Time, error) { return d.since, d.failure }

func TestDashboard(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	d.List.Since = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "training-priority", Running: 2, Pending: 2, Preempted: 1}}
	response, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/")
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"stat-instances": "Instances 6 in 4 pools", "stat-running": "Running instances 4 1 cordoned", "stat-tasks": "Waiting tasks 3 2 running", "stat-recovery": "Pending recovery 1",
		"stat-nvidia.com/gpu": "GPUs 1,608 12 used · 1 not placed · 3 borrowed · 4 unhealthy", "stat-aws.amazon.com/neurondevice": "Neuron devices 16 0 used",
		"stat-accelerator-memory": "Accelerator memory 128,512 GB of 1,616 accelerators; unknown for 8",
		"stat-cpu":                "vCPUs 112 0 used", "stat-memory": "Memory 4 GiB 0.5 GiB used",
	} {
		if got := handlerstest.Text(page.Find("#" + strings.NewReplacer(".", `\.`, "/", `\/`).Replace(id))); got != want {
			t.Errorf("%s shows %q, want %q", id, got, want)
		}
	}
	var lines []string
	page.Find("#pools-table tbody tr").Each(func(_ int, row *goquery.Selection) { lines = append(lines, handlerstest.Text(row)) })
	if want := []string{
		"p5 H100 · 2 instances 1 cordoned 1,600 GPUs 6 2 0 0 1,592 15 1 1 borrowed 4",
		"trn 1 instance 16 Neuron devices 0 0 0 0 16 0 0 0",
		"g6 L4 · 2 instances 1 pending recovery 8 GPUs 3 0 1 4 0 10 over capacity by 2 0 0",
		"cpu 1 instance 16 vCPU 0 0 0 0 16 0 0 0",
	}; strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("pools are\n%s", strings.Join(lines, "\n"))
	}
	if got := page.Find("#pools-table svg[role=img]").First().AttrOr("aria-label", ""); got != "Of 1,600 GPUs: 6 own, 2 borrowed, 0 outside Kueue, 0 unhealthy, 1,592 idle; 15 allocated as quota; 1 used and not placed" {
		t.Errorf("the first line is read as %q", got)
	}
	if got := page.Find("#team-vision svg").AttrOr("aria-label", ""); got != "vision: 11 of 15" {
		t.Errorf("the bar of vision is read as %q", got)
	}
	if got := handlerstest.Text(page.Find("#classes")); !strings.Contains(got, "averages since 22 Nov 2026, 09:00:00 UTC") || !strings.Contains(got, "training 2") {
		t.Errorf("classes say %q", got)
	}
	if got := handlerstest.Text(page.Find("#held-chart")); !strings.Contains(got, "History is off") {
		t.Errorf("the chart shows %q", got)
	}
	if page.Find(`a.brand[href="/"]`).Length() != 1 || page.Find(`.tabs a[aria-current=page]`).Text() != "Dashboard" {
		t.Error("the way to the dashboard is missing")
	}
}

// An unreachable cluster is reported as on every page. Unavailable history affects
// only its own sections.
func TestDashboardWithoutItsSources(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	d.Past = &historyDomain{failure: errors.New("dial tcp 10.0.0.7: secret"), since: time.Now()}
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "training-priority", Running: 2}}
	address := handlerstest.Serve(t, d)
	response, page := handlerstest.Get(t, address+"/")
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find("#pools-table tbody tr").Length() != 4 || page.Find("#team-list tbody tr").Length() != 3 {
		t.Errorf("without history the answer is %s: %s", response.Status, handlerstest.Text(page.Find("main")))
	}
	for id, want := range map[string]string{"#held-chart": "History cannot be shown now", "#classes": "History cannot be read now; averages since"} {
		if got := handlerstest.Text(page.Find(id)); !strings.Contains(got, want) || strings.Contains(got, "10.0.0.7") {
			t.Errorf("%s shows %q", id, got)
		}
	}
	d.CapacityBackend.Failure = &governance.Error{Kind: governance.Unavailable, Message: "The cluster does not answer.", Err: errors.New("secret")}
	for _, path := range []string{"/", "/teams", "/teams.csv", "/capacity.csv"} {
		response, page := handlerstest.Get(t, address+path)
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(page.Text(), "The cluster does not answer.") {
			t.Errorf("%s answers %s: %s", path, response.Status, handlerstest.Text(page.Selection))
		}
	}
}

func TestDashboardHistory(t *testing.T) {
	at := func(pool string, measure history.Measure) history.SeriesKey {
		return history.SeriesKey{Pool: pool, Resource: catalog.GPU, Measure: measure}
	}
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	d.List.ByPriorityClass = []index.PriorityClassRow{
		{PriorityClass: "training-priority", Running: 1, RunningFor: 5 * time.Hour},
		{Running: 0, Pending: 1, Waiting: time.Minute},
	}
	past := &historyDomain{
		amounts: map[history.SeriesKey]float64{at("p5", history.OwnBound): 6, at("g6", history.OwnBound): 3.5, at("p5", history.Physical): 1600},
		gaps:    []history.Gap{{From: time.Now().Add(-2 * time.Hour), To: time.Now().Add(-time.Hour), Reason: "The console was not running."}},
		since:   time.Now().Add(-time.Hour),
		classes: []history.ClassStats{
			{Class: "", Waits: 2, WaitMillis: 10_000, LongestWait: 8 * time.Second},
			{Class: "training-priority", Runs: 4, RunMillis: 4 * 3_600_000, LongestRun: 2 * time.Hour},
			{Class: "gone-priority", Runs: 1, RunMillis: 1000, LongestRun: time.Second},
		},
	}
	d.Past = past
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/?range=7d")
	htmlcheck.Page(t, page)
	row := page.Find("#held-chart-table tbody tr")
	if row.Length() != 169 {
		t.Errorf("a week has %d rows", row.Length())
	}
	if got := handlerstest.Text(row.First()); !strings.HasSuffix(got, "9.5 no data – no data – 1,600 no data –") {
		t.Errorf("the latest row is %q", got)
	}
	if got := page.Find("#held-chart .chart-gaps").Text(); !strings.Contains(got, "The console was not running.") || !strings.Contains(got, "No data before ") {
		t.Errorf("the gap is shown as %q", got)
	}
	var classes []string
	page.Find("#classes tbody tr").Each(func(_ int, row *goquery.Selection) { classes = append(classes, handlerstest.Text(row)) })
	if want := []string{
		"training 1 0 0 1 h 00 m – 5 h 00 m –", "gone 0 0 0 1 s – 1 s –", "No priority class 0 1 0 – 5 s – 1 m",
	}; strings.Join(classes, "\n") != strings.Join(want, "\n") {
		t.Errorf("classes are\n%s", strings.Join(classes, "\n"))
	}
	if got := page.Find("#classes .note"); !strings.Contains(got.Text(), " UTC, when history begins") || got.Find("time[data-local]").Length() != 1 {
		t.Errorf("classes say %q", got.Text())
	}
	if !past.from.Equal(past.since) || d.WithinAsked != 24*time.Hour {
		t.Errorf("asked from %s, and for what goes on within %s", past.from, d.WithinAsked)
	}
	_, page = handlerstest.Get(t, address+"/?pool=none&resource=foo")
	for id, want := range map[string]string{"pool": `Pool: "none" is none of the choices, which are All pools, cpu, g6, p5, trn.`, "resource": `Resource: "foo" is none of the choices`} {
		if got := handlerstest.Text(page.Find("#" + id + "-hint")); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_, page = handlerstest.Get(t, address+"/?pool=g6")
	for id, want := range map[string]string{"#stat-instances": "in 1 pool", "#stat-tasks": ", whole cluster", "#classes .note": "whole cluster", "#team-list .note": "tasks: whole cluster"} {
		if got := handlerstest.Text(page.Find(id)); !strings.Contains(got, want) {
			t.Errorf("for one pool %s shows %q, want %q", id, got, want)
		}
	}
	for _, key := range past.asked {
		if key.Pool != "g6" {
			t.Errorf("for one pool it asks %v", key)
		}
	}
	if got := page.Find("#time a[aria-current]").Text(); got != "12 h" {
		t.Errorf("the usual range is %q", got)
	}
	past.since = time.Now().Add(-time.Minute)
	for query, want := range map[string]string{"": "1 h", "?range=12h": "12 h", "?range=30d": "30 d"} {
		_, page = handlerstest.Get(t, address+"/"+query)
		if got := page.Find("#time a[aria-current]").Text(); got != want {
			t.Errorf("with history of a minute, %q shows %q, want %q", query, got, want)
		}
		if stream := page.Find("body").AttrOr("data-stream", ""); query == "" && !strings.Contains(stream, "range=1h") {
			t.Errorf("the page is updated from %q", stream)
		}
	}
	_, page = handlerstest.Get(t, address+"/?from=x")
	htmlcheck.Page(t, page)
	if got := handlerstest.Text(page.Find("#time-from-error")); !strings.Contains(got, `From is "x", which is not a valid time`) {
		t.Errorf("a bad range is answered with %q", got)
	}
}

func TestDashboardOfEmptyCluster(t *testing.T) {
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{})+"/")
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{"#pools": "No instances", "#team-list": "No teams yet"} {
		if got := handlerstest.Text(page.Find(id)); !strings.Contains(got, want) {
			t.Errorf("%s shows %q", id, got)
		}
	}
}

func TestFiguresAsCSV(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	d.List.ByPriorityClass = []index.PriorityClassRow{{PriorityClass: "training-priority", Running: 2, LongestRun: time.Minute}}
	address := handlerstest.Serve(t, d)
	file := func(path string) (status int, text []byte) {
		response, err := handlerstest.Client.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if text, err = io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, text
	}
	read := func(path string) [][]string {
		_, text := file(path)
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for path, want := range map[string][]string{
		"/capacity.csv?pool=p5&resource=memory": {"p5,memory,GiB,2,1,0,1,4,0,0,0,0,0,0,0,0,0,0.5,0,0,0,0,0,0,0,0"},
		"/teams.csv?q=spee":                     {"speech,'=Speech,hyperpod-ns-speech,0,,nvidia.com/gpu,GPUs,0,1,0,1,0,,0,4,0,"},
		"/teams.csv?pool=p5&q=vision":           {"vision,Vision,,0,p5,nvidia.com/gpu,GPUs,6,8,6,2,0,133.33,1234,0,0,"},
	} {
		rows := read(path)
		var got []string
		for _, row := range rows[1:] {
			got = append(got, strings.Join(row, ","))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s is\n%s", path, strings.Join(got, "\n"))
		}
	}
	if rows := read("/capacity.csv"); len(rows) != 7 {
		t.Errorf("all pools have %d rows", len(rows))
	}
	if rows := read("/classes.csv"); len(rows) != 2 || strings.Join(rows[1][:10], ",") != "training,2,0,0,,,60,,0,0" {
		t.Errorf("classes are %v", rows)
	}

	// All in one file, as each address answers.
	_, teams := file("/teams.csv?pool=p5&q=vision")
	_, again := file("/teams.csv")
	_, all := file(urls.ExportOf("/teams.csv?pool=p5&q=vision", "/teams.csv", "/nothing.csv"))
	archive, err := zip.NewReader(bytes.NewReader(all), int64(len(all)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"teams.csv": string(teams), "teams-2.csv": string(again), "missing.txt": "These tables could not be read: nothing.csv\n"} {
		got, err := fs.ReadFile(archive, name)
		if err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
	for _, wrong := range []string{urls.Export, urls.ExportOf("/settings"), urls.ExportOf("https://example.com/teams.csv"), urls.ExportOf("//example.com/teams.csv")} {
		if status, _ := file(wrong); status != http.StatusNotFound {
			t.Errorf("%s answers %d", wrong, status)
		}
	}
}

func TestFiguresAreLive(t *testing.T) {
	d := &handlerstest.Backend{Changed: make(chan struct{}, 1), CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	address := handlerstest.Serve(t, d)
	wait, teams := handlerstest.Events(t, address+"/events/dashboard"), handlerstest.Events(t, address+"/events/teams?q=vision")
	wait("1,600")
	wait(`id="cluster-status"`)
	teams("73.33 %")
}
