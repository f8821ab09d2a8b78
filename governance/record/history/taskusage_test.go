package history

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// usageModel is a plain reimplementation of what tasks use: a list of constant uses.
type usageModel struct {
	past []modelUse
	gaps []timeRange
	open map[string]*modelUse // by Workload
}

type modelUse struct {
	timeRange
	task      Task
	amounts   map[PoolResource]int64
	began     int64 // of the run: a change of its size does not end it
	preempted bool  // at the end of this use
}

// sums returns the amounts × ms of a resource over a range, without gaps, by pool and key.
func (m *usageModel) sums(by UsageKey, q TaskUsageQuery, in timeRange) map[string][2]string {
	sums := map[string][2]*big.Int{}
	all := m.past
	for _, u := range m.open {
		all = append(all[:len(all):len(all)], *u)
	}
	for _, u := range all {
		if q.Teams != nil && u.task.Team != q.Teams[0] {
			continue
		}
		known := u.intersect(in)
		length := max(0, known.to-known.from)
		for _, gap := range m.gaps {
			without := gap.intersect(known)
			length -= max(0, without.to-without.from)
		}
		for pool, amount := range u.amounts {
			if pool.Resource != q.Resource || length == 0 || amount == 0 {
				continue
			}
			key := pool.Pool + " " + map[UsageKey]string{UsageByTeam: u.task.Team, UsageByClass: u.task.PriorityClass, UsageByKind: u.task.Kind, UsageByTask: u.task.UID, UsageByPerson: u.task.SubmittedBy}[by]
			if sums[key][0] == nil {
				sums[key] = [2]*big.Int{new(big.Int), new(big.Int)}
			}
			used := new(big.Int).Mul(big.NewInt(amount), big.NewInt(length))
			sums[key][0].Add(sums[key][0], used)
			if u.preempted {
				sums[key][1].Add(sums[key][1], used)
			}
		}
	}
	text := map[string][2]string{}
	for key, sum := range sums {
		text[key] = [2]string{sum[0].String(), sum[1].String()}
	}
	return text
}

