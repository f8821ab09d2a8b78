package handlers_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/usage"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// capacityDomain is the cluster's capacity in memory.
type capacityDomain struct {
	snapshot capacity.Snapshot
	failure  error
}

func (d *capacityDomain) Within(context.Context, access.Scope) (*capacity.Snapshot, error) {
	return &d.snapshot, d.failure
}

// historyDomain is what was, in memory: every amount is its holder's, all the
// time.
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

func (d *historyDomain) Series(_ context.Context, holders []history.SeriesKey, from, to time.Time, count int) (map[history.SeriesKey][]history.Point, error) {
	d.asked = holders
	series := map[history.SeriesKey][]history.Point{}
	for _, holder := range holders {
		for i := range count {
			amount, known := d.amounts[holder]
			series[holder] = append(series[holder], history.Point{At: from.Add(to.Sub(from) / time.Duration(count) * time.Duration(i)), Value: amount, Known: known && i > 0})
		}
	}
	return series, d.failure
}

func (d *historyDomain) Totals(context.Context, []history.SeriesKey, time.Time, time.Time) (map[history.SeriesKey]history.Total, error) {
	return map[history.SeriesKey]history.Total{{}: {Sum: new(big.Int)}}, d.failure
}

func (d *historyDomain) Gaps(context.Context, time.Time, time.Time) ([]history.Gap, error) {
	return d.gaps, d.failure
}

func (d *historyDomain) Tasks(context.Context, history.Query) ([]history.Task, error) {
	return nil, d.failure
}

func (d *historyDomain) Timeline(context.Context, string) (history.Task, []history.Event, bool, error) {
	return history.Task{}, nil, false, d.failure
}

func (d *historyDomain) Since(context.Context) (time.Time, error) { return d.since, d.failure }

func poolCell(resource string, p usage.PoolUsage) capacity.PoolResource {
	return capacity.PoolResource{Resource: resource, PoolUsage: p}
}

func teamCell(pool, resource string, share usage.TeamUsage) capacity.TeamResource {
	return capacity.TeamResource{Flavor: pool, Resource: resource, TeamUsage: share}
}

// someCluster has two pools of GPUs, one of Neuron devices, and one of neither;
// three teams, and what somebody does not see.
func someCluster() capacity.Snapshot {
	return capacity.Snapshot{
		Pools: []capacity.PoolSnapshot{
			{Name: "cpu", Nodes: 1, Ready: 1, Resources: []capacity.PoolResource{poolCell(catalog.CPU, usage.PoolUsage{Physical: 16000, Idle: 16000})}},
			{Name: "g6", Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "L4", Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 8, OwnBound: 3, Outside: 1, Unhealthy: 4, Nominal: 10, Usage: 3, Recovering: 4}),
				poolCell(catalog.CPU, usage.PoolUsage{Physical: 96500, Idle: 96500}),
			}},
			{Name: "p5", Nodes: 2, Ready: 1, Cordoned: 1, AcceleratorModel: "H100", AcceleratorMemory: 80, Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 1600, OwnBound: 6, BorrowedBound: 2, Idle: 1592, Nominal: 15, Usage: 9, Unbound: 1, Borrowed: 3, LentToCohort: 3, LargestFree: 4}),
				poolCell(catalog.Memory, usage.PoolUsage{Physical: 4 * catalog.GiB, Usage: catalog.GiB / 2}),
			}},
			{Name: "trn", Nodes: 1, Ready: 1, AcceleratorMemory: 32, Resources: []capacity.PoolResource{poolCell(catalog.Neuron, usage.PoolUsage{Physical: 16, Idle: 16})}},
		},
		Teams: []capacity.TeamSnapshot{
			{Name: "language", Resources: []capacity.TeamResource{teamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, LentToCohort: 2})}},
			{Name: "speech", DisplayName: "=Speech", Namespace: "hyperpod-ns-speech", Resources: []capacity.TeamResource{teamCell("g6", catalog.GPU, usage.TeamUsage{Usage: 1, Borrowed: 1})}, Waiting: 4},
			{Name: "vision", DisplayName: "Vision", Resources: []capacity.TeamResource{
				teamCell("g6", catalog.GPU, usage.TeamUsage{Nominal: 9, Usage: 3, Own: 3}), teamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, Usage: 8, Own: 6, Borrowed: 2}),
				teamCell("trn", catalog.Neuron, usage.TeamUsage{Nominal: 4}),
			}, Running: 1234},
		},
		Others: &capacity.TeamSnapshot{Resources: []capacity.TeamResource{teamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 4, LentToCohort: 1})}, Running: 1},
	}
}

