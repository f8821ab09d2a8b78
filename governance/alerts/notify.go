package alerts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"
)

const (
	// groupInterval is the shortest time between two messages to one receiver: what fires
	// in between is one message. An alert that is more severe than those of the last message
	// does not wait.
	groupInterval = time.Minute
	sendInterval  = time.Second
	// A delivery that fails is tried again after firstRetry, twice that, and so on up to
	// longestRetry, for at most maxAttempts.
	firstRetry   = 5 * time.Second
	longestRetry = 10 * time.Minute
	maxAttempts  = 20
	// notifyResolved is how long after its end a receiver learns of a resolved alert.
	notifyResolved = 24 * time.Hour
	maxInMessage   = 500
)

// Message is what a receiver gets.
type Message struct {
	ID     string      `json:"id"` // of the delivery: the same when it is sent again
	Test   bool        `json:"test,omitempty"`
	Alerts []SentAlert `json:"alerts"`
	More   int         `json:"more,omitempty"` // alerts that are left out

	// Of a notice to a person, which has no alerts. While it waits, Person is what Persons
	// knows them by.
	Person string       `json:"person,omitempty"`
	Tasks  []TaskNotice `json:"tasks,omitempty"`
}

// TaskNotice is what happened to some tasks of a person.
type TaskNotice struct {
	Event     string   `json:"event"` // start, end, fail or preempt
	Team      string   `json:"team,omitempty"`
	Namespace string   `json:"namespace"`
	Count     int      `json:"count"`
	Names     []string `json:"names"` // of the first ones
}

// SentAlert is one alert of a Message.
type SentAlert struct {
	ID       string     `json:"id"`
	Rule     string     `json:"rule"`
	Title    string     `json:"title"`
	Severity Severity   `json:"severity"`
	State    string     `json:"state"` // firing or resolved
	Team     string     `json:"team,omitempty"`
	Of       string     `json:"department,omitempty"`
	Summary  string     `json:"summary"`
	Since    time.Time  `json:"since"`
	Fired    time.Time  `json:"fired"`
	Resolved *time.Time `json:"resolved,omitempty"`
}

func sent(a Alert) SentAlert {
	s := SentAlert{ID: a.ID, Rule: a.Alert.Rule, Title: a.Title, Severity: a.Severity, State: "firing", Team: a.Team, Of: a.Department(), Summary: a.Summary, Since: a.Since.UTC(), Fired: a.Fired.UTC()}
	if !a.Resolved.IsZero() {
		at := a.Resolved.UTC()
		s.State, s.Resolved = "resolved", &at
	}
	return s
}

// Notices is what receivers know, as history keeps it.
type Notices interface {
	Notified(ctx context.Context) ([]history.Notified, error)
	AddDelivery(ctx context.Context, d history.Delivery, of []history.Notified) error
	Deliveries(ctx context.Context, q history.DeliveryQuery) ([]history.Delivery, error)
	SaveDelivery(ctx context.Context, d history.Delivery) error
	DropDelivery(ctx context.Context, id string) error
}

// Persons addresses notices to people.
type Persons interface {
	// Address returns a receiver and a message with the name and the address of the person,
	// and without what they may not see; ErrUnwanted for nothing.
	Address(ctx context.Context, to v1alpha1.AlertReceiver, m Message) (v1alpha1.AlertReceiver, Message, error)
}

// ErrUnwanted is the error of a notice that the person does not want any more, or may not get.
var ErrUnwanted = errors.New("the notice is not wanted any more")

// personal ends the queue of notices to a receiver. No receiver has such a name, so that
// notices delay no alerts.
const personal = "/notices"

// noticeKept is for how long a notice that cannot be delivered is sent again.
const noticeKept = time.Hour

// PersonalQueue returns the Receiver of deliveries that are notices.
func PersonalQueue(receiver string) string { return receiver + personal }

// PartlyError is the error of a Sender that delivered a message, but not to all addresses of
// the receiver. It is not sent again.
type PartlyError string

func (e PartlyError) Error() string { return string(e) }

// Sender sends a message to a receiver once.
type Sender interface {
	Send(ctx context.Context, to v1alpha1.AlertReceiver, m Message) error
	// Prepare reads what it needs to send while the API server is away.
	Prepare(ctx context.Context, receivers []v1alpha1.AlertReceiver)
}

// notifier decides which receiver gets which alerts while this replica is the last that led.
type notifier struct {
	known map[history.Notified]bool
	last  map[string]lastMessage // by receiver
}

