package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testActivity records entries by two consoles, some of them twice, and reads them by
// each filter, page by page, until they are older than the retention.
func testActivity(t *testing.T, url string) {
	ctx := t.Context()
	var all []Activity // the latest first
	for n := range 600 {
		e := Activity{
			ID: fmt.Sprintf("r%04d", n), At: start.Add(time.Duration(n/3) * time.Minute), Actor: "ada", Source: SourceConsole, Action: "stop",
			Kind: "Workload", Namespace: "ns-vision", Name: "train", UID: fmt.Sprintf("u%d", n%7), Team: "vision", Outcome: Succeeded,
		}
		switch n % 5 {
		case 1:
			e.Actor, e.Action, e.Changes, e.Reason = "bob", "update", []string{`spec.active: true → false`, `a "quoted" 100%_\ value`}, "it was too late\x00"
		case 2:
			e.Team, e.Namespace, e.Outcome, e.Error = "nlp", "ns-nlp", Refused, "forbidden"
		case 3:
			e.Team, e.Namespace, e.Kind, e.Name, e.Source, e.Address = "", "", "ClusterPolicy", "100%_Cluster", SourceOutside, "192.0.2.7"
		}
		all = append(all, e)
	}
	s, other := open(t, url, Options{}), open(t, url, Options{})
	must[time.Time](t)(other.BeginTerm(ctx)) // a replica that does not lead records too
	ok(t, s.RecordActivity(ctx, all[:400]))
	ok(t, other.RecordActivity(ctx, all[300:]))
	changed := slices.Clone(all[:1])
	changed[0].Actor = "mallory"
	ok(t, s.RecordActivity(ctx, changed))
	ok(t, s.RecordActivity(ctx, nil))
	slices.Reverse(all)
	for i := range all {
		if all[i].Reason != "" {
			all[i].Reason = "it was too late"
		}
	}
	for name, one := range map[string]struct {
		query ActivityQuery
		want  func(Activity) bool
	}{
		"all":         {ActivityQuery{}, func(Activity) bool { return true }},
		"a team":      {ActivityQuery{Teams: []string{"nlp"}}, func(e Activity) bool { return e.Team == "nlp" }},
		"and of none": {ActivityQuery{Teams: []string{"nlp", ""}}, func(e Activity) bool { return e.Team != "vision" }},
		"no teams":    {ActivityQuery{Teams: []string{}}, func(Activity) bool { return false }},
		"an actor":    {ActivityQuery{Actor: "OB"}, func(e Activity) bool { return e.Actor == "bob" }},
		"an action":   {ActivityQuery{Action: "stop", Kind: "Workload"}, func(e Activity) bool { return e.Action == "stop" && e.Kind == "Workload" }},
		"an object":   {ActivityQuery{UID: "u3"}, func(e Activity) bool { return e.UID == "u3" }},
		"a name":      {ActivityQuery{NameContains: "0%_cl"}, func(e Activity) bool { return e.Kind == "ClusterPolicy" }},
		"a range": {ActivityQuery{From: start.Add(10 * time.Minute), To: start.Add(20 * time.Minute)}, func(e Activity) bool {
			return !e.At.Before(start.Add(10*time.Minute)) && e.At.Before(start.Add(20*time.Minute))
		}},
		"nobody's own": {ActivityQuery{Actor: "mallory"}, func(Activity) bool { return false }},
	} {
		var want, got []Activity
		for _, e := range all {
			if one.want(e) {
				want = append(want, e)
			}
		}
		one.query.Limit = 70
		for {
			page := must[[]Activity](t)(s.Activity(ctx, one.query))
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			one.query.Before = &got[len(got)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ok(t, other.Forget(ctx, start.Add(401*day24)))
	if left := must[[]Activity](t)(s.Activity(ctx, ActivityQuery{})); len(left) != 0 {
		t.Errorf("%d entries are left after the retention", len(left))
	}
}

const day24 = 24 * time.Hour

// testOutsideChanges records the submission and the deletion of tasks that the recorder
// sees, once, and prefers what the console recorded of the same.
func testOutsideChanges(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{})
	ok(t, s.AppendSamples(ctx, []Sample{{At: start}}))
	task := func(uid, by string, submitted, gone time.Duration) Record {
		k := Task{UID: uid, Namespace: "ns", Kind: "Job", Name: "job-" + uid, Team: "vision", SubmittedBy: by, SubmittedAt: start.Add(submitted), State: "Running"}
		if gone > 0 {
			k.DeletedAt = start.Add(gone)
		}
		return Record{Task: k}
	}
	byConsole := func(id, action, uid string, at time.Duration) Activity {
		return Activity{ID: id, At: start.Add(at), Actor: "grace", Address: "192.0.2.7", Source: SourceConsole, Action: action, Kind: "Job", Namespace: "ns", Name: "job-" + uid, UID: uid, Team: "vision", Reason: "why", Outcome: Succeeded}
	}
	minute := time.Minute
	ok(t, s.RecordActivity(ctx, []Activity{byConsole(SubmissionID("first"), "submit", "first", minute), byConsole(SubmissionID("first"), "submit", "first", minute)}))
	ok(t, s.RecordTasks(ctx, []Record{
		task("old", "ada", -minute, 0), task("first", "grace", minute, 0), task("kubectl", "ada", 2*minute, 0), task("late", "", 3*minute, 0), task("last", "grace", 4*minute, 0), task("old", "ada", -minute, 0),
	}))
	ok(t, s.RecordTasks(ctx, []Record{task("late", "linus", 3*minute, 0), task("kubectl", "", 2*minute, 0)})) // the submitter was read later; one was lost
	ok(t, s.RecordActivity(ctx, []Activity{{ID: SubmissionID("last"), Source: SourceOutside}, byConsole(SubmissionID("last"), "submit", "last", 4*minute), byConsole(DeletionID("first"), "delete", "first", 5*minute)}))
	for range 2 { // recorded again after a restart
		ok(t, s.RecordTasks(ctx, []Record{task("first", "grace", minute, 5*minute), task("kubectl", "ada", 2*minute, 6*minute), task("old", "ada", -minute, 7*minute)}))
	}
	held := byConsole(ChangeID("queue", 2), "update", "queue", 8*minute)
	held.Source = SourceOutside
	ok(t, s.RecordActivity(ctx, []Activity{held})) // by a version, which does not know the one before
	ok(t, s.RecordActivity(ctx, []Activity{byConsole(held.ID, "hold", "queue", 8*minute)}))
	var got []string
	for _, e := range must[[]Activity](t)(s.Activity(ctx, ActivityQuery{})) {
		got = append(got, fmt.Sprintf("%s %s by %q from %s at %s", e.Action, e.UID, e.Actor, e.Source, e.At.Sub(start)))
	}
	want := []string{
		`hold queue by "grace" from console at 8m0s`,
		`delete old by "" from outside at 7m0s`, `delete kubectl by "" from outside at 6m0s`, `delete first by "grace" from console at 5m0s`,
		`submit last by "grace" from console at 4m0s`, `submit late by "linus" from outside at 3m0s`, `submit kubectl by "ada" from outside at 2m0s`, `submit first by "grace" from console at 1m0s`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
	if k := must[map[string]Task](t)(s.TasksOf(ctx, []string{"kubectl"}))["kubectl"]; k.SubmittedBy != "ada" {
		t.Errorf("the task was submitted by %q, want ada", k.SubmittedBy)
	}
}

// testAuditedChanges records what an audit log says before and after the recorder sees the same
// task, twice: each entry appears once, with its person, and nothing appears of objects that
// are no tasks.
func testAuditedChanges(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{})
	ok(t, s.AppendSamples(ctx, []Sample{{At: start}}))
	audited := func(id, action, uid string, at time.Duration) Activity {
		return Activity{ID: id, At: start.Add(at), Actor: "ada", Address: "192.0.2.7", Source: SourceOutside, Action: action, UID: uid, Changes: []string{"spec.suspend: set to true"}, Outcome: Succeeded, Audited: true}
	}
	task := func(uid string, gone time.Duration) []Record {
		k := Task{UID: uid, Namespace: "ns", Kind: "Job", Name: "job-" + uid, Team: "vision", SubmittedBy: "grace", SubmittedAt: start.Add(time.Minute), State: "Running"}
		if gone > 0 {
			k.DeletedAt = start.Add(gone)
		}
		return []Record{{Task: k}}
	}
	minute := time.Minute
	for range 2 { // the API server sends again what it got no answer to
		ok(t, s.RecordActivity(ctx, []Activity{audited("audit-1", "update", "early", 2*minute), audited(DeletionID("early"), "delete", "early", 3*minute), audited(DeletionID("child"), "delete", "child", 3*minute)}))
	}
	if got := must[[]Activity](t)(s.Activity(ctx, ActivityQuery{})); len(got) != 0 {
		t.Fatalf("got %+v of objects that are not known, want nothing", got)
	}
	for range 2 {
		ok(t, s.RecordTasks(ctx, task("early", 4*minute)))
		ok(t, s.RecordTasks(ctx, task("late", 0)))
		ok(t, s.RecordTasks(ctx, task("late", 6*minute)))
		ok(t, s.RecordActivity(ctx, []Activity{audited(DeletionID("late"), "delete", "late", 5*minute)}))
	}
	var got []string
	for _, e := range must[[]Activity](t)(s.Activity(ctx, ActivityQuery{Teams: []string{"vision"}})) {
		got = append(got, fmt.Sprintf("%s %s %s/%s by %s from %s %s at %s: %q", e.Action, e.Kind, e.Namespace, e.Name, e.Actor, e.Source, e.Address, e.At.Sub(start), e.Changes))
	}
	set := `["spec.suspend: set to true"]`
	want := []string{
		`delete Job ns/job-late by ada from outside 192.0.2.7 at 5m0s: ` + set, `delete Job ns/job-early by ada from outside 192.0.2.7 at 3m0s: ` + set,
		`update Job ns/job-early by ada from outside 192.0.2.7 at 2m0s: ` + set,
		`submit Job ns/job-late by grace from outside  at 1m0s: []`, `submit Job ns/job-early by grace from outside  at 1m0s: []`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
	left := func() (n int) {
		ok(t, s.read(ctx, "count", func(t *tx) error { return t.queryRow("SELECT count(*) FROM audited", nil, &n) }))
		return n
	}
	ok(t, s.Forget(ctx, start.Add(day24)))
	if n := left(); n != 1 {
		t.Errorf("%d rows wait for a task after a day, want 1", n)
	}
	ok(t, s.Forget(ctx, start.Add(day24+4*minute)))
	if n := left(); n != 0 {
		t.Errorf("%d rows wait for a task after more than a day, want none", n)
	}
}