func TestDashboard(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	d.list.Since = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "training-priority", Running: 2, Pending: 2, Preempted: 1}}
	response, page := get(t, serve(t, d)+"/")
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"stat-instances": "Instances 6 in 4 pools", "stat-running": "Running instances 4 1 cordoned", "stat-tasks": "Waiting tasks 3 2 running", "stat-recovery": "Pending recovery 1",
		"stat-nvidia.com/gpu": "GPUs 1,608 12 used · 3 borrowed · 4 unhealthy", "stat-aws.amazon.com/neurondevice": "Neuron devices 16 0 used",
		"stat-accelerator-memory": "Accelerator memory 128,512 GB of 1,616 accelerators; unknown for 8",
		"stat-cpu":                "vCPUs 112 0 used", "stat-memory": "Memory 4 GiB 0.5 GiB used",
	} {
		if got := said(page.Find("#" + strings.NewReplacer(".", `\.`, "/", `\/`).Replace(id))); got != want {
			t.Errorf("%s says %q, want %q", id, got, want)
		}
	}
	var lines []string
	page.Find("#pools-table tbody tr").Each(func(_ int, row *goquery.Selection) { lines = append(lines, said(row)) })
	if want := []string{
		"p5 H100 · 2 instances 1 cordoned 1,600 GPUs 6 2 0 0 1,592 15 1 4",
		"trn 1 instance 16 Neuron devices 0 0 0 0 16 0 0 0",
		"g6 L4 · 2 instances 1 pending recovery 8 GPUs 3 0 1 4 0 10 +2 over 0 0",
		"cpu 1 instance 16 vCPU 0 0 0 0 16 0 0 0",
	}; strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("pools are\n%s", strings.Join(lines, "\n"))
	}
	if got := page.Find("#pools-table svg[role=img]").First().AttrOr("aria-label", ""); got != "Of 1,600 GPUs: 6 own, 2 borrowed, 0 outside Kueue, 0 unhealthy, 1,592 idle; 15 allocated as quota; 1 used and not placed" {
		t.Errorf("the first line is read as %q", got)
	}
	if got := said(page.Find("#bars-card li").First()); got != "vision 11 of 15" {
		t.Errorf("the first bar is %q", got)
	}
	if got := said(page.Find("#classes")); !strings.Contains(got, "averages since 22 Nov 2026, 09:00:00 UTC") || !strings.Contains(got, "training 2") {
		t.Errorf("classes say %q", got)
	}
	if got := said(page.Find("#held-chart")); !strings.Contains(got, "History is off") {
		t.Errorf("the chart says %q", got)
	}
	if page.Find(`a.brand[href="/"]`).Length() != 1 || page.Find(`.tabs a[aria-current=page]`).Text() != "Dashboard" {
		t.Error("the way to the dashboard is missing")
	}
}

// What stands in the rows, and what is not on the page, add up to the sum.
func TestTeamsAddUp(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	for i := range 300 {
		d.capacity.snapshot.Teams = append(d.capacity.snapshot.Teams, capacity.TeamSnapshot{
			Name: fmt.Sprintf("team-%03d", i), Resources: []capacity.TeamResource{teamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: int64(i), Usage: int64(i % 7), Own: int64(i % 7), LentToCohort: 1})}, Running: i, Waiting: 2 * i,
		})
	}
	address := serve(t, d)
	for _, path := range []string{"/", "/?tpage=3&tq=team", "/teams", "/teams?page=4&sort=held&order=desc", "/teams?q=nobody-", "/teams?pool=g6", "/teams?resource=aws.amazon.com/neurondevice", "/teams?page=99", "/teams?page=-1"} {
		_, page := get(t, address+path)
		htmlcheck.Page(t, page)
		sum := func(rows *goquery.Selection) (figures [7]int) {
			rows.Each(func(_ int, row *goquery.Selection) {
				row.Find("td").Each(func(i int, cell *goquery.Selection) {
					if i != 4 { // percentages
						n, err := strconv.Atoi(strings.ReplaceAll(said(cell), ",", ""))
						if err != nil {
							t.Errorf("%s: %v", path, err)
						}
						figures[i] += n
					}
				})
			})
			return figures
		}
		table := page.Find("#team-list-table")
		if path == "/teams?q=nobody-" {
			if table.Length() != 0 || page.Find(`#team-list a[href="/teams"]`).Length() != 1 {
				t.Error("where no team is found, nothing leads back to all")
			}
			continue
		}
		all := sum(table.Find("#teams-sum"))
		if parts := sum(table.Find("tbody tr, #teams-other")); parts != all || all[5] == 0 {
			t.Errorf("%s: rows add up to %v, and the sum says %v", path, parts, all)
		}
	}
}

