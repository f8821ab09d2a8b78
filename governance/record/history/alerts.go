package history

import (
	"context"
	"time"
)

// Alert is one occurrence of an alert: what a rule found about one subject, from when it
// was found first until it is resolved.
type Alert struct {
	ID            string
	Rule, Subject string    // identify it among those that are not resolved
	Team          string    // empty for the cluster
	Namespace     string    // whose readers see it; empty for those who see all teams
	Summary       string    // one sentence
	Since         time.Time // when its cause began
	Fired         time.Time // zero while it is pending
	Resolved      time.Time // zero until it is resolved
}

// Silence hides alerts from the header and from receivers until a time.
type Silence struct {
	ID         string
	Rule, Team string // empty for all
	Created    time.Time
	Until      time.Time
	Actor      string
	Reason     string
}

// maxResolvedAlerts bounds how many resolved alerts are read.
const maxResolvedAlerts = 200

const (
	alertColumns   = "id, rule, subject, team, namespace, summary, since, fired, resolved"
	silenceColumns = "id, rule, team, created, until, actor, reason"
)

// row returns the fields of alertColumns.
func (a *Alert) row() []any {
	return []any{&a.ID, &a.Rule, &a.Subject, &a.Team, &a.Namespace, textColumn(&a.Summary), timeColumn(&a.Since), timeColumn(&a.Fired), timeColumn(&a.Resolved)}
}

// row returns the fields of silenceColumns.
func (n *Silence) row() []any {
	return []any{&n.ID, &n.Rule, &n.Team, timeColumn(&n.Created), timeColumn(&n.Until), textColumn(&n.Actor), textColumn(&n.Reason)}
}

// SaveAlerts records changed alerts, and deletes those with these ids, which never
// fired.
func (s *Store) SaveAlerts(ctx context.Context, changed []Alert, dropped []string) error {
	rows := make([][]any, 0, len(changed))
	for _, a := range changed {
		rows = append(rows, a.row())
	}
	return s.write(ctx, "save alerts", func(t *tx) error {
		err := t.insert("alerts ("+alertColumns+")", rows,
			"ON CONFLICT (id) DO UPDATE SET summary = excluded.summary, fired = excluded.fired, resolved = excluded.resolved", nil)
		if err != nil {
			return err
		}
		return keyBatches(dropped, func(list string, args []any) error {
			return t.exec("DELETE FROM alerts WHERE id IN ("+list+")", args...)
		})
	})
}

// Alerts returns all alerts that are not resolved, the newest first, and then the latest
// resolved ones since a time, at most 200.
func (s *Store) Alerts(ctx context.Context, resolvedSince time.Time) (open, resolved []Alert, err error) {
	err = s.read(ctx, "list alerts", func(t *tx) (err error) {
		if open, err = list(t, (*Alert).row, "SELECT "+alertColumns+" FROM alerts WHERE resolved = 0 ORDER BY fired DESC, id"); err != nil {
			return err
		}
		resolved, err = list(t, (*Alert).row, "SELECT "+alertColumns+" FROM alerts WHERE resolved > 0 AND resolved >= ? ORDER BY resolved DESC, id LIMIT ?", toMillis(resolvedSince), maxResolvedAlerts)
		return err
	})
	return open, resolved, err
}

// AddSilence records a silence. Each replica may, so that no term is necessary.
func (s *Store) AddSilence(ctx context.Context, n Silence) error {
	return s.writeAny(ctx, "add a silence", func(t *tx) error {
		return t.insert("silences ("+silenceColumns+")", [][]any{n.row()}, "ON CONFLICT (id) DO NOTHING", nil)
	})
}

// EndSilence ends a silence at a time, unless it ended before.
func (s *Store) EndSilence(ctx context.Context, id string, at time.Time) error {
	return s.writeAny(ctx, "end a silence", func(t *tx) error {
		return t.exec("UPDATE silences SET until = ? WHERE id = ? AND until > ?", toMillis(at), id, toMillis(at))
	})
}

// Silences returns the silences that end after a time, those that end first before the
// others.
func (s *Store) Silences(ctx context.Context, after time.Time) ([]Silence, error) {
	return readList(ctx, s, "list silences", (*Silence).row, "SELECT "+silenceColumns+" FROM silences WHERE until > ? ORDER BY until, id", toMillis(after))
}

