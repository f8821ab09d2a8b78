package history

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A row that the database refuses to delete keeps no other old one.
func TestForgetPassesOddRows(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "history.db"), Options{Retention: 24 * time.Hour})
	ok(t, s.RecordTasks(ctx, []Record{{Task: Task{UID: "old", Team: "vision", SubmittedAt: start, FinishedAt: start.Add(time.Hour)}}}))
	ok(t, s.RecordGap(ctx, Gap{From: start, To: start.Add(time.Minute), Reason: "odd"}))
	ok(t, s.write(ctx, "refuse", func(t *tx) error {
		return t.exec("CREATE TRIGGER refuse BEFORE DELETE ON gaps BEGIN SELECT RAISE(ABORT, 'refused'); END")
	}))
	if err := s.Forget(ctx, start.Add(240*time.Hour)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got error %v, want the refusal", err)
	}
	left, err := queryColumn[string](ctx, s, "SELECT uid FROM tasks")
	if ok(t, err); len(left) > 0 {
		t.Errorf("%v are left behind the gap", left)
	}
}

func testForget(t *testing.T, url string) {
	ctx := context.Background()
	const days = 24 * time.Hour
	s := open(t, url, Options{Retention: 30 * days, DetailRetention: 5 * days})
	now := start.Add(100 * days)
	old := now.Add(-30 * days).Truncate(days)
	h := SeriesKey{"vision", "a100", "cpu", Used}
	r := rand.New(rand.NewPCG(5, 5))
	m := newModel()
	var records []Record
	var wantTasks []string
	waits := int64(0)
	for n := range 6000 {
		task := aTask(fmt.Sprintf("u%05d", n))
		task.SubmittedAt = between(r, start, now.Add(-days))
		ended := task.SubmittedAt.Add(time.Duration(r.IntN(48*3600)) * time.Second)
		stays := true
		switch r.IntN(3) {
		case 0:
			task.FinishedAt = ended
			stays = !ended.Before(old)
		case 1:
			task.DeletedAt = ended
			stays = !ended.Before(old)
		}
		if stays {
			wantTasks = append(wantTasks, task.UID)
		}
		if !ended.Before(old) {
			waits++
		}
		records = append(records, Record{Task: task, Events: []Event{{WorkloadUID: task.UID, Type: "created", At: task.SubmittedAt}},
			Spans: []Span{{task.UID, Wait, task.SubmittedAt, ended}}})
	}
	for part := range slices.Chunk(records, 1000) {
		ok(t, s.RecordTasks(ctx, part))
	}
	at := start
	for n := 0; at.Before(now); n++ {
		sample := Sample{at, []Amount{{h, int64(n)}}}
		m.sample(sample)
		ok(t, s.AppendSamples(ctx, []Sample{sample}))
		at = at.Add(time.Duration(r.IntN(15*3600)) * time.Second)
	}
	last := Sample{At: now}
	m.sample(last)
	ok(t, s.AppendSamples(ctx, []Sample{last}))
	keys := []SeriesKey{h}
	gaps := []Gap{{start, start.Add(days), "old"}, {now.Add(-2 * days), now.Add(-days), "new"}}
	for range 3 {
		ok(t, s.Forget(ctx, now))
	}
	if since := must[time.Time](t)(s.Since(ctx)); !since.Equal(old) {
		t.Errorf("Since is %s, want %s", since, old)
	}
	for range 100 {
		// Any range within the detail retention, whole hours before it.
		from, to := ordered(between(r, now.Add(-5*days).Add(time.Hour), now), between(r, now.Add(-5*days).Add(time.Hour), now))
		if r.IntN(2) == 0 {
			from, to = ordered(between(r, old.Add(20*time.Hour), now).Truncate(time.Hour), between(r, old.Add(20*time.Hour), now).Truncate(time.Hour))
		}
		m.compare(t, s, keys, from, to, 1+r.IntN(40))
	}
	rest := must[map[SeriesKey]Total](t)(s.Totals(ctx, keys, start, old.Add(-days)))[h]
	if rest.Known > 0 {
		t.Errorf("%s before the retention is known", rest.Known)
	}
	for _, gap := range gaps {
		ok(t, s.RecordGap(ctx, gap))
	}
	ok(t, s.Forget(ctx, now))
	if diff := cmp.Diff(gaps[1:], must[[]Gap](t)(s.Gaps(ctx, start, now))); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	var found []string
	for _, task := range must[[]Task](t)(s.Tasks(ctx, Query{Limit: len(records)})) {
		found = append(found, task.UID)
	}
	slices.Sort(found)
	if diff := cmp.Diff(wantTasks, found); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	for _, part := range []struct {
		table string
		rows  int64
	}{{"steps", int64(len(wantTasks))}, {"spans", waits}} {
		var rows int64
		ok(t, s.reader.QueryRow("SELECT COUNT(*) FROM "+part.table).Scan(&rows))
		if rows != part.rows {
			t.Errorf("%d %s, want %d", rows, part.table, part.rows)
		}
	}
	for _, teams := range [][]string{nil, {"vision"}} {
		if got := must[[]ClassStats](t)(s.ClassStats(ctx, teams, start, now.Add(10*days))); len(got) != 1 || got[0].Waits != waits {
			t.Errorf("statistics of %v: %v, want %d waits", teams, got, waits)
		}
	}
	// Deleted records can be recorded again, and are deleted again.
	ok(t, s.RecordTasks(ctx, records[:1000]))
	ok(t, s.Forget(ctx, now))
	if got := must[[]ClassStats](t)(s.ClassStats(ctx, nil, start, now.Add(10*days))); got[0].Waits != waits {
		t.Errorf("%d waits after they were recorded again, want %d", got[0].Waits, waits)
	}
}