func TestTeamList(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	address := serve(t, d)
	rows := func(path string) (found []string) {
		_, page := get(t, address+path)
		htmlcheck.Page(t, page)
		page.Find("#team-list-table tbody tr").Each(func(_ int, row *goquery.Selection) { found = append(found, said(row)) })
		return found
	}
	const language, speech, vision = "language 6 0 0 2 0.00 % 0 0", "speech =Speech 0 1 1 0 – 0 4", "vision 15 11 2 0 73.33 % 1,234 0"
	tests := map[string][]string{
		"/teams":                                        {language, speech, vision},
		"/teams?sort=held&order=desc":                   {vision, speech, language},
		"/teams?sort=utilization":                       {speech, language, vision},
		"/teams?sort=utilization&order=desc":            {vision, language, speech},
		"/teams?sort=lent&order=desc":                   {language, speech, vision},
		"/teams?sort=nothing&order=desc":                {language, speech, vision},
		"/teams?q=VIS":                                  {vision},
		"/teams?pool=p5":                                {language, "speech =Speech 0 0 0 0 – 0 4", "vision 6 8 2 0 133.33 % borrowing 1,234 0"},
		"/teams?resource=aws.amazon.com%2Fneurondevice": {"language 0 0 0 0 – 0 0", "speech =Speech 0 0 0 0 – 0 4", "vision 4 0 0 0 0.00 % 1,234 0"},
	}
	for path, want := range tests {
		if got := rows(path); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s shows\n%s", path, strings.Join(got, "\n"))
		}
	}
	_, page := get(t, address+"/teams?sort=held&order=desc&q=s&pool=p5")
	if got := page.Find(`th[aria-sort=descending] a`).AttrOr("href", ""); got != "/teams?pool=p5&q=s&sort=held" {
		t.Errorf("the other order is at %q", got)
	}
	if got := page.Find("#team-vision a").Eq(1).AttrOr("href", ""); got != "/tasks?status=Running&status=Starting&status=Stopping&team=vision" {
		t.Errorf("its running tasks are at %q", got)
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/events/teams?order=desc&pool=p5&q=s&sort=held" {
		t.Errorf("the stream is %q", stream)
	}
}

// The cluster that does not answer is told as on every page; history that does
// not answer costs its own sections only.
func TestDashboardWithoutItsSources(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	d.past = &historyDomain{failure: errors.New("dial tcp 10.0.0.7: secret"), since: time.Now()}
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "training-priority", Running: 2}}
	address := serve(t, d)
	response, page := get(t, address+"/")
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusOK || page.Find("#pools-table tbody tr").Length() != 4 || page.Find("#team-list tbody tr").Length() != 3 {
		t.Errorf("without history the answer is %s: %s", response.Status, said(page.Find("main")))
	}
	for id, want := range map[string]string{"#held-chart": "History cannot be shown now", "#classes": "History cannot be read now; averages since"} {
		if got := said(page.Find(id)); !strings.Contains(got, want) || strings.Contains(got, "10.0.0.7") {
			t.Errorf("%s says %q", id, got)
		}
	}
	d.capacity.failure = &governance.Error{Kind: governance.Unavailable, Message: "The cluster does not answer.", Err: errors.New("secret")}
	for _, path := range []string{"/", "/teams", "/teams.csv", "/capacity.csv"} {
		response, page := get(t, address+path)
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(page.Text(), "The cluster does not answer.") {
			t.Errorf("%s answers %s: %s", path, response.Status, said(page.Selection))
		}
	}
}

