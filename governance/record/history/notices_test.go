package history

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testTaskEvents checks that each event of a person's tasks is listed once: a task has one
// start and one end, of whatever Workloads, and the events of others are not listed.
func testTaskEvents(t *testing.T, url string) {
	ctx := t.Context()
	s, before := open(t, url, Options{}), open(t, url, Options{})
	must[time.Time](t)(before.BeginTerm(ctx))
	must[time.Time](t)(s.BeginTerm(ctx))
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	record := func(name, person, state string, ended int, events ...Event) {
		t.Helper()
		k := aTask(name)
		k.Name, k.Team, k.SubmittedBy, k.State, k.FinishedAt = name, "vision", person, state, time.Time{}
		if ended > 0 {
			k.FinishedAt = at(ended)
		}
		ok(t, s.RecordTasks(ctx, []Record{{Task: k, Events: events}}))
	}
	event := func(workload, what string, second int) Event {
		return Event{WorkloadUID: workload, Type: what, At: at(second), Ran: -1}
	}
	var until int64
	list := func(persons ...string) (found []string) {
		t.Helper()
		var err error
		until, err = s.TaskEvents(ctx, persons, start, func(e TaskEvent) { found = append(found, e.Person+" "+e.Name+" "+e.Type+" "+e.State) })
		ok(t, err)
		return found
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	record("earlier", "ada", "Running", 0, event("e", "Admitted", 1))
	check("before the first message", list("ada"))
	ok(t, s.AddNotices(ctx, nil, until))

	record("earlier", "ada", "Succeeded", 9, event("e", "Admitted", 1), event("e", "Finished", 9))
	record("sliced", "ada", "Running", 0, event("s1", "Admitted", 2), event("s2", "Admitted", 3))
	record("again", "ada", "Running", 0, event("a", "Submitted", 0), event("a", "Admitted", 2), event("a", "Preempted", 4), event("a", "Admitted", 6))
	record("other", "eve", "Failed", 5, event("o", "Admitted", 2), event("o", "Finished", 5))
	record("unknown", "", "Running", 0, event("u", "Admitted", 2))
	record("old", "ada", "Running", 0, event("old", "Admitted", -1))
	want := []string{"ada earlier Finished Succeeded", "ada sliced Admitted Running", "ada again Admitted Running", "ada again Preempted Running"}
	check("events", list("ada"), want...)
	check("not yet in a message", list("ada", "grace"), want...)
	check("of no person", list())
	if err := before.AddNotices(ctx, []Delivery{{ID: "late"}}, until); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a replica that led before adds notices: %v", err)
	}
	ok(t, s.AddNotices(ctx, []Delivery{{ID: "n", Receiver: "mail/notices", Message: "{}", Created: at(10), Due: at(10)}}, until))
	check("after the message", list("ada", "eve"))
	if due := must[[]Delivery](t)(s.Deliveries(ctx, DeliveryQuery{DueBefore: at(11)})); len(due) != 1 || due[0].ID != "n" {
		t.Errorf("due are %v", due)
	}
	ok(t, s.DropDelivery(ctx, "n"))
	if left := must[[]Delivery](t)(s.Deliveries(ctx, DeliveryQuery{Since: start})); len(left) > 0 {
		t.Errorf("left are %v", left)
	}

	record("again", "ada", "Preempted", 0, event("a", "Admitted", 2), event("a", "Preempted", 4), event("a", "Admitted", 6), event("a", "Preempted", 12))
	record("sliced", "ada", "Running", 0, event("s2", "Admitted", 3), event("s3", "Admitted", 13), event("s1", "Finished", 13))
	check("one more preemption, and a slice that was replaced", list("ada"), "ada again Preempted Preempted")
	ok(t, s.AddNotices(ctx, nil, until))
	record("sliced", "ada", "Failed", 20, event("s2", "Finished", 19), event("s3", "Finished", 20))
	check("the end of all slices", list("ada"), "ada sliced Finished Failed")
}