// testTaskUsage records tasks that start, change their size, are preempted and end at
// random, in part while no console runs, and compares sums with the model.
func testTaskUsage(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{})
	must[time.Time](t)(s.BeginTerm(ctx))
	r := rand.New(rand.NewPCG(23, 68))
	m := &usageModel{open: map[string]*modelUse{}}
	now := start.Truncate(time.Second)
	type workload struct {
		Task
		released time.Time
		events   []Event
	}
	tasks := map[string]*workload{}
	record := func(w *workload) Record {
		of := Record{Task: w.Task, Events: w.events}
		switch u := m.open[w.UID]; {
		case u != nil:
			of.Usage = []TaskUsage{{"w-" + w.UID, fromMillis(u.began), time.Time{}, u.amounts}}
		case w.DeletedAt.IsZero() && !w.released.IsZero():
			of.Usage = []TaskUsage{{WorkloadUID: "w-" + w.UID, Began: w.released, Ended: w.released}}
		}
		return of
	}
	amounts := func() map[PoolResource]int64 {
		of := map[PoolResource]int64{{"a100", "memory"}: 1 + r.Int64N(1<<34), {"a100", "example.com/bytes"}: (1 + r.Int64N(1<<20)) << 20, {"h100", "example.com/bytes"}: 1 << 36}
		for _, pool := range []string{"a100", "h100"} {
			if r.IntN(2) == 0 {
				of[PoolResource{pool, "nvidia.com/gpu"}] = 1 + r.Int64N(64)
			}
		}
		return of
	}
	ok(t, s.AppendSamples(ctx, []Sample{{At: now}}))
	ok(t, s.AppendSamples(ctx, []Sample{{At: now, Amounts: []Amount{{SeriesKey{Pool: "a100", Resource: "nvidia.com/gpu", Measure: Physical}, 1}, {SeriesKey{Pool: "a100", Resource: "memory", Measure: Physical}, 1}, {SeriesKey{Pool: "a100", Resource: "example.com/bytes", Measure: Physical}, 1}}}}))
	down := time.Time{}
	var missed []string
	for n := range 900 {
		now = now.Add(time.Duration(1+r.IntN(4000)) * time.Second)
		if n%120 == 100 {
			down = now
			ok(t, s.AppendSamples(ctx, []Sample{{At: now}}))
			now = now.Add(time.Second)
		}
		uid := fmt.Sprint("task-", r.IntN(12)+n/60*6)
		w := tasks[uid]
		if w == nil {
			w = &workload{Task: Task{UID: uid, Name: uid, Namespace: "ns", Kind: []string{"Job", "RayJob"}[r.IntN(2)], Team: []string{"vision", "nlp"}[r.IntN(2)], PriorityClass: []string{"", "high"}[r.IntN(2)], SubmittedAt: now, SubmittedBy: []string{"", "ada", "cronjob ns/nightly"}[r.IntN(3)]}}
			tasks[uid] = w
		}
		end := func() {
			if u := m.open[uid]; u != nil {
				u.to = now.UnixMilli()
				m.past = append(m.past, *u)
				delete(m.open, uid)
			}
		}
		use := func(began int64) {
			m.open[uid] = &modelUse{timeRange: timeRange{now.UnixMilli(), 1 << 60}, task: w.Task, amounts: amounts(), began: began}
		}
		switch u := m.open[uid]; {
		case !w.DeletedAt.IsZero():
		case u == nil && !down.IsZero() && !w.released.Before(down): // history cannot know which of its runs a preemption ended
		case u == nil && r.IntN(6) == 0:
			w.DeletedAt = now
		case u == nil:
			use(now.UnixMilli())
		case r.IntN(3) == 0 && down.IsZero(): // its size changes
			end()
			use(u.began)
		case r.IntN(2) == 0:
			u.preempted = true
			w.events = append(w.events, Event{WorkloadUID: "w-" + uid, At: now, Type: "Preempted"})
			fallthrough
		default:
			end()
			w.released = now
			if r.IntN(5) == 0 {
				w.FinishedAt = now
				w.DeletedAt = now
			}
		}
		missed = append(missed, uid)
		if !down.IsZero() {
			if n%120 < 112 {
				continue
			}
			now = now.Add(time.Minute)
			ok(t, s.RecordGap(ctx, Gap{down, now, "The console was not running."}))
			m.gaps = append(m.gaps, timeRange{down.UnixMilli(), now.UnixMilli()})
			down = time.Time{}
		}
		ok(t, s.AppendSamples(ctx, []Sample{{At: now}}))
		var records []Record
		for _, uid := range missed {
			records = append(records, record(tasks[uid]))
		}
		missed = nil
		ok(t, s.RecordTasks(ctx, records))
		if r.IntN(5) == 0 { // the same again
			ok(t, s.RecordTasks(ctx, records))
		}
	}
	ok(t, s.AppendSamples(ctx, []Sample{{At: now}}))
	if days := now.Sub(start).Hours() / 24; days < 15 {
		t.Fatalf("only %.0f days", days)
	}
	preempted := false
	for range 60 {
		from, to := ordered(between(r, start, now), between(r, start, now))
		in := timeRange{from.UnixMilli(), to.UnixMilli()}
		for _, by := range []UsageKey{UsageByTask, UsageByTeam, UsageByClass, UsageByKind, UsageByPerson} {
			for _, q := range []TaskUsageQuery{{Resource: "nvidia.com/gpu"}, {Resource: "example.com/bytes"}, {Resource: "memory", Teams: []string{"vision"}}} {
				got := map[string][2]string{}
				for _, total := range must[[]TaskUsageTotal](t)(s.TaskUsage(ctx, by, q, from, to)) {
					got[total.Pool+" "+total.Key] = [2]string{total.Sum.String(), total.Preempted.String()}
					preempted = preempted || total.Preempted.Sign() > 0
				}
				if diff := cmp.Diff(m.sums(by, q, in), got); diff != "" {
					t.Fatalf("%v by %s from %s to %s (-want +got):\n%s", q, by, from, to, diff)
				}
			}
		}
	}
	checkLargest(t, s, r, now)
	checkUsageDays(t, s)
	if !preempted {
		t.Error("nothing was preempted")
	}
	all := must[[]TaskUsageTotal](t)(s.TaskUsage(ctx, UsageByTask, TaskUsageQuery{Resource: "memory"}, start, now))
	first := must[[]TaskUsageTotal](t)(s.TaskUsage(ctx, UsageByTask, TaskUsageQuery{Resource: "memory", Limit: 3}, start, now))
	if len(first) != 3 || first[0].Key != all[0].Key || first[0].Sum.Cmp(first[2].Sum) < 0 {
		t.Errorf("the largest are %v of %v", first, all)
	}
	found := must[map[string]Task](t)(s.TasksOf(ctx, []string{all[0].Key, "unknown"}))
	if len(found) != 1 || found[all[0].Key].Name != all[0].Key {
		t.Errorf("tasks of usage: %v", found)
	}
	if none := must[[]TaskUsageTotal](t)(s.TaskUsage(ctx, UsageByTeam, TaskUsageQuery{Resource: "memory", Teams: []string{}}, start, now)); len(none) != 0 {
		t.Errorf("no team used %v", none)
	}
	ok(t, s.Forget(ctx, now.Add(1000*24*time.Hour)))
	var rows, going int
	ok(t, s.reader.QueryRow("SELECT COUNT(*), COUNT(CASE ended WHEN 0 THEN 1 END) FROM task_usage").Scan(&rows, &going))
	if rows != going || going == 0 {
		t.Errorf("%d rows after they were forgotten, want those of the %d that go on", rows, going)
	}
}

