package tasks_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
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
			want:     "Progress Step 12,345 at 30 Nov 2026, 12:00:00 UTC Samples a second 813 Loss 0.1235 Last checkpoint 30 Nov 2026, 11:59:00 UTC took 2.5 s",
			wantJSON: map[string]any{"at": "2026-11-30T12:00:00Z", "step": 12345.0, "samples": 790080.0, "samplesPerSecond": 812.53, "loss": 0.123456, "workers": 4.0, "checkpoint": "2026-11-30T11:59:00Z", "checkpointSeconds": 2.46},
		},
		"the least": {
			lines:    []progress.Progress{{At: at, Step: 7, Samples: nan, SamplesPerSecond: nan, CheckpointSeconds: nan}},
			want:     "Progress Step 7 at 30 Nov 2026, 12:00:00 UTC",
			wantJSON: map[string]any{"at": "2026-11-30T12:00:00Z", "step": 7.0},
		},
		"diverged": {
			lines:    []progress.Progress{{At: at, Step: 7, Samples: nan, SamplesPerSecond: 0, Loss: nan, HasLoss: true, CheckpointSeconds: math.Inf(1)}},
			want:     "Progress Step 7 at 30 Nov 2026, 12:00:00 UTC Samples a second 0 Loss NaN",
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

// Work that was lost is shown at each change of size and each preemption where the starts before
// and after it are known, from history and from the log.
func TestLostWork(t *testing.T) {
	d, past := elasticTask()
	start := func(at, from int) history.TrainingStart {
		return history.TrainingStart{TaskUID: "e1", At: minutesAgo(at), ContinuedFrom: minutesAgo(from)}
	}
	past.Starts = map[string][]history.TrainingStart{"e1": {start(119, 120), start(59, 60), start(29, 33)}}
	d.LogsBackend.Lately = []progress.Progress{{Step: 1, Started: minutesAgo(29), ContinuedFrom: minutesAgo(33)}, {Step: 2, Started: minutesAgo(18), ContinuedFrom: minutesAgo(19)}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+elasticURL)
	htmlcheck.Page(t, page)
	// 32 pods of two GPUs lost three minutes; the script saved before number 2 and after number 4.
	if text := handlerstest.Text(page.Find("#task-elastic")); !strings.Contains(text, "Lost work 3.2 GPU-hours") {
		t.Errorf("the card: %s", text)
	}
	for number, want := range map[string]string{"1": "–", "2": "0", "3": "3.2", "4": "0", "5": "–"} {
		if got := handlerstest.Text(page.Find("#scale-" + number + " td").Last()); got != want {
			t.Errorf("change %s: got %q, want %q", number, got, want)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(handlerstest.Download(t, address+elasticURL+"/scaling.csv"))).ReadAll()
	if err != nil || rows[0][19] != "accelerator-seconds lost" || rows[2][19] != "0" || rows[3][19] != "11520" || rows[1][19] != "" || rows[4][19] != "" {
		t.Errorf("the file has %v, %v", rows, err)
	}

	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	event := func(minutes int, of timeline.EventType) timeline.Event {
		return timeline.Event{At: at.Add(time.Duration(minutes) * time.Minute), Type: of, WorkloadUID: "w", Ran: timeline.Unknown}
	}
	d = &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "ns", Kind: "Job", State: tasks.Running, Submitted: at, Usage: quota.Resources{gpu: 8}}, Team: "vision"}}}
	d.MoreDetail = func(d *queries.Detail) {
		d.Timeline = []timeline.Event{event(0, timeline.Submitted), event(0, timeline.Admitted), event(60, timeline.Preempted), event(90, timeline.Admitted), event(120, timeline.Preempted), event(121, timeline.Admitted)}
	}
	d.LogsBackend.Lately = []progress.Progress{{Started: at.Add(time.Minute)}, {Started: at.Add(91 * time.Minute), ContinuedFrom: at.Add(30 * time.Minute)}, {Started: at.Add(122 * time.Minute), ContinuedFrom: at.Add(120*time.Minute + 5*time.Second)}}
	_, page = handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train")
	text := handlerstest.Text(page.Find("#task-timeline"))
	for _, want := range []string{"it lost 4 GPU-hours of work", "it lost no work"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the timeline lacks %q: %s", want, text)
		}
	}
}
