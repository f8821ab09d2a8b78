package history

import (
	"errors"
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