func TestDashboardHistory(t *testing.T) {
	at := func(pool string, measure history.Measure) history.SeriesKey {
		return history.SeriesKey{Pool: pool, Resource: catalog.GPU, Measure: measure}
	}
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	d.list.ByPriorityClass = []tasks.PriorityClassRow{
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
	d.past = past
	address := serve(t, d)
	_, page := get(t, address+"/?range=7d")
	htmlcheck.Page(t, page)
	row := page.Find("#held-chart-table tbody tr")
	if row.Length() != 169 {
		t.Errorf("a week has %d rows", row.Length())
	}
	if got := said(row.First()); !strings.HasSuffix(got, "9.5 no data – no data – 1,600 no data –") {
		t.Errorf("the latest row is %q", got)
	}
	if got := page.Find("#held-chart .chart-gaps").Text(); !strings.Contains(got, "The console was not running.") || !strings.Contains(got, "No data before ") {
		t.Errorf("the gap is told as %q", got)
	}
	var classes []string
	page.Find("#classes tbody tr").Each(func(_ int, row *goquery.Selection) { classes = append(classes, said(row)) })
	if want := []string{
		"training 1 0 0 1 h 00 m – 5 h 00 m –", "gone 0 0 0 1 s – 1 s –", "No priority class 0 1 0 – 5 s – 1 m",
	}; strings.Join(classes, "\n") != strings.Join(want, "\n") {
		t.Errorf("classes are\n%s", strings.Join(classes, "\n"))
	}
	if got := page.Find("#classes .note"); !strings.Contains(got.Text(), " UTC, when history begins") || got.Find("time[data-local]").Length() != 1 {
		t.Errorf("classes say %q", got.Text())
	}
	if !past.from.Equal(past.since) || d.classesWithin != 24*time.Hour {
		t.Errorf("asked from %s, and for what goes on within %s", past.from, d.classesWithin)
	}
	_, page = get(t, address+"/?pool=g6")
	for _, holder := range past.asked {
		if holder.Pool != "g6" {
			t.Errorf("for one pool it asks %v", holder)
		}
	}
	if got := page.Find("#time a[aria-current]").Text(); got != "12 h" {
		t.Errorf("the usual range is %q", got)
	}
	past.since = time.Now().Add(-time.Minute)
	for query, want := range map[string]string{"": "1 h", "?range=12h": "12 h", "?range=30d": "30 d"} {
		_, page = get(t, address+"/"+query)
		if got := page.Find("#time a[aria-current]").Text(); got != want {
			t.Errorf("with history of a minute, %q shows %q, want %q", query, got, want)
		}
		if stream := page.Find("body").AttrOr("data-stream", ""); query == "" && !strings.Contains(stream, "range=1h") {
			t.Errorf("the page is updated from %q", stream)
		}
	}
	_, page = get(t, address+"/?from=x")
	htmlcheck.Page(t, page)
	if got := said(page.Find("#time-from-error")); !strings.Contains(got, `From is "x", which is not a valid time`) {
		t.Errorf("a bad range is answered with %q", got)
	}
}

// An empty cluster says what to do.
func TestDashboardOfNothing(t *testing.T) {
	_, page := get(t, serve(t, &domain{})+"/")
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{"#pools": "No instances", "#team-list": "No teams yet", "#bars-card": "No team has quota for this resource"} {
		if got := said(page.Find(id)); !strings.Contains(got, want) {
			t.Errorf("%s says %q", id, got)
		}
	}
}

func TestFiguresAsCSV(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: someCluster()}}
	d.list.ByPriorityClass = []tasks.PriorityClassRow{{PriorityClass: "training-priority", Running: 2, LongestRun: time.Minute}}
	address := serve(t, d)
	read := func(path string) (rows [][]string) {
		response, err := client.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if rows, err = csv.NewReader(response.Body).ReadAll(); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for path, want := range map[string][]string{
		"/capacity.csv?pool=p5&resource=memory": {"p5,memory,GiB,2,1,0,1,4,0,0,0,0,0,0,0,0,0,0.5,0,0,0,0,0"},
		"/teams.csv?q=spee":                     {"speech,'=Speech,hyperpod-ns-speech,0,,nvidia.com/gpu,GPUs,0,1,0,1,0,,0,4"},
		"/teams.csv?pool=p5&q=vision":           {"vision,Vision,,0,p5,nvidia.com/gpu,GPUs,6,8,6,2,0,133.33,1234,0"},
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
}

// A page of figures follows the cluster.
func TestFiguresAreLive(t *testing.T) {
	d := &domain{changed: make(chan struct{}, 1), capacity: capacityDomain{snapshot: someCluster()}}
	address := serve(t, d)
	wait, teams := events(t, address+"/events/dashboard"), events(t, address+"/events/teams?q=vision")
	wait("1,600")
	wait(`id="cluster-status"`)
	teams("73.33 %")
}
