package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// statsRow is a row of class_hours or class_days.
type statsRow struct{ Waits, WaitMillis, LongestWait, Runs, RunMillis, LongestRun int64 }

// statsRows returns all rows of class_hours or class_days.
func statsRows(t *testing.T, s *Store, table string) map[classKey]statsRow {
	t.Helper()
	rows, err := s.reader.Query("SELECT team, class, start, waits, wait_ms, longest_wait, runs, run_ms, longest_run FROM " + table)
	ok(t, err)
	defer rows.Close()
	found := map[classKey]statsRow{}
	for rows.Next() {
		var k classKey
		var r statsRow
		ok(t, rows.Scan(&k.team, &k.class, &k.start, &r.Waits, &r.WaitMillis, &r.LongestWait, &r.Runs, &r.RunMillis, &r.LongestRun))
		found[k] = r
	}
	ok(t, rows.Err())
	return found
}

// looping is a task with its spans and preemption loops.
type looping struct {
	task  Task
	spans []Span
	loops []Loop
}

func (l looping) inLoop(s Span) bool {
	for _, loop := range l.loops {
		if loop.WorkloadUID == s.WorkloadUID && !s.Began.Before(loop.Since) && !s.Ended.After(loop.Last) {
			return true
		}
	}
	return false
}

// loopingTasks returns tasks whose loops cross the end of an hour and of a day.
func loopingTasks(r *rand.Rand) (all []looping) {
	midnight := start.Truncate(24 * time.Hour).Add(24 * time.Hour)
	for n := range 40 {
		l := looping{task: aTask(fmt.Sprint("u", n))}
		l.task.Team, l.task.PriorityClass = []string{"", "vision", "nlp"}[r.IntN(3)], []string{"", "high"}[r.IntN(2)]
		at := midnight.Add(-time.Duration(r.IntN(7200)) * time.Second)
		workload := fmt.Sprint("w", n)
		for range 2 {
			since := at.Add(time.Duration(r.IntN(3)) * time.Second)
			for kind := Run; at.Before(since.Add(time.Duration(20+r.IntN(60)) * time.Second)); {
				ended := at.Add(time.Duration(r.ExpFloat64()*6) * time.Second)
				l.spans = append(l.spans, Span{workload, kind, at, ended})
				at = ended.Add(time.Duration(r.IntN(2)) * time.Second)
				if kind = Run; r.IntN(2) == 0 {
					kind = Wait
				}
			}
			if r.IntN(3) > 0 {
				last := at.Add(-time.Duration(r.IntN(20)) * time.Second)
				l.loops = append(l.loops, Loop{workload, since, last, int32(1 + r.IntN(50))})
			}
			at = at.Add(time.Duration(1+r.IntN(4000)) * time.Second)
		}
		l.spans = unique(l.spans)
		all = append(all, l)
	}
	return all
}

// unique returns the first span of each kind and beginning, as the table keeps it.
func unique(spans []Span) (first []Span) {
	type key struct {
		kind  SpanKind
		began time.Time
	}
	seen := map[key]bool{}
	for _, s := range spans {
		if k := (key{s.Kind, s.Began}); !seen[k] {
			seen[k] = true
			first = append(first, s)
		}
	}
	return first
}

