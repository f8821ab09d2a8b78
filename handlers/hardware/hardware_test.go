package hardware

import (
	"context"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/timerange"
	dashboardviews "kuota.dev/kuota/views/dashboard"

	"github.com/PuerkitoBio/goquery"
	"github.com/labstack/echo/v4"
)

// busyCluster is the backend of the hardware pages in memory: a node with eight
// GPUs, used by vision (four), by a hidden team (one), by no team (one), and without
// series (two).
type busyCluster struct {
	state   utilization.State
	history error
	prices  *v1alpha1.Prices
	owners  map[index.PodName]queries.Owner
}

var busyNow = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (b *busyCluster) Now() utilization.State { return b.state }

func (b *busyCluster) IdleAfter() time.Duration { return 30 * time.Minute }

func (b *busyCluster) History(_ context.Context, span utilization.Range, _ utilization.Inventory, _ string) (utilization.History, error) {
	return utilization.History{Times: []time.Time{span.From, span.From.Add(span.Step)}, GPU: utilization.Series{math.NaN(), 0.4567}, GPUMemory: utilization.Series{0, 0}, CPU: utilization.Series{1, 1}, Memory: utilization.Series{0.5, 0.5}}, b.history
}

func (b *busyCluster) Samples(context.Context, string, string, utilization.Range) ([]time.Time, utilization.Series, error) {
	return nil, nil, nil
}

func (b *busyCluster) PodOwners(context.Context, access.Scope) (func(index.PodName) (queries.Owner, bool), error) {
	return func(name index.PodName) (queries.Owner, bool) { o, known := b.owners[name]; return o, known }, nil
}

func (b *busyCluster) Within(context.Context, access.Scope) (*capacity.Snapshot, error) {
	held := func(resource string, n resources.Amount) []capacity.TeamResource {
		return []capacity.TeamResource{{Flavor: "h100", Resource: resource, TeamUsage: usage.TeamUsage{Usage: n}}, {Flavor: "h100", Resource: "cpu", TeamUsage: usage.TeamUsage{Usage: 9000}}}
	}
	return &capacity.Snapshot{
		Nodes:  []capacity.NodeSnapshot{{Name: "gpu-1", Pool: "h100", Physical: quota.Resources{"nvidia.com/gpu": 8, "cpu": 64000}}, {Name: "cpu-1", Pool: "general", Physical: quota.Resources{"cpu": 64000}}},
		Pools:  []capacity.PoolSnapshot{{Name: "general"}, {Name: "h100"}},
		Teams:  []capacity.TeamSnapshot{{Name: "idle", Resources: held("nvidia.com/mig-3g.40gb", 2)}, {Name: "vision", Resources: held("nvidia.com/gpu", 4)}},
		Others: &capacity.TeamSnapshot{Resources: held("nvidia.com/gpu", 1)},
		Prices: b.prices,
	}, nil
}

func busySample() (*Pages, *busyCluster) {
	gpu := func(index string, busy, peak float64, pod string) utilization.Device {
		d := utilization.Device{Kind: utilization.GPU, Node: "gpu-1", Index: index, Busy: utilization.Ratio{Used: busy, Of: 1}, Peak: utilization.Ratio{Used: peak, Of: 1}, Memory: utilization.Ratio{Used: 1 << 30, Of: 4 << 30}}
		if pod != "" {
			d.Pods = []utilization.PodName{{Namespace: "ns", Name: pod}}
		}
		return d
	}
	b := &busyCluster{owners: map[index.PodName]queries.Owner{}}
	b.state = utilization.State{Age: 12 * time.Second, Reading: &utilization.Reading{
		At:      busyNow.Add(-12 * time.Second),
		Devices: []utilization.Device{gpu("0", 1, 1, "busy"), gpu("1", 0.5, 1, "busy"), gpu("2", 0, 0.01, "sleeps"), gpu("3", 0, 0.02, "sleeps"), gpu("4", 0.9, 1, "theirs"), gpu("5", 0.25, 1, "")},
		Nodes:   []utilization.Node{{Name: "gpu-1", CPU: utilization.Ratio{Used: 16, Of: 64}}},
	}}
	owner := func(pod string, n resources.Amount) {
		b.owners[index.PodName{Namespace: "ns", Name: pod}] = queries.Owner{Team: "vision", Task: tasks.Address{Namespace: "ns", Kind: "Job", Name: pod, UID: "uid-" + pod}, Accelerators: n, AdmittedAt: busyNow.Add(-2 * time.Hour)}
	}
	owner("busy", 2)
	owner("sleeps", 2)
	b.owners[index.PodName{Namespace: "ns", Name: "theirs"}] = queries.Owner{Hidden: true}
	return &Pages{Console: &console.Console{Capacity: b, Now: func() time.Time { return busyNow }}, Hardware: b, PodOwners: b, IdleBelow: 0.05}, b
}

