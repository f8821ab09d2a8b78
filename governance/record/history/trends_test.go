package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// testTrends compares trends with a computation from all records.
func testTrends(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{})
	r := rand.New(rand.NewPCG(3, 1))
	from, buckets, length := start.Truncate(time.Second), 7, 10*time.Minute
	var records []Record
	for i := range 300 {
		task := Task{Namespace: "ns", Kind: "Job", Name: fmt.Sprint("t", i), UID: fmt.Sprint("u", i), Team: []string{"", "vision", "nlp"}[r.IntN(3)], PriorityClass: []string{"", "a", "b"}[r.IntN(3)], State: []string{"Failed", "Succeeded"}[r.IntN(2)], SubmittedAt: from}
		ended := from.Add(time.Duration(r.IntN(90)-10) * time.Minute).Add(time.Duration(r.IntN(1000)) * time.Millisecond)
		record := Record{Spans: []Span{{WorkloadUID: fmt.Sprint("w", i), Kind: Wait, Began: ended.Add(-time.Duration(r.IntN(5000)) * time.Second), Ended: ended}, {WorkloadUID: fmt.Sprint("w", i), Kind: Run, Began: ended, Ended: ended.Add(time.Minute)}}}
		for range r.IntN(3) {
			e := Event{WorkloadUID: fmt.Sprint("w", i), Type: "Preempted", At: from.Add(time.Duration(r.IntN(4200)) * time.Second), Ran: -1}
			if first := int32(r.IntN(3)); first > 0 {
				e.FirstPreemption, e.LastPreemption = first, first+int32(r.IntN(4))
			}
			if !slices.ContainsFunc(record.Events, func(other Event) bool { return other.At.Equal(e.At) }) {
				record.Events = append(record.Events, e)
			}
		}
		record.Events = append(record.Events, Event{WorkloadUID: fmt.Sprint("w", i), Type: "Admitted", At: ended, Ran: -1})
		task.FinishedAt = ended.Add(time.Minute)
		record.Task = task
		records = append(records, record)
	}
	if err := s.RecordTasks(ctx, records); err != nil {
		t.Fatal(err)
	}
	for _, by := range []TrendKey{ByClass, ByTeam} {
		for _, teams := range [][]string{nil, {"vision", ""}, {"nlp"}, {"none"}, {}} {
			got := must[map[string][]Trend](t)(s.Trends(ctx, by, teams, from, from.Add(time.Duration(buckets)*length), buckets))
			if diff := gocmp.Diff(trendsOf(records, by, teams, from, buckets, length), got); diff != "" {
				t.Errorf("by %s of %q (-want +got):\n%s", by, teams, diff)
			}
		}
	}
}

func trendsOf(records []Record, by TrendKey, teams []string, from time.Time, buckets int, length time.Duration) map[string][]Trend {
	want, waits := map[string][]Trend{}, map[string]map[int][]time.Duration{}
	for _, r := range records {
		if teams != nil && !slices.Contains(teams, r.Task.Team) {
			continue
		}
		name := map[TrendKey]string{ByClass: r.Task.PriorityClass, ByTeam: r.Task.Team}[by]
		in := func(at time.Time, set func(bucket int, trend *Trend)) {
			if bucket := int(at.Sub(from) / length); !at.Before(from) && bucket < buckets {
				if want[name] == nil {
					want[name], waits[name] = make([]Trend, buckets), map[int][]time.Duration{}
				}
				set(bucket, &want[name][bucket])
			}
		}
		in(r.Spans[0].Ended, func(bucket int, trend *Trend) {
			trend.Waits++
			waits[name][bucket] = append(waits[name][bucket], r.Spans[0].Ended.Sub(r.Spans[0].Began))
		})
		if r.Task.State == "Failed" {
			in(r.Task.FinishedAt, func(_ int, trend *Trend) { trend.Failures++ })
		}
		for _, e := range r.Events {
			if e.Type == "Preempted" {
				in(e.At, func(_ int, trend *Trend) {
					trend.Preemptions += cmp.Or(int64(min(1, e.FirstPreemption))*int64(e.LastPreemption-e.FirstPreemption+1), 1)
				})
			}
		}
	}
	for name, of := range waits {
		for bucket, took := range of {
			slices.Sort(took)
			want[name][bucket].Median, want[name][bucket].P90 = took[(len(took)+1)/2-1], took[(len(took)*9+9)/10-1]
		}
	}
	return want
}