// forgetAlerts deletes resolved alerts, silences and deliveries that are older than a time.
func (t *tx) forgetAlerts(old int64) error {
	for _, query := range []string{
		"DELETE FROM alerts WHERE resolved > 0 AND resolved < ?",
		"DELETE FROM silences WHERE until < ?",
		"DELETE FROM deliveries WHERE due = 0 AND created < ?",
	} {
		if err := t.exec(query, old); err != nil {
			return err
		}
	}
	return t.exec("DELETE FROM notified WHERE NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.id = notified.alert)")
}

// Notified is that a receiver got an alert that fires, or its end.
type Notified struct {
	Alert, Receiver string
	Resolved        bool
}

// Delivery is one message to a receiver.
type Delivery struct {
	ID, Receiver string
	Message      string // JSON
	Created      time.Time
	Attempts     int
	Due          time.Time // of the next attempt; zero for none
	Delivered    time.Time // zero if it was not
	Error        string    // of the last attempt
}

// DeliveryQuery selects deliveries: of each receiver the oldest that is due before a time, so
// that one that is down delays no other, or else those that were created since a time, the
// latest first.
type DeliveryQuery struct {
	DueBefore, Since time.Time
}

// maxDeliveries bounds how many deliveries are read.
const maxDeliveries = 100

const deliveryColumns = "id, receiver, message, created, attempts, due, delivered, error"

// row returns the fields of deliveryColumns.
func (d *Delivery) row() []any {
	return []any{&d.ID, &d.Receiver, textColumn(&d.Message), timeColumn(&d.Created), &d.Attempts, timeColumn(&d.Due), timeColumn(&d.Delivered), textColumn(&d.Error)}
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Notified returns what all receivers know of alerts: of one that is resolved, both that
// it fired and its end.
func (s *Store) Notified(ctx context.Context) (found []Notified, err error) {
	err = s.read(ctx, "list notified receivers", func(t *tx) error {
		found = nil
		return t.query("SELECT alert, receiver, resolved FROM notified", nil, func(scan scanFunc) error {
			var n Notified
			var resolved int64
			err := scan(&n.Alert, &n.Receiver, &resolved)
			found = append(found, n)
			if resolved == 1 {
				n.Resolved = true
				found = append(found, n)
			}
			return err
		})
	})
	return found, err
}

// AddDelivery records a message that is to be sent, and what its receiver knows then. Each
// replica may, so that a test needs no term.
func (s *Store) AddDelivery(ctx context.Context, d Delivery, of []Notified) error {
	rows := make([][]any, 0, len(of))
	for _, n := range of {
		rows = append(rows, []any{n.Alert, n.Receiver, bit(n.Resolved)})
	}
	write := s.writeAny
	if len(of) > 0 {
		write = s.write
	}
	return write(ctx, "add a delivery", func(t *tx) error {
		if err := t.insert("notified (alert, receiver, resolved)", rows, "ON CONFLICT (alert, receiver) DO UPDATE SET resolved = excluded.resolved", nil); err != nil {
			return err
		}
		return t.insert("deliveries ("+deliveryColumns+")", [][]any{d.row()}, "", nil)
	})
}

// SaveDelivery records the outcome of an attempt.
func (s *Store) SaveDelivery(ctx context.Context, d Delivery) error {
	return s.write(ctx, "save a delivery", func(t *tx) error {
		return t.exec("UPDATE deliveries SET attempts = ?, due = ?, delivered = ?, error = ? WHERE id = ?", d.Attempts, toMillis(d.Due), toMillis(d.Delivered), sanitize(d.Error), d.ID)
	})
}

// Deliveries returns the deliveries that q selects, at most 100: notices to people only where they are due.
func (s *Store) Deliveries(ctx context.Context, q DeliveryQuery) ([]Delivery, error) {
	query, arg := "deliveries WHERE created >= ? AND receiver NOT LIKE '%/notices' ORDER BY created DESC, id", toMillis(q.Since)
	if !q.DueBefore.IsZero() {
		query, arg = "(SELECT "+deliveryColumns+", ROW_NUMBER() OVER (PARTITION BY receiver ORDER BY created, id) AS nth FROM deliveries WHERE due > 0 AND due <= ?) AS d WHERE nth = 1 ORDER BY created, id", toMillis(q.DueBefore)
	}
	return readList(ctx, s, "list deliveries", (*Delivery).row, "SELECT "+deliveryColumns+" FROM "+query+" LIMIT ?", arg, maxDeliveries)
}
