package tasks_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

// The page of a task and the API show what it reports of its progress, and nothing of a task
// that reports none.
func TestProgress(t *testing.T) {
	at, nan := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), math.NaN()
	all := progress.Progress{
		At: at, World: 4, Step: 12345, Samples: 790080, SamplesPerSecond: 812.53, Loss: 0.123456, HasLoss: true, Checkpoint: at.Add(-time.Minute), CheckpointSeconds: 2.46,
	}
	for name, tc := range map[string]struct {
		lines    []progress.Progress
		want     string // of the card; empty for none
		wantJSON map[string]any
	}{
		"none": {},
		"all": {
			lines:    []progress.Progress{{At: at.Add(-time.Minute), Step: 1}, all},
			want:     "Progress Step 12,345 Samples a second 813 Loss 0.1235 Last checkpoint 30 Nov 2026, 11:59:00 UTC took 2.5 s Reported 30 Nov 2026, 12:00:00 UTC",
			wantJSON: map[string]any{"at": "2026-11-30T12:00:00Z", "step": 12345.0, "samples": 790080.0, "samplesPerSecond": 812.53, "loss": 0.123456, "workers": 4.0, "checkpoint": "2026-11-30T11:59:00Z", "checkpointSeconds": 2.46},
		},
		"the least": {
			lines:    []progress.Progress{{At: at, Step: 7, Samples: nan, SamplesPerSecond: nan, CheckpointSeconds: nan}},
			want:     "Progress Step 7 Last checkpoint none Reported 30 Nov 2026, 12:00:00 UTC",
			wantJSON: map[string]any{"at": "2026-11-30T12:00:00Z", "step": 7.0},
		},
		"diverged": {
			lines:    []progress.Progress{{At: at, Step: 7, Samples: nan, SamplesPerSecond: 0, Loss: nan, HasLoss: true, CheckpointSeconds: math.Inf(1)}},
			want:     "Progress Step 7 Samples a second 0 Loss NaN Last checkpoint none Reported 30 Nov 2026, 12:00:00 UTC",
			wantJSON: map[string]any{"at": "2026-11-30T12:00:00Z", "step": 7.0, "samplesPerSecond": 0.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := logsBackend()
			d.LogsBackend.Lately = tc.lines
			address := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, address+"/tasks/team/job/train")
			htmlcheck.Page(t, page)
			if got := strings.TrimSpace(handlerstest.Text(page.Find("#task-progress"))); got != tc.want {
				t.Errorf("the card is %q, want %q", got, tc.want)
			}
			response, text := answer(t, address+"/api/v1/tasks/team/job/train")
			var got struct{ Progress map[string]any }
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v: %s", response.Status, err, text)
			}
			if diff := cmp.Diff(tc.wantJSON, got.Progress); diff != "" {
				t.Errorf("the API (-want +got):\n%s", diff)
			}
			if _, text := answer(t, address+"/api/v1/tasks"); strings.Contains(text, "progress") {
				t.Errorf("a list has the progress: %s", text)
			}
		})
	}
}

// Where Prometheus has the progress, no log is read, and the page of an elastic task has the samples
// a second over its size.
func TestProgressOfPrometheus(t *testing.T) {
	d, _ := elasticTask()
	d.LogsBackend.Lately = []progress.Progress{{Step: 1}}
	d.HardwareBackend.Trainings = []utilization.Training{
		{Pod: utilization.PodName{Namespace: "ns", Name: "e1"}, Progress: progress.Progress{At: time.Now(), Step: 2345, Loss: 0.5, HasLoss: true}},
		{Pod: utilization.PodName{Namespace: "ns", Name: "other"}, Progress: progress.Progress{At: time.Now(), Step: 9}},
	}
	d.HardwareBackend.Rates = utilization.Series{math.NaN(), 812.5, 0}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#task-progress")); !strings.Contains(text, "Step 2,345") {
		t.Errorf("the card is %q", text)
	}
	values := page.Find("#task-elastic #samples-chart-table tbody td").Map(func(_ int, cell *goquery.Selection) string { return cell.AttrOr("data-value", "–") })
	if got := strings.Join(values, " "); got != "0 812.5 –" {
		t.Errorf("the chart has %s", got)
	}
	d.HardwareBackend.Rates = utilization.Series{math.NaN(), math.NaN()}
	if _, page = handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL); page.Find("#samples-chart").Length() > 0 || page.Find("#scale-chart").Length() != 1 {
		t.Error("a chart of nothing is shown")
	}
}