func (h *Pages) sampleSection(t *testing.T, pool string) dashboardviews.HardwareSection {
	t.Helper()
	s, err := h.Section(t.Context(), access.Scope{}, pool, timerange.NamedRange("1h", busyNow))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rendered(t *testing.T, s dashboardviews.HardwareSection) *goquery.Document {
	t.Helper()
	var html strings.Builder
	if err := dashboardviews.HardwarePart(s, true).Render(t.Context(), &html); err != nil {
		t.Fatal(err)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(html.String()))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// text returns the text that a selector finds, with single spaces.
func text(document *goquery.Document, selector string) string {
	return strings.Join(strings.Fields(document.Find(selector).Text()), " ")
}

func TestHardwareSection(t *testing.T) {
	h, _ := busySample()
	document := rendered(t, h.sampleSection(t, ""))
	for selector, want := range map[string]string{
		"#hardware-gauges .note":              "as of 12 s ago, 6 of 8 GPUs have data",
		"#gauge-gpu strong":                   "44.2 %", // 2.65 of 6
		"#gauge-gpu .sub":                     "2.65 of 6 GPUs; 6 of 8 GPUs have data",
		"#gauge-gpu-memory .sub":              "6 of 24 GiB",
		"#gauge-cpu .sub":                     "16 of 64 vCPUs; 1 of 2 nodes have data",
		"#gauge-memory strong":                "No data",
		"#hardware-team-vision-GPU td.n":      "4 4 1.5 37.5 %",
		"#hardware-team-idle-GPU td.n":        "0.86 – – –", // uses two of 3/7, without data
		"#hardware-other-teams-gpu td.n":      "1 1 0.9 90.0 %",
		"#hardware-unattributed-gpu td.n":     "– 1 0.25 25.0 %",
		"#hardware-no-data-gpu .sub":          "2 GPUs without data in Prometheus",
		"#hardware-no-data-gpu td.n":          "– – – –",
		"#hardware-idle-table tbody th":       "sleeps",
		"#idle-uid-sleeps td.n":               "2 2.0 %",
		"#hardware-history-table tbody tr td": "45.7 0.0 100.0 50.0 – 0.0 100.0 50.0",
	} {
		got := strings.ReplaceAll(text(document, selector), "no data", "")
		if strings.HasSuffix(selector, "td.n") || strings.HasSuffix(selector, "tr td") {
			var cells []string
			document.Find(selector).Each(func(_ int, cell *goquery.Selection) {
				cells = append(cells, strings.TrimPrefix(strings.TrimSpace(cell.Text()), "no data"))
			})
			got = strings.Join(cells, " ")
		}
		if got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if href, _ := document.Find("#idle-uid-sleeps a").Attr("href"); href != "/tasks/ns/job/sleeps" {
		t.Errorf("the task is at %q", href)
	}
	if document.Find("#gauge-memory .gauge-used").Length() != 0 || document.Find("#gauge-memory .gauge-all[stroke-dasharray]").Length() != 1 {
		t.Error("what there is no data of is drawn as a figure")
	}
	general := h.sampleSection(t, "general")
	if len(general.Use) != 0 || len(general.Idle) != 0 || general.Gauges[0].Known {
		t.Errorf("a pool without GPUs: %+v", general)
	}
	if unknown := h.sampleSection(t, "<nonsense>"); len(unknown.Gauges) != 4 {
		t.Errorf("a pool that is not there: %+v", unknown)
	}
}

// Idle tasks are priced by their pool, and utilization that was not measured is marked.
func TestIdleNow(t *testing.T) {
	h, b := busySample()
	price := func(pool, from, own string) v1alpha1.HourlyPrice {
		return v1alpha1.HourlyPrice{Pool: pool, Resource: "nvidia.com/gpu", From: from, Own: own, Borrowed: "0.10"}
	}
	for _, tc := range []struct {
		name      string
		prices    []v1alpha1.HourlyPrice
		simulated bool
		want      string // of the sentence, and the row of the task
		wantRow   string
	}{
		{name: "without prices", want: "Idle tasks of your teams use 2 of 8 GPUs now.", wantRow: "2 2.0 %"},
		{
			name: "the present price", prices: []v1alpha1.HourlyPrice{price("h100", "2026-01-01", "9"), price("h100", "2026-11-01", "2.50"), price("h100", "2027-01-01", "7")},
			want: "Idle tasks of your teams use 2 of 8 GPUs now: 3,650 USD a month at the present prices.", wantRow: "2 2.0 % 3,650.00",
		},
		{name: "another pool", prices: []v1alpha1.HourlyPrice{price("a100", "2026-01-01", "9")}, want: "Idle tasks of your teams use 2 of 8 GPUs now.", wantRow: "2 2.0 % –"},
		{name: "simulated", simulated: true, want: "Idle tasks of your teams use 2 of 8 GPUs now (simulated).", wantRow: "2 2.0 %"},
	} {
		if b.prices = nil; tc.prices != nil {
			b.prices = &v1alpha1.Prices{Currency: "USD", Hourly: tc.prices}
		}
		b.state.Reading.Simulated = tc.simulated
		s := h.sampleSection(t, "")
		var html strings.Builder
		if err := dashboardviews.IdleNow(s).Render(t.Context(), &html); err != nil {
			t.Fatal(err)
		}
		sentence, err := goquery.NewDocumentFromReader(strings.NewReader(html.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got := text(sentence, "#idle-now"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		document := rendered(t, s)
		row := document.Find("#idle-uid-sleeps td.n").Map(func(_ int, cell *goquery.Selection) string { return cell.Text() })
		if got := strings.Join(row, " "); got != tc.wantRow {
			t.Errorf("%s: the row has %q, want %q", tc.name, got, tc.wantRow)
		}
		target, _ := sentence.Find("a").Attr("href")
		if document.Find(target).Length() != 1 {
			t.Errorf("%s: nothing is at %q", tc.name, target)
		}
		for _, card := range []string{"#hardware-gauges", "#hardware-use", "#hardware-idle"} {
			if marked := strings.Contains(text(document, card+" .card-head"), "(simulated)"); marked != tc.simulated {
				t.Errorf("%s: %s is marked: %t", tc.name, card, marked)
			}
		}
		if marked := strings.Contains(h.IdleTasks(t.Context())["uid-sleeps"].Words(busyNow), "simulated"); marked != tc.simulated {
			t.Errorf("%s: the task is marked: %t", tc.name, marked)
		}
		h.idle.at = time.Time{}
	}
	b.state.Reading.Devices = nil
	if s := h.sampleSection(t, ""); s.IdleNow != "" {
		t.Errorf("without idle tasks: %q", s.IdleNow)
	}
}

// The page reports that Prometheus is missing or has no data.
func TestHardwareWithoutPrometheus(t *testing.T) {
	h, b := busySample()
	b.state, b.history = utilization.State{Warning: "Prometheus cannot be reached."}, &governance.Error{Kind: governance.Unavailable, Message: "It is away."}
	document := rendered(t, h.sampleSection(t, ""))
	if got := text(document, "#hardware-gauges .remark"); got != "Prometheus cannot be reached." {
		t.Errorf("got %q", got)
	}
	if got := text(document, "#hardware-history .chart-empty"); got != "It is away." {
		t.Errorf("the chart shows %q", got)
	}
	if n := document.Find(".gauge-used").Length(); n != 0 || strings.Contains(document.Text(), "0.0 %") {
		t.Errorf("%d gauges show something", n)
	}
	if got := text(document, "#hardware-no-data-gpu .sub"); got != "8 GPUs without data in Prometheus" {
		t.Errorf("no data: %q", got)
	}
	h.Hardware = nil
	if got := text(rendered(t, h.sampleSection(t, "")), "#hardware-gauges .hint"); !strings.Contains(got, "--prometheus-url") {
		t.Errorf("without one it shows %q", got)
	}
}

func TestHardwareCSV(t *testing.T) {
	h, _ := busySample()
	h.Tasks = scoped{}
	answer := httptest.NewRecorder()
	if err := h.Within(h.hardwareCSV)(echo.New().NewContext(httptest.NewRequest("GET", hardwareCSVURL+"?pool=h100", nil), answer)); err != nil {
		t.Fatal(err)
	}
	const want = `team,accelerator,held,devices,with data,busy,utilization,as of,simulated
idle,GPU,0.8571,0,,,,2026-11-22T11:59:48Z,false
vision,GPU,4,4,4,1.5,0.375,2026-11-22T11:59:48Z,false
Other teams,GPU,1,1,1,0.9,0.9,2026-11-22T11:59:48Z,false
Unattributed,GPU,,1,1,0.25,0.25,2026-11-22T11:59:48Z,false
No data,GPU,,2,,,,2026-11-22T11:59:48Z,false
`
	if got := answer.Body.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// scoped is a console.Tasks that only returns a scope.
type scoped struct{ console.Tasks }

func (scoped) Scope(context.Context, governance.User) (access.Scope, error) {
	return access.Scope{}, nil
}
