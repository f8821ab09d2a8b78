package history

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testEstimates records estimates of three tasks, of which one starts, one is deleted
// and one waits.
func testEstimates(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{Retention: 30 * 24 * time.Hour})
	estimate := func(uid string, made time.Time) Estimate {
		return Estimate{WorkloadUID: "w-" + uid, TaskUID: uid, Team: "vision", PriorityClass: "high", MadeAt: made,
			Low: 5 * time.Minute, High: 2 * time.Hour, Forecast: time.Hour}
	}
	var want []Estimate
	for i, uid := range []string{"waits", "deleted", "started"} {
		want = append(want, estimate(uid, start.Add(-time.Duration(i)*time.Minute).Truncate(time.Millisecond)))
	}
	ok(t, s.RecordEstimates(ctx, want))
	again := estimate("started", start.Add(time.Hour))
	again.Low = 0
	ok(t, s.RecordEstimates(ctx, []Estimate{again})) // the first one counts

	deleted, started := aTask("deleted"), aTask("started")
	deleted.DeletedAt = start.Add(time.Hour)
	ok(t, s.RecordTasks(ctx, []Record{{Task: aTask("waits")}, {Task: deleted}, {Task: started, Spans: []Span{
		{"w-started", Wait, start.Add(-3 * time.Hour), start.Add(-2 * time.Hour)}, // before the estimate
		{"w-started", Wait, start.Add(-time.Hour), start.Add(time.Hour)},
		{"w-started", Wait, start.Add(2 * time.Hour), start.Add(3 * time.Hour)},
	}}}))
	want[1].Ended = true
	want[2].StartedAt = start.Add(time.Hour).Truncate(time.Millisecond)
	got, err := s.Estimates(ctx, 10)
	ok(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("estimates differ (-want +got):\n%s", diff)
	}
	if latest, err := s.Estimates(ctx, 1); err != nil || len(latest) != 1 || latest[0].TaskUID != "waits" {
		t.Errorf("got %+v, %v, want the latest one", latest, err)
	}

	preempted := aTask("ran")
	preempted.DeletedAt, preempted.RunTime = start.Add(time.Hour), 90*time.Minute
	ok(t, s.RecordTasks(ctx, []Record{{Task: preempted, Events: []Event{
		{WorkloadUID: "w", At: start, Type: "Admitted", Ran: -1}, {WorkloadUID: "w", At: start.Add(time.Minute), Type: "Preempted", Ran: time.Hour},
	}}}))
	runs, err := s.RunTimes(ctx, 1)
	ok(t, err)
	if diff := cmp.Diff([]RunTime{{Name: "train", Team: "vision", PriorityClass: "high", Ran: 30 * time.Minute}}, runs); diff != "" {
		t.Errorf("run times differ (-want +got):\n%s", diff)
	}

	ok(t, s.Forget(ctx, start.Add(32*24*time.Hour)))
	if rest, err := s.Estimates(ctx, 10); err != nil || len(rest) != 0 {
		t.Errorf("%d estimates after the retention, %v; want none", len(rest), err)
	}
}
