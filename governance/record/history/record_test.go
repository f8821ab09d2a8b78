package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
)

func aTask(uid string) Task {
	return Task{Namespace: "vision", Kind: "Job", Name: "train", UID: uid, Team: "vision", PriorityClass: "high", Priority: 100, Queue: "team",
		State: "Running", Pools: []string{"a100", "h100"}, Requests: map[string]resources.Amount{"nvidia.com/gpu": 8, "memory": 1 << 40},
		SubmittedAt: start, Preemptions: 2, RunTime: 90 * time.Minute}
}

// Recording the same again changes the task and nothing else.
func testRecordAgain(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	events := []Event{
		{WorkloadUID: "w1", At: start, Type: "created", Ran: -1},
		{WorkloadUID: "w1", At: start.Add(time.Minute), Type: "admitted", Message: `Admitted by "team", it's all right?`, Size: 4, Ran: -1},
		{WorkloadUID: "w1", At: start.Add(time.Hour), Type: "preempted", Reason: "InCohortReclamation", Ran: 59 * time.Minute,
			Preemptor: TaskRef{Namespace: "nlp", Kind: "Job", Name: "other", UID: "u2", Team: "nlp"}},
		{WorkloadUID: "w2", At: start.Add(time.Hour), Type: "preempted", Ran: 0},
		{WorkloadUID: "w1", At: start.Add(time.Hour), Type: "waiting", Ran: -1},
	}
	spans := []Span{
		{"w1", Wait, start, start.Add(time.Minute)},
		{"w1", Run, start.Add(time.Minute), start.Add(time.Hour)},
		{"w2", Wait, start, start.Add(time.Minute)},
	}
	task := aTask("u1")
	ok(t, s.RecordTasks(ctx, []Record{{Task: task, Events: events[:2], Spans: spans[:1]}}))
	for range 2 {
		ok(t, s.RecordTasks(ctx, []Record{{Task: task, Events: events, Spans: spans}, {Task: task, Events: slices.Clone(events), Spans: spans}, {Task: aTask("u2"), Spans: spans[1:]}}))
	}
	got, gotEvents, found, err := s.Timeline(ctx, "u1")
	ok(t, err)
	if diff := cmp.Diff(task, got); diff != "" || !found {
		t.Errorf("task (found %v, -want +got):\n%s", found, diff)
	}
	if diff := cmp.Diff(events, gotEvents); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := []ClassStats{{Class: "high", Waits: 2, Runs: 1, WaitMillis: 120_000, RunMillis: 59 * 60_000, LongestWait: time.Minute, LongestRun: 59 * time.Minute}}
	for _, teams := range [][]string{nil, {"vision"}, {"vision", "", "nlp", "vision"}} {
		if diff := cmp.Diff(want, must[[]ClassStats](t)(s.ClassStats(ctx, teams, start.Add(-time.Hour), start.Add(48*time.Hour)))); diff != "" {
			t.Errorf("classes of %v (-want +got):\n%s", teams, diff)
		}
	}

	task.FinishedAt, task.DeletedAt, task.State = start.Add(2*time.Hour), start.Add(3*time.Hour), "Succeeded"
	ok(t, s.RecordTasks(ctx, []Record{{Task: task}}))
	later := task
	later.FinishedAt, later.DeletedAt, later.PriorityClass, later.Preemptions = time.Time{}, time.Time{}, "low", 3
	ok(t, s.RecordTasks(ctx, []Record{{Task: later}}))
	task.PriorityClass, task.Preemptions = "low", 3
	got, _, _, err = s.Timeline(ctx, "u1")
	ok(t, err)
	if diff := cmp.Diff(task, got); diff != "" {
		t.Errorf("FinishedAt and DeletedAt must stay (-want +got):\n%s", diff)
	}
	if _, _, found, err := s.Timeline(ctx, "u9"); found || err != nil {
		t.Errorf("Timeline of a task that is not recorded: found %v, %v", found, err)
	}

	odd := Event{WorkloadUID: "w5", At: start, Type: "evicted", Reason: "a\x00b", Message: "c\xffd\x00"}
	ok(t, s.RecordTasks(ctx, []Record{{Task: aTask("u5"), Events: []Event{odd}}}))
	if _, events, _, err := s.Timeline(ctx, "u5"); err != nil || events[0].Reason != "ab" || events[0].Message != "c\uFFFDd" {
		t.Errorf("invalid UTF-8 and NUL: %v, %v", events, err)
	}

	for name, wrong := range map[string]Record{
		"no UID":     {Task: Task{Name: "x"}},
		"span kind":  {Task: aTask("u3"), Spans: []Span{{"w3", "pause", start, start}}},
		"allTeams's": {Task: Task{UID: "u3", Team: "*"}},
	} {
		if err := s.RecordTasks(ctx, []Record{{Task: aTask("u4")}, wrong}); err == nil {
			t.Errorf("%s: recorded, want an error", name)
		}
	}
	if _, _, found, _ := s.Timeline(ctx, "u4"); found {
		t.Error("a failed call recorded a task")
	}
}