// Statistics are as if loops had been known from the start, however late and often
// spans and loops are recorded.
func testLoops(t *testing.T, url string) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(8, 8))
	all := loopingTasks(r)
	want := classRollups{}
	loopRuns, excluded, longestExcluded := map[string]int64{}, 0, 0
	for _, l := range all {
		for _, span := range l.spans {
			if l.inLoop(span) {
				excluded++
				continue
			}
			want.add(span.Kind, toMillis(span.Began), toMillis(span.Ended), l.task.Team, l.task.PriorityClass)
		}
		for _, loop := range l.loops {
			loopRuns[l.task.PriorityClass] += int64(loop.Runs)
		}
	}
	for _, l := range all { // some are the longest of their hour
		for _, span := range l.spans {
			sum := want.hours[classKey{l.task.Team, l.task.PriorityClass, floor(toMillis(span.Ended), hour)}]
			if l.inLoop(span) && span.Kind == Run && (sum == nil || span.Ended.Sub(span.Began) > sum.LongestRun) {
				longestExcluded++
			}
		}
	}
	if excluded < 100 || longestExcluded == 0 {
		t.Fatalf("only %d spans belong to loops, %d of them the longest of their hour", excluded, longestExcluded)
	}

	s := open(t, url, Options{})
	for n := range 400 {
		var records []Record
		for range 1 + r.IntN(3) {
			l := all[r.IntN(len(all))]
			record := Record{Task: l.task, Spans: l.spans[:r.IntN(len(l.spans)+1)]}
			for _, loop := range l.loops {
				if r.IntN(2) == 0 { // an earlier state of the loop
					loop.Last = loop.Since.Add(time.Duration(r.Int64N(int64(loop.Last.Sub(loop.Since)/time.Second)+1)) * time.Second)
					loop.Runs = r.Int32N(loop.Runs + 1)
					record.Loops = append(record.Loops, loop)
				}
			}
			records = append(records, record)
		}
		ok(t, s.RecordTasks(ctx, records))
		if n == 200 { // a restart
			ok(t, s.Close())
			s = open(t, url, Options{})
		}
	}
	for range 2 {
		for _, l := range all {
			ok(t, s.RecordTasks(ctx, []Record{{Task: l.task, Spans: l.spans}}))
			ok(t, s.RecordTasks(ctx, []Record{{Task: l.task, Loops: l.loops}, {Task: l.task, Loops: l.loops}}))
		}
		for table, sums := range map[string]map[classKey]*ClassStats{"class_hours": want.hours, "class_days": want.days} {
			rows := map[classKey]statsRow{}
			for k, sum := range sums {
				rows[k] = statsRow{sum.Waits, sum.WaitMillis, sum.LongestWait.Milliseconds(), sum.Runs, sum.RunMillis, sum.LongestRun.Milliseconds()}
			}
			if diff := cmp.Diff(rows, statsRows(t, s, table), cmp.AllowUnexported(classKey{})); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", table, diff)
			}
		}
	}

	// Ranges that are read by days, by hours and by spans give the same.
	for _, teams := range [][]string{nil, {"", "vision", "nlp"}} {
		for _, edge := range []time.Duration{0, 17*time.Minute + time.Second} {
			got := must[[]ClassStats](t)(s.ClassStats(ctx, teams, start.Truncate(24*time.Hour).Add(-edge), start.Add(240*time.Hour).Add(edge)))
			for _, sums := range got {
				var total ClassStats
				for k, sum := range want.days {
					if k.team == allTeams && k.class == sums.Class {
						total.Add(*sum)
					}
				}
				total.Class, total.LoopRuns = sums.Class, loopRuns[sums.Class]
				if diff := cmp.Diff(total, sums); diff != "" {
					t.Errorf("%v (-want +got):\n%s", teams, diff)
				}
			}
			if len(got) != 2 {
				t.Errorf("%v: %d classes", teams, len(got))
			}
		}
	}
	l := all[0]
	before := must[[]ClassStats](t)(s.ClassStats(ctx, nil, start.Add(300*time.Hour), start.Add(400*time.Hour)))
	if len(before) != 0 {
		t.Errorf("loops of %s count in a later range: %v", l.task.UID, before)
	}

	ok(t, s.Forget(ctx, start.Add(1000*24*time.Hour)))
	var rows int
	ok(t, s.reader.QueryRow("SELECT COUNT(*) FROM loops").Scan(&rows))
	if rows != 0 {
		t.Errorf("%d loops remain after the retention", rows)
	}
}

// Preemptions of one second become one event with Kueue's count of the first and
// the last, and the sum of their run times.
func testMergePreemptions(t *testing.T, url string) {
	ctx := context.Background()
	at := start.Truncate(time.Second)
	preemption := func(nth int32, ran time.Duration) Event {
		return Event{WorkloadUID: "w1", At: at, Type: "Preempted", FirstPreemption: nth, LastPreemption: nth, Ran: ran}
	}
	for name, calls := range map[string][][]Event{
		"together":       {{preemption(4, time.Second), preemption(5, 2*time.Second), preemption(6, 0)}},
		"one by one":     {{preemption(4, time.Second)}, {preemption(5, 2*time.Second)}, {preemption(6, 0)}},
		"more each time": {{preemption(4, time.Second)}, {preemption(4, time.Second), preemption(5, 2*time.Second)}, {preemption(4, time.Second), preemption(5, 2*time.Second), preemption(6, 0)}},
		"not counted":    {{preemption(0, time.Second)}, {preemption(4, time.Second), preemption(5, 2*time.Second), preemption(6, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, url, Options{})
			task := aTask(name)
			for _, events := range calls {
				for range 2 {
					ok(t, s.RecordTasks(ctx, []Record{{Task: task, Events: events}, {Task: task, Events: events}}))
				}
			}
			want := []Event{{WorkloadUID: "w1", At: at, Type: "Preempted", FirstPreemption: 4, LastPreemption: 6, Ran: 3 * time.Second}}
			_, got, _, err := s.Timeline(ctx, task.UID)
			ok(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
