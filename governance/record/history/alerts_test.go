package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testAlerts saves alerts that fire, change, resolve and are dropped, and silences, by
// the leader and another replica, until they are older than the retention.
func testAlerts(t *testing.T, url string) {
	ctx := t.Context()
	leader, other := open(t, url, Options{}), open(t, url, Options{})
	must[time.Time](t)(leader.BeginTerm(ctx))
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	waits := Alert{ID: "1", Rule: "task-waits", Subject: "ns-vision", Team: "vision", Namespace: "ns-vision", Summary: "2 tasks wait\x00", Since: at(0), Fired: at(1)}
	idle := Alert{ID: "2", Rule: "quota-idle", Subject: "vision/p5", Summary: "Quota is idle.", Since: at(0)}
	lost := Alert{ID: "3", Rule: "nodes-lost", Subject: "p5", Summary: "A node is not ready.", Since: at(2), Fired: at(3)}
	ok(t, leader.SaveAlerts(ctx, []Alert{waits, idle, lost}, nil))
	waits.Summary, lost.Resolved = "3 tasks wait", at(9)
	ok(t, leader.SaveAlerts(ctx, []Alert{waits, lost}, []string{"2", "none"}))
	check := func(s *Store, resolvedSince time.Time, wantOpen, wantResolved []Alert) {
		t.Helper()
		open, resolved, err := s.Alerts(ctx, resolvedSince)
		ok(t, err)
		if diff := cmp.Diff([][]Alert{wantOpen, wantResolved}, [][]Alert{open, resolved}); diff != "" {
			t.Errorf("alerts (-want +got):\n%s", diff)
		}
	}
	check(other, at(5), []Alert{waits}, []Alert{lost})
	check(other, at(10), []Alert{waits}, nil)

	must[time.Time](t)(other.BeginTerm(ctx))
	if err := leader.SaveAlerts(ctx, []Alert{idle}, nil); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a replica that led before saves alerts: %v", err)
	}
	silences := []Silence{
		{ID: "b", Rule: "task-waits", Team: "vision", Created: at(0), Until: at(60), Actor: "ada", Reason: "known"},
		{ID: "a", Created: at(0), Until: at(30), Actor: "admin"},
	}
	for _, n := range silences {
		ok(t, leader.AddSilence(ctx, n))
		ok(t, leader.AddSilence(ctx, n))
	}
	ok(t, other.EndSilence(ctx, "a", at(40))) // it ended before
	if diff := cmp.Diff([]Silence{silences[1], silences[0]}, must[[]Silence](t)(other.Silences(ctx, at(20)))); diff != "" {
		t.Errorf("silences (-want +got):\n%s", diff)
	}
	ok(t, leader.EndSilence(ctx, "b", at(35)))
	if left := must[[]Silence](t)(other.Silences(ctx, at(36))); len(left) > 0 {
		t.Errorf("silences after both ended: got %v, want none", left)
	}
	ok(t, other.Forget(ctx, at(0).Add(500*24*time.Hour)))
	check(other, time.Time{}, []Alert{waits}, nil)
	if left := must[[]Silence](t)(other.Silences(ctx, time.Time{})); len(left) > 0 {
		t.Errorf("silences after the retention: got %v, want none", left)
	}
}

// testDeliveries checks that a receiver with many messages that are due hides no other one.
func testDeliveries(t *testing.T, url string) {
	ctx := t.Context()
	s := open(t, url, Options{})
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	add := func(id, receiver string, created int) {
		t.Helper()
		ok(t, s.AddDelivery(ctx, Delivery{ID: id, Receiver: receiver, Message: "{}", Created: at(created), Due: at(created)}, []Notified{{Alert: id, Receiver: receiver}}))
	}
	due := func(before int) (ids []string) {
		t.Helper()
		for _, d := range must[[]Delivery](t)(s.Deliveries(ctx, DeliveryQuery{DueBefore: at(before)})) {
			ids = append(ids, d.ID)
		}
		return ids
	}
	for n := range 2 * maxDeliveries {
		add(fmt.Sprintf("down-%03d", n), "down", n)
	}
	add("later", "ops", 500)
	add("first", "ops", 400)
	add("future", "mail", 900)
	if diff := cmp.Diff([]string{"down-000", "first"}, due(600)); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	ok(t, s.SaveDelivery(ctx, Delivery{ID: "first", Attempts: 1, Delivered: at(600)}))
	ok(t, s.SaveDelivery(ctx, Delivery{ID: "down-000", Attempts: 1, Due: at(700), Error: "down"}))
	if diff := cmp.Diff([]string{"down-001", "later"}, due(600)); diff != "" {
		t.Errorf("due after attempts (-want +got):\n%s", diff)
	}
	latest := must[[]Delivery](t)(s.Deliveries(ctx, DeliveryQuery{Since: at(400)}))
	if len(latest) != 3 || latest[0].ID != "future" || latest[2].Delivered != at(600) {
		t.Errorf("the latest are %v", latest)
	}
	if notified := must[[]Notified](t)(s.Notified(ctx)); len(notified) != 2*maxDeliveries+3 {
		t.Errorf("%d alerts are notified", len(notified))
	}
}