// lastMessage is when a message was made, and the most severe alert that fires in it; empty
// for none.
type lastMessage struct {
	at       time.Time
	severity Severity
}

// mostSevere returns the severity of the most severe alert that fires.
func (m *Message) mostSevere() (most Severity) {
	for _, a := range m.Alerts {
		if a.State == "firing" && severities[a.Severity] > severities[most] {
			most = a.Severity
		}
	}
	return most
}

// wants reports whether a receiver gets an alert.
func wants(r v1alpha1.AlertReceiver, a Alert) bool {
	return r.Notices != v1alpha1.OnlyNotices && (r.Team == "" || r.Team == a.Team) && (r.Department == "" || slices.Contains(a.Departments, r.Department)) && (r.Severity == "" || severities[a.Severity] >= severities[Severity(r.Severity)])
}

// severities are ordered.
var severities = map[Severity]int{Info: 1, Warning: 2, Critical: 3}

// plan returns the message that a receiver gets now, and what it knows afterwards; no
// alerts for none.
func (n *notifier) plan(now time.Time, to v1alpha1.AlertReceiver, list []Alert) (m Message, learns []history.Notified) {
	receiver := to.Name
	last := n.last[receiver]
	waits := now.Sub(last.at) < groupInterval
	for _, a := range list {
		if !wants(to, a) {
			continue
		}
		firing := history.Notified{Alert: a.ID, Receiver: receiver}
		ended := firing
		ended.Resolved = true
		switch over := !a.Resolved.IsZero(); {
		case over && (!n.known[firing] || n.known[ended] || now.Sub(a.Resolved) > notifyResolved):
			continue
		case over:
			learns = append(learns, ended)
		case n.known[firing] || a.Silence != nil:
			continue
		default:
			learns = append(learns, firing)
			waits = waits && severities[a.Severity] <= severities[last.severity]
		}
		m.Alerts = append(m.Alerts, sent(a))
	}
	if waits {
		return Message{}, nil
	}
	if m.More = max(0, len(m.Alerts)-maxInMessage); m.More > 0 {
		slices.SortStableFunc(m.Alerts, func(a, b SentAlert) int { return severities[b.Severity] - severities[a.Severity] })
		m.Alerts = m.Alerts[:maxInMessage]
	}
	m.ID = rand.Text()
	return m, learns
}

// beginNotifying continues with what receivers know.
func (s *Service) beginNotifying(ctx context.Context) error {
	n := &notifier{known: map[history.Notified]bool{}, last: map[string]lastMessage{}}
	if s.Sender != nil {
		known, err := s.Notices.Notified(ctx)
		if err != nil {
			return err
		}
		for _, one := range known {
			n.known[one] = true
		}
		latest, err := s.Notices.Deliveries(ctx, history.DeliveryQuery{Since: s.Now().Add(-groupInterval)})
		if err != nil {
			return err
		}
		for _, d := range latest {
			if d.Created.After(n.last[d.Receiver].at) {
				var m Message
				_ = json.Unmarshal([]byte(d.Message), &m) // of another version at worst
				n.last[d.Receiver] = lastMessage{d.Created, m.mostSevere()}
			}
		}
	}
	s.notifying.Lock()
	defer s.notifying.Unlock()
	s.notifier = n
	return nil
}

// notify enqueues messages about alerts: those that fire, and those that were resolved. It
// does nothing unless this replica was the last that led, as far as it knows. A message that
// cannot be enqueued delays those to no other receiver.
func (s *Service) notify(ctx context.Context, receivers []v1alpha1.AlertReceiver, list []Alert) (failed error) {
	s.notifying.Lock()
	defer s.notifying.Unlock()
	n := s.notifier
	if s.Sender == nil || n == nil {
		return nil
	}
	now := s.Now()
	for _, r := range receivers {
		m, learns := n.plan(now, r, list)
		if len(learns) == 0 {
			continue
		}
		if err := s.enqueue(ctx, r.Name, m, learns); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		n.last[r.Name] = lastMessage{now, m.mostSevere()}
		for _, one := range learns {
			n.known[one] = true
		}
	}
	return failed
}

func (s *Service) enqueue(ctx context.Context, receiver string, m Message, learns []history.Notified) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	now := s.Now()
	return s.Notices.AddDelivery(ctx, history.Delivery{ID: m.ID, Receiver: receiver, Message: string(text), Created: now, Due: now}, learns)
}

