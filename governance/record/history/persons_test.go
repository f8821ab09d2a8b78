package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
