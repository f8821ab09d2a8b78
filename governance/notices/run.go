package notices

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/history"
)

const (
	// interval is how often messages are made: what happens in between is one message.
	interval = time.Minute
	// latest is how long after an event a person hears of it, for example because no replica
	// led.
	latest = 24 * time.Hour
)

// History is the part of history.Store that has the events of tasks.
type History interface {
	TaskEvents(ctx context.Context, persons []string, since time.Time, do func(history.TaskEvent)) (until int64, err error)
	AddNotices(ctx context.Context, list []history.Delivery, until int64) error
}

// Run makes messages while this replica leads, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	s.Leader.Lead(ctx, func(ctx context.Context) {
		for last := int64(-1); ctx.Err() == nil; _ = governance.Sleep(ctx, cmp.Or(s.Interval, interval)) {
			until, err := s.collect(ctx, last)
			switch {
			case errors.Is(err, history.ErrNotLeader):
				return
			case err != nil && ctx.Err() == nil:
				s.Log.Warn("notices to people are not made; retrying", "error", err)
			case err == nil:
				last = until
			}
		}
	})
	return nil
}

// collect makes messages of what history recorded after a step, last if that is known, and
// returns until which one it did.
func (s *Service) collect(ctx context.Context, last int64) (until int64, err error) {
	receivers, err := s.allowed(ctx)
	if err != nil {
		return 0, err
	}
	tree, err := s.Departments(ctx)
	if err != nil {
		return 0, err
	}
	texts, err := s.Store.WithPrefix(ctx, prefix)
	if err != nil {
		return 0, err
	}
	records := map[string]record{}
	var persons []string
	for name, text := range texts {
		r, err := parse(text)
		if err != nil || nameOf(r.Person) != name {
			s.Log.Warn("a record of notices cannot be read and is left out", "name", name)
			continue
		}
		records[r.Person] = r
		persons = append(persons, r.Person)
	}
	slices.Sort(persons)
	happened := map[string]*grouped{}
	now := s.Now()
	until, err = s.History.TaskEvents(ctx, persons, now.Add(-latest), func(e history.TaskEvent) {
		if slices.Contains(records[e.Person].On, eventOf(e)) {
			if happened[e.Person] == nil {
				happened[e.Person] = &grouped{}
			}
			happened[e.Person].add(e)
		}
	})
	if err != nil || until == last {
		return until, err
	}
	var list []history.Delivery
	for _, person := range persons {
		if happened[person] == nil {
			continue
		}
		for _, to := range receivers {
			tasks := of(to, tree, happened[person].sorted())
			if !slices.Contains(records[person].To, to.Name) || len(tasks) == 0 {
				continue
			}
			m := alerts.Message{ID: rand.Text(), Person: nameOf(person), Alerts: []alerts.SentAlert{}, Tasks: tasks}
			text, err := json.Marshal(m)
			if err != nil {
				return 0, err
			}
			list = append(list, history.Delivery{ID: m.ID, Receiver: alerts.PersonalQueue(to.Name), Message: string(text), Created: now, Due: now})
		}
	}
	return until, s.History.AddNotices(ctx, list, until)
}

// of returns what a receiver may get: of its team or its department, if it has one.
func of(to v1alpha1.AlertReceiver, tree quota.Departments, all []alerts.TaskNotice) (list []alerts.TaskNotice) {
	for _, n := range all {
		if (to.Team == "" || to.Team == n.Team) && tree.Includes(to.Department, tree.DepartmentOf(n.Team)) {
			list = append(list, n)
		}
	}
	return list
}

// Address returns the receiver and the message as they are sent: with the name and the address
// of the person, and with what they want and may see now. It returns alerts.ErrUnwanted if
// that is nothing.
func (s *Service) Address(ctx context.Context, to v1alpha1.AlertReceiver, m alerts.Message) (v1alpha1.AlertReceiver, alerts.Message, error) {
	text, _, err := s.Store.Known(ctx, m.Person)
	if err != nil {
		return to, m, err
	}
	r, err := parse(text)
	if err != nil || nameOf(r.Person) != m.Person || to.Notices == "" || !slices.Contains(r.To, to.Name) {
		return to, m, alerts.ErrUnwanted
	}
	to.To = nil
	if to.Type == v1alpha1.EmailReceiver {
		if r.Email == "" {
			return to, m, alerts.ErrUnwanted
		}
		to.To = []string{r.Email}
	}
	m.Person = r.Person
	tree, err := s.Departments(ctx)
	if err != nil {
		return to, m, err
	}
	var tasks []alerts.TaskNotice
	for _, n := range of(to, tree, m.Tasks) {
		sees, err := s.Access.CanSee(ctx, r.user(), n.Namespace)
		if err != nil {
			return to, m, err
		}
		if sees && slices.Contains(r.On, Event(n.Event)) {
			tasks = append(tasks, n)
		}
	}
	if m.Tasks = tasks; len(tasks) == 0 {
		return to, m, alerts.ErrUnwanted
	}
	return to, m, nil
}
