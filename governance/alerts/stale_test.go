package alerts

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
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

// notices are Notices with what is due.
type notices struct {
	learned []history.Notified
	due     []history.Delivery
	err     error
}

func (n *notices) Notified(context.Context) ([]history.Notified, error) { return nil, nil }

func (n *notices) AddDelivery(_ context.Context, _ history.Delivery, of []history.Notified) error {
	if n.err == nil {
		n.learned = append(n.learned, of...)
	}
	return n.err
}

func (n *notices) Deliveries(context.Context, history.DeliveryQuery) ([]history.Delivery, error) {
	return n.due, nil
}

func (n *notices) SaveDelivery(context.Context, history.Delivery) error { return nil }

func (n *notices) DropDelivery(context.Context, string) error { return nil }

// A replica that the API server does not answer fires by itself, once, and only those who see
// all teams see it. If it was the last that led it is sent and recorded.
func TestStale(t *testing.T) {
	now, age := start, time.Duration(0)
	store := &saved{}
	notices := &notices{}
	s := &Service{
		Store: store, Contact: func(time.Time) (time.Duration, bool) { return age, true }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Notices: notices, Sender: &sender{}, Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) {
			return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{{Name: "ops"}, {Name: "vision", Team: "vision"}}}}}, nil
		},
	}
	if err := s.beginNotifying(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	last := store.alerts[len(store.alerts)-1]
	if last.Since != start.Add(15*time.Second-Defaults.Stale) || last.Fired != start.Add(15*time.Second) || last.Resolved != now || !store.alerts[0].Resolved.IsZero() {
		t.Errorf("recorded %+v", store.alerts)
	}
	if diff := cmp.Diff([]history.Notified{{Alert: last.ID, Receiver: "ops"}}, notices.learned); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	// Another replica led meanwhile: the database rejects what this one writes, which stops.
	notices.err, age, now = history.ErrNotLeader, time.Hour, now.Add(time.Hour)
	s.watchContact(t.Context(), Defaults)
	recorded := len(store.alerts)
	s.watchContact(t.Context(), Defaults)
	if len(store.alerts) != recorded || s.ledLast() || s.Count(all) != 1 {
		t.Errorf("another one leads: recorded %+v, and %d fire", store.alerts, s.Count(all))
	}
	age = time.Hour
	s.watchContact(t.Context(), Thresholds{Stale: time.Minute, Off: map[Rule]bool{ConsoleStale: true}})
	if s.Count(all) != 0 {
		t.Error("a rule that is off fires")
	}
}

// What is due is not sent by a replica that was the last that led, once another one leads.
func TestFence(t *testing.T) {
	for _, fence := range []error{nil, history.ErrNotLeader} {
		sends := &sender{up: true}
		s := &Service{
			Log: slog.New(slog.DiscardHandler), Now: time.Now, Notices: &notices{due: []history.Delivery{{ID: "m", Receiver: "ops", Message: "{}"}}}, Sender: sends,
			Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) {
				return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{{Name: "ops"}}}}}, nil
			},
		}
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		s.send(ctx, func(context.Context) error { return fence })
		stop()
		if got := len(sends.sent) > 0; got != (fence == nil) {
			t.Errorf("with %v: sent %t", fence, got)
		}
	}
}