// What was recorded of a task is kept when its Workload is deleted, and by a console that
// never saw it; in one batch or in two.
func testKeptTasks(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	for name, batches := range map[string]int{"one-batch": 1, "two-batches": 2} {
		seen := aTask(name)
		later := seen
		later.Pools, later.Requests, later.RunTime, later.Preemptions, later.State = nil, nil, time.Minute, 0, "Succeeded"
		later.SubmittedAt = seen.SubmittedAt.Add(time.Minute)
		records := []Record{{Task: seen}, {Task: later}}
		for batch := range slices.Chunk(records, len(records)/batches) {
			ok(t, s.RecordTasks(ctx, batch))
		}
		found, err := s.Tasks(ctx, Query{UID: name})
		if err != nil {
			t.Fatal(err)
		}
		seen.State = later.State
		if diff := cmp.Diff([]Task{seen}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func testTasks(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	r := rand.New(rand.NewPCG(1, 1))
	var records []Record
	seconds := r.Perm(100_000)
	for n := range 400 {
		task := aTask(fmt.Sprint("u", n))
		task.Team = []string{"", "vision", "nlp", "speech"}[r.IntN(4)]
		task.Namespace = "ns-" + task.Team
		task.Kind = []string{"Job", "RayJob"}[r.IntN(2)]
		task.Name = fmt.Sprint("train-", r.IntN(5))
		task.PriorityClass = []string{"", "low", "high"}[r.IntN(3)]
		task.FinishedAt, task.DeletedAt = time.Time{}, time.Time{}
		task.SubmittedAt = start.Add(time.Duration(seconds[n]) * time.Second)
		switch r.IntN(3) {
		case 0:
			task.FinishedAt = task.SubmittedAt.Add(time.Hour)
		case 1:
			task.DeletedAt = task.SubmittedAt.Add(time.Minute)
		}
		records = append(records, Record{Task: task})
	}
	ok(t, s.RecordTasks(ctx, records))
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	for _, q := range []Query{
		{}, {Limit: 7}, {Teams: []string{}}, {Teams: []string{"nlp"}}, {Teams: []string{"nlp", "", "nlp", "nobody"}, Limit: 30},
		{Teams: []string{"nlp", "vision", "speech"}, Limit: 11, From: at(2), To: at(20)}, {Namespace: "ns-nlp", Kind: "rayJOB", Name: "train-3"},
		{UID: "u77"}, {From: at(3), To: at(4)}, {Name: "train-1", Limit: 3}, {NameContains: "AIN-2"}, {NameContains: "%"}, {NameContains: "train_1"}, {NameContains: `\`},
		{PriorityClasses: []string{"low", ""}, Limit: 20}, {Finished: true}, {Finished: true, Teams: []string{"vision", ""}, PriorityClasses: []string{"high"}, NameContains: "train", From: at(1), Limit: 9},
	} {
		var want []Task
		for _, r := range records {
			k := r.Task
			if (q.Teams == nil || slices.Contains(q.Teams, k.Team)) && (q.Namespace == "" || q.Namespace == k.Namespace) && (q.Name == "" || q.Name == k.Name) &&
				(q.Kind == "" || (q.Kind == "rayJOB") == (k.Kind == "RayJob")) && (q.UID == "" || q.UID == k.UID) &&
				strings.Contains(k.Name, strings.ToLower(q.NameContains)) && (q.PriorityClasses == nil || slices.Contains(q.PriorityClasses, k.PriorityClass)) && (!q.Finished || !k.FinishedAt.IsZero() || !k.DeletedAt.IsZero()) &&
				(q.From.IsZero() || !k.SubmittedAt.Before(q.From)) && (q.To.IsZero() || k.SubmittedAt.Before(q.To)) {
				want = append(want, k)
			}
		}
		slices.SortFunc(want, func(a, b Task) int { return b.SubmittedAt.Compare(a.SubmittedAt) })
		if q.Limit > 0 {
			want = want[:min(q.Limit, len(want))]
		}
		if q.Limit > 0 && len(want) < q.Limit {
			t.Errorf("%+v: the limit has no effect", q)
		}
		if diff := cmp.Diff(want, must[[]Task](t)(s.Tasks(ctx, q))); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
}

// Statistics over any range equal the sum over single spans.
func testClassStats(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	r := rand.New(rand.NewPCG(2, 2))
	end := start.Add(40 * 24 * time.Hour)
	teams := []string{"", "vision", "nlp", "speech"}
	type counted struct {
		Span
		team, class string
	}
	var all []counted
	var records []Record
	for n := range 1500 {
		task := aTask(fmt.Sprint("u", n))
		task.Team, task.PriorityClass = teams[r.IntN(len(teams))], []string{"", "high", "low"}[r.IntN(3)]
		record := Record{Task: task}
		for k := range 1 + r.IntN(3) {
			began := between(r, start, end)
			span := Span{WorkloadUID: fmt.Sprint("w", n, "-", k), Kind: []SpanKind{Wait, Run}[r.IntN(2)], Began: began, Ended: began.Add(time.Duration(r.ExpFloat64() * float64(3*time.Hour))).Truncate(time.Millisecond)}
			if r.IntN(5) == 0 {
				span.Ended = span.Began.Truncate(time.Hour).Add(time.Hour)
			}
			record.Spans = append(record.Spans, span)
			all = append(all, counted{span, task.Team, task.PriorityClass})
		}
		records = append(records, record)
	}
	for from := 0; from < len(records); from += 100 { // overlapping, so that some are recorded twice
		ok(t, s.RecordTasks(ctx, records[max(0, from-50):from+100]))
	}
	for n := range 300 {
		from, to := ordered(between(r, start.Add(-time.Hour), end), between(r, start.Add(-time.Hour), end))
		switch n % 3 {
		case 0:
			to = from.Add(time.Duration(r.IntN(10_000)) * time.Second)
		case 1:
			to = from.Add(time.Duration(r.IntN(50)) * time.Hour)
		}
		var selected []string
		if r.IntN(2) == 0 {
			selected = []string{teams[r.IntN(4)], teams[r.IntN(4)]}
		}
		want := map[string]*ClassStats{}
		for _, c := range all {
			if (selected == nil || slices.Contains(selected, c.team)) && !c.Ended.Before(from) && c.Ended.Before(to) {
				if want[c.class] == nil {
					want[c.class] = &ClassStats{Class: c.class}
				}
				sum, length := want[c.class], c.Ended.Sub(c.Began)
				if c.Kind == Wait {
					sum.Waits, sum.WaitMillis, sum.LongestWait = sum.Waits+1, sum.WaitMillis+length.Milliseconds(), max(sum.LongestWait, length)
				} else {
					sum.Runs, sum.RunMillis, sum.LongestRun = sum.Runs+1, sum.RunMillis+length.Milliseconds(), max(sum.LongestRun, length)
				}
			}
		}
		got := map[string]*ClassStats{}
		for _, c := range must[[]ClassStats](t)(s.ClassStats(ctx, selected, from, to)) {
			got[c.Class] = &c
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v from %s to %s (-want +got):\n%s", selected, from, to, cmp.Diff(want, got))
		}
	}
	if got := must[[]ClassStats](t)(s.ClassStats(ctx, []string{}, start, end)); len(got) > 0 {
		t.Errorf("statistics of no team: %v", got)
	}
}

func testClosed(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	ok(t, s.Close())
	for name, err := range calls(ctx, s) {
		if err == nil {
			t.Errorf("%s succeeds on a closed store", name)
		}
	}
}

func testCancelled(t *testing.T, url string) {
	s := open(t, url, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, err := range calls(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range calls(context.Background(), s) {
		if err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}

// calls calls each method once and returns the errors by name. Writes are later than
// everything recorded.
func calls(ctx context.Context, s *Store) map[string]error {
	key := SeriesKey{"vision", "a100", "nvidia.com/gpu", Used}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	errs := map[string]error{"Ping": s.Ping(ctx), "RecordTasks": s.RecordTasks(ctx, []Record{{Task: aTask("call")}}),
		"AppendSamples": s.AppendSamples(ctx, []Sample{{at, []Amount{{key, 1}}}}), "RecordGap": s.RecordGap(ctx, Gap{at, at.Add(time.Second), "call"}),
		"Forget": s.Forget(ctx, start)}
	_, errs["SampledUntil"] = s.SampledUntil(ctx)
	_, errs["Since"] = s.Since(ctx)
	_, errs["CurrentAmounts"] = s.CurrentAmounts(ctx)
	_, errs["ClassStats"] = s.ClassStats(ctx, nil, start, at)
	_, errs["Tasks"] = s.Tasks(ctx, Query{})
	_, _, _, errs["Timeline"] = s.Timeline(ctx, "call")
	_, errs["Series"] = s.Series(ctx, []SeriesKey{key}, start, at, 10)
	_, errs["Totals"] = s.Totals(ctx, []SeriesKey{key}, start, at)
	_, errs["Gaps"] = s.Gaps(ctx, start, at)
	return errs
}

// Migrations rename the states and event types of earlier releases.
func testMigrateNames(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{})
	task := aTask("u1")
	for old, want := range map[string]string{"Paused": "Stopped", "Pre-empted": "Preempted", "Running": "Running"} {
		task.State = old
		ok(t, s.RecordTasks(ctx, []Record{{Task: task, Events: []Event{{WorkloadUID: old, At: start, Type: "Pre-empted", Ran: -1}}}}))
		for _, migration := range []string{"00002_preempted.sql", "00003_stopped.sql"} { // run again; later migrations create tables
			text, err := migrations.ReadFile("migrations/" + dialectOf(url).folder + "/" + migration)
			ok(t, err)
			_, err = s.writer.ExecContext(ctx, string(text))
			ok(t, err)
		}
		got, events, _, err := open(t, url, Options{}).Timeline(ctx, "u1")
		ok(t, err)
		if got.State != want || slices.ContainsFunc(events, func(e Event) bool { return e.Type != "Preempted" }) {
			t.Errorf("state %s was migrated to %s, want %s; events %v", old, got.State, want, events)
		}
	}
}