// checkLargest fails the test unless the largest tasks of random ranges are those of all, and
// are found by their bounds in some and by reading all runs in others.
func checkLargest(t *testing.T, s *Store, r *rand.Rand, now time.Time) {
	t.Helper()
	byBounds, byRuns := 0, 0
	for n := range 200 {
		if n == 100 { // bounds that say nothing
			ok(t, s.writeAny(t.Context(), "raise bounds", func(t *tx) error { return t.exec("UPDATE task_sizes SET bound = bound + 1000000000000000") }))
		}
		from, to := ordered(between(r, start, now), between(r, start, now))
		q := TaskUsageQuery{Resource: []string{"nvidia.com/gpu", "memory"}[n%2], Pool: []string{"", "", "a100"}[n%3]}
		if n%5 == 0 {
			q.Teams = []string{"nlp"}
		}
		all := must[[]TaskUsageTotal](t)(s.TaskUsage(t.Context(), UsageByTask, q, from, to))
		q.Limit = 1 + r.IntN(3)
		got := must[[]TaskUsageTotal](t)(s.TaskUsage(t.Context(), UsageByTask, q, from, to))
		equal := cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
		if diff := cmp.Diff(all[:min(len(all), q.Limit)], got, equal, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%+v from %s to %s (-want +got):\n%s", q, from, to, diff)
		}
		ok(t, s.read(t.Context(), "find the largest", func(t *tx) error {
			known, err := t.knownRanges(timeRange{from.UnixMilli(), to.UnixMilli()})
			if err != nil || len(known) == 0 {
				return err
			}
			_, done, err := t.largestTasks(q, known)
			if done {
				byBounds++
			} else {
				byRuns++
			}
			return err
		}))
	}
	if byBounds < 50 || byRuns == 0 {
		t.Errorf("%d found by bounds and %d by runs", byBounds, byRuns)
	}
}

// checkUsageDays fails the test unless the sums of days are right after an earlier version wrote
// none, and reports are right until then.
func checkUsageDays(t *testing.T, s *Store) {
	t.Helper()
	read := func() (rows []string) {
		ok(t, s.read(t.Context(), "list sums", func(t *tx) error {
			rows = nil
			return t.query("SELECT dimension, resource, team, day, pool, name, used, lost FROM task_usage_days ORDER BY dimension, resource, team, day, pool, name", nil, func(scan scanFunc) error {
				var text [5]string
				var day, used, lost int64
				err := scan(&text[0], &text[1], &text[2], &day, &text[3], &text[4], &used, &lost)
				rows = append(rows, fmt.Sprint(text, day, used, lost))
				return err
			})
		}))
		return rows
	}
	recorded := read()
	if len(recorded) < 100 {
		t.Errorf("only %d sums of days", len(recorded))
	}
	// An earlier version ran in between: it moves seen, and writes no sums.
	q := TaskUsageQuery{Resource: "memory"}
	all := func() []TaskUsageTotal {
		return must[[]TaskUsageTotal](t)(s.TaskUsage(t.Context(), UsageByPerson, q, start, start.Add(100*day24)))
	}
	before, largest := all(), q
	largest.Limit = 20
	again := func() []TaskUsageTotal {
		return must[[]TaskUsageTotal](t)(s.TaskUsage(t.Context(), UsageByTask, largest, start, start.Add(100*day24)))
	}
	first := again()
	ok(t, s.writeAny(t.Context(), "be an earlier version", func(t *tx) error {
		for _, statement := range []string{"DELETE FROM task_usage_days WHERE pool = 'a100'", "DELETE FROM task_sizes WHERE team = 'nlp'"} {
			if err := t.exec(statement); err != nil {
				return err
			}
		}
		return t.exec("UPDATE state SET summed = seen - 1")
	}))
	must[time.Time](t)(s.BeginTerm(t.Context()))
	equal := cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(before, all(), equal); diff != "" {
		t.Errorf("while sums are wrong (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, again(), equal); diff != "" {
		t.Errorf("the largest while sums are wrong (-want +got):\n%s", diff)
	}
	ok(t, s.sumUsage(t.Context()))
	if diff := cmp.Diff(recorded, read()); diff != "" {
		t.Errorf("summed up again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, all(), equal); diff != "" {
		t.Errorf("after that (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, again(), equal); diff != "" {
		t.Errorf("the largest after that (-want +got):\n%s", diff)
	}
}