// send sends what is due, until ctx ends: to each receiver one message at a time, so
// that one that is slow delays no other. The next notice follows at once, of which there can be
// many. fence fails once another replica leads, which sends
// the same.
func (s *Service) send(ctx context.Context, fence func(context.Context) error) {
	ticker := time.NewTicker(sendInterval)
	defer ticker.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	var mu sync.Mutex
	busy := map[string]bool{}
	sent := make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-sent:
		}
		due, err := s.Notices.Deliveries(ctx, history.DeliveryQuery{DueBefore: s.Now()})
		if err != nil {
			continue // it is logged where alerts are saved
		}
		if len(due) > 0 && fence(ctx) != nil {
			continue
		}
		receivers := s.receivers(ctx)
		mu.Lock()
		for _, d := range due {
			if busy[d.Receiver] {
				continue
			}
			busy[d.Receiver] = true
			group.Go(func() {
				done := s.attempt(ctx, receivers, d)
				mu.Lock()
				delete(busy, d.Receiver)
				mu.Unlock()
				if done {
					select {
					case sent <- struct{}{}:
					default:
					}
				}
			})
		}
		mu.Unlock()
	}
}

// attempt sends a delivery once and records the outcome. It reports whether it was a notice
// that is done.
func (s *Service) attempt(ctx context.Context, receivers []v1alpha1.AlertReceiver, d history.Delivery) bool {
	name, notice := strings.CutSuffix(d.Receiver, personal)
	i := slices.IndexFunc(receivers, func(r v1alpha1.AlertReceiver) bool { return r.Name == name })
	var m Message
	d.Attempts++
	switch err := json.Unmarshal([]byte(d.Message), &m); {
	case err != nil:
		d.Error, d.Due = "the message cannot be read", time.Time{}
	case i < 0:
		d.Error, d.Due = "the policy has no such receiver any more", time.Time{}
	default:
		to := receivers[i]
		if notice {
			to, m, err = s.address(ctx, to, m)
		}
		if err == nil {
			err = s.Sender.Send(ctx, to, m)
		}
		if ctx.Err() != nil {
			return false // the next leader sends it again
		}
		now := s.Now()
		var partly PartlyError
		switch {
		case notice && (err == nil || errors.Is(err, ErrUnwanted) || now.Sub(d.Created) > noticeKept):
			return s.recorded(ctx, d, s.Notices.DropDelivery(ctx, d.ID))
		case err == nil, errors.As(err, &partly):
			d.Delivered, d.Due, d.Error = now, time.Time{}, string(partly)
		default:
			d.Error, d.Due = err.Error(), now.Add(retryAfter(d.Attempts))
			if d.Attempts >= maxAttempts {
				d.Due = time.Time{}
			}
		}
	}
	s.recorded(ctx, d, s.Notices.SaveDelivery(ctx, d))
	return false
}

// recorded logs that the outcome of an attempt is not recorded, and reports whether it is.
func (s *Service) recorded(ctx context.Context, d history.Delivery, err error) bool {
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("the outcome of a delivery is not saved; it is sent again", "receiver", d.Receiver, "error", err)
	}
	return err == nil
}

// address addresses a notice to its person.
func (s *Service) address(ctx context.Context, to v1alpha1.AlertReceiver, m Message) (v1alpha1.AlertReceiver, Message, error) {
	if s.Persons == nil {
		return to, m, ErrUnwanted
	}
	return s.Persons.Address(ctx, to, m)
}

func retryAfter(attempts int) time.Duration {
	return min(firstRetry<<min(attempts-1, 10), longestRetry)
}

func (s *Service) receivers(ctx context.Context) []v1alpha1.AlertReceiver {
	settings, err := s.policy(ctx)
	if err != nil || settings == nil {
		return nil
	}
	return settings.Receivers
}

// Test sends a test message to a receiver of the policy.
func (s *Service) Test(ctx context.Context, user governance.User, receiver string) error {
	if err := s.allowed(ctx, user); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.receivers(ctx), func(r v1alpha1.AlertReceiver) bool { return r.Name == receiver }) || s.Sender == nil {
		return &governance.Error{Kind: governance.NotFound, Op: "test a receiver", Message: "The cluster policy has no receiver " + strings.TrimSpace(receiver) + " any more."}
	}
	if err := s.enqueue(ctx, receiver, Message{ID: rand.Text(), Test: true, Alerts: []SentAlert{}}, nil); err != nil {
		return unavailable(err)
	}
	return nil
}