// A part of an hour without single intervals counts proportionally.
func testOldDetail(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{DetailRetention: 24 * time.Hour})
	h := SeriesKey{"vision", "a100", "cpu", Used}
	at := start.Truncate(24 * time.Hour)
	ok(t, s.AppendSamples(ctx, []Sample{{at, []Amount{{h, 10}}}, {at.Add(30 * time.Minute), []Amount{{h, 20}}}, {at.Add(2 * time.Hour), []Amount{{h, 40}}}}))
	ok(t, s.AppendSamples(ctx, []Sample{{At: at.Add(100 * time.Hour)}}))
	totals := func() *big.Int {
		total := must[map[SeriesKey]Total](t)(s.Totals(ctx, []SeriesKey{h}, at.Add(20*time.Minute), at.Add(80*time.Minute)))[h]
		if total.Known != time.Hour {
			t.Errorf("%s of an hour is known", total.Known)
		}
		return total.Sum
	}
	if sum := totals(); sum.Int64() != (10*10+50*20)*60_000 {
		t.Errorf("total of single intervals: %s", sum)
	}
	ok(t, s.Forget(ctx, at.Add(100*time.Hour)))
	if sum := totals(); sum.Int64() != (40*15+20*20)*60_000 {
		t.Errorf("total of the hour's shares: %s", sum)
	}
	points := must[map[SeriesKey][]Point](t)(s.Series(ctx, []SeriesKey{h}, at.Add(20*time.Minute), at.Add(130*time.Minute), 100))[h]
	want := []Point{{at, 15, true}, {at.Add(time.Hour), 20, true}, {at.Add(2 * time.Hour), 40, true}}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// testPseudonyms names persons for ten days, then gives each the same pseudonym everywhere, and
// another than in the next database. Programs and what is newer keep their names.
func testPseudonyms(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{PersonRetention: 10 * day24})
	ok(t, s.AppendSamples(ctx, []Sample{{At: start}}))
	now := start.Add(20 * day24)
	entry := func(id, actor string, at time.Duration) Activity {
		return Activity{ID: id, At: start.Add(at), Actor: actor, Address: "192.0.2.7", Source: SourceConsole, Action: "stop", Outcome: Succeeded}
	}
	ok(t, s.RecordActivity(ctx, []Activity{entry("1", "ada", time.Hour), entry("2", "grace", time.Hour), entry("3", "system:serviceaccount:ns:robot", time.Hour), entry("4", "ada", 15*day24)}))
	var records []Record
	for i, by := range []string{"ada", "CronJob/nightly", "ada"} {
		k := Task{UID: fmt.Sprint("u", i), Namespace: "ns", Kind: "Job", Name: "job", Team: "vision", SubmittedBy: by, SubmittedAt: start.Add(time.Hour), State: "Finished"}
		if i < 2 {
			k.FinishedAt = start.Add(2 * time.Hour)
		}
		use := TaskUsage{WorkloadUID: "w-" + k.UID, Began: k.SubmittedAt, Ended: k.FinishedAt, Amounts: map[PoolResource]int64{{"a100", "gpu"}: 8}}
		records = append(records, Record{Task: k, Usage: []TaskUsage{use}})
	}
	ok(t, s.RecordTasks(ctx, records[:1]))
	ok(t, s.AppendSamples(ctx, []Sample{{At: now}}))
	names := func() (found []string) {
		for _, e := range must[[]Activity](t)(s.Activity(ctx, ActivityQuery{})) {
			if e.Source == SourceConsole {
				found = append(found, e.ID+" "+e.Actor+" "+e.Address)
			}
		}
		for _, k := range must[[]Task](t)(s.Tasks(ctx, Query{})) {
			found = append(found, k.UID+" "+k.SubmittedBy)
		}
		return found
	}
	ok(t, s.Forget(ctx, now))
	ok(t, s.RecordTasks(ctx, records)) // late, about a day that has pseudonyms
	for range 2 {                      // nobody gets the pseudonym of a pseudonym
		ok(t, s.Forget(ctx, now))
	}
	var key string
	ok(t, s.read(ctx, "key", func(t *tx) error { return t.queryRow("SELECT secret FROM pseudonym_key", nil, &key) }))
	ada, grace := pseudonym(key, "ada"), pseudonym(key, "grace")
	want := []string{"4 ada 192.0.2.7", "3 system:serviceaccount:ns:robot ", "2 " + grace + " ", "1 " + ada + " "}
	got := names()
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
	for _, task := range got[4:] {
		if strings.HasPrefix(task, "u0 ") && task != "u0 "+ada || strings.HasPrefix(task, "u2 ") && task != "u2 ada" {
			t.Errorf("got the task %s: one that ended has the pseudonym, one that runs the name", task)
		}
	}
	midnight := start.Truncate(day24)
	var used []string
	for _, total := range must[[]TaskUsageTotal](t)(s.TaskUsage(ctx, UsageByPerson, TaskUsageQuery{Resource: "gpu"}, midnight.Add(-day24), midnight.Add(2*day24))) {
		used = append(used, total.Key)
	}
	slices.Sort(used)
	wantUsed := []string{"ada", ada, pseudonym(key, "CronJob/nightly")}
	slices.Sort(wantUsed)
	if diff := cmp.Diff(wantUsed, used); diff != "" {
		t.Errorf("usage by person (-want +got):\n%s", diff)
	}
	if len(ada) != len(pseudonymPrefix)+12 || ada == grace || ada == pseudonym("another key", "ada") {
		t.Errorf("got the pseudonyms %s and %s", ada, grace)
	}
}
