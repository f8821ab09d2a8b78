package alerts

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/history"
)

// saved is a Store that keeps what is saved.
type saved struct {
	Store
	alerts []history.Alert
}

func (s *saved) SaveAlerts(_ context.Context, changed []history.Alert, _ []string) error {
	s.alerts = append(s.alerts, changed...)
	return nil
}

// A replica that the API server does not answer fires by itself, once, and only those who see
// all teams see it. It is recorded when it is over, and never sent.
func TestStale(t *testing.T) {
	now, age := start, time.Duration(0)
	store := &saved{}
	s := &Service{Store: store, Contact: func(time.Time) (time.Duration, bool) { return age, true }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	all := access.Scope{All: true}
	for _, step := range []struct {
		age    time.Duration
		firing int
	}{{time.Second, 0}, {Defaults.Stale - time.Second, 0}, {Defaults.Stale, 1}, {Defaults.Stale + time.Minute, 1}, {time.Second, 0}} {
		age, now = step.age, now.Add(5*time.Second)
		s.watchContact(t.Context(), Defaults)
		if got := s.Firing(all); len(got) != step.firing || s.Count(access.Scope{}) != 0 || len(s.sendable()) != 0 {
			t.Errorf("after %s without an answer: %d alerts fire, want %d; %d are sent", step.age, len(got), step.firing, len(s.sendable()))
		}
	}
	if len(store.alerts) != 1 || store.alerts[0].Since != start.Add(15*time.Second-Defaults.Stale) || store.alerts[0].Fired != start.Add(15*time.Second) || store.alerts[0].Resolved != now {
		t.Errorf("recorded %+v", store.alerts)
	}
	age = time.Hour
	s.watchContact(t.Context(), Thresholds{Stale: time.Minute, Off: map[Rule]bool{ConsoleStale: true}})
	if s.Count(all) != 0 {
		t.Error("a rule that is off fires")
	}
}
