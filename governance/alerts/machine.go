package alerts

import (
	"crypto/rand"
	"time"

	"kuota.dev/kuota/governance/record/history"
)

const (
	// settleTime is for how long a firing alert must not be found before it is resolved,
	// so that what comes and goes is one alert.
	settleTime = 15 * time.Second
	// savedPending is the shortest For of a rule whose pending alerts are saved, so that a
	// restart does not begin again.
	savedPending = 10 * time.Minute
)

// Finding is what a rule finds about one subject now.
type Finding struct {
	Rule            Rule
	Subject         string
	Team, Namespace string    // see history.Alert
	Summary         string    // one sentence
	Since           time.Time // when the cause began; zero for now
}

// key identifies an alert that is not resolved.
type key struct{ rule, subject string }

// machine has the alerts that are not resolved.
type machine struct {
	open map[key]*entry
}

type entry struct {
	history.Alert
	seen time.Time // when it was found last
}

// newMachine returns a machine with the alerts that were open before. They count as found
// now, because nothing is known of the time between.
func newMachine(open []history.Alert, now time.Time) *machine {
	m := &machine{open: map[key]*entry{}}
	for _, a := range open {
		m.open[key{a.Rule, a.Subject}] = &entry{a, now}
	}
	return m
}

// step takes in what the rules find now; complete has those that find everything. It
// returns the alerts to save, and the ids of saved ones that never fired.
func (m *machine) step(now time.Time, t Thresholds, complete map[Rule]bool, findings []Finding) (changed []history.Alert, dropped []string) {
	found := map[key]bool{}
	for _, f := range findings {
		if found[key{string(f.Rule), f.Subject}] {
			continue
		}
		description, _ := Describe(f.Rule)
		pendingFor := description.For(t)
		k := key{string(f.Rule), f.Subject}
		found[k] = true
		e := m.open[k]
		added := e == nil
		if added {
			since := now
			if !f.Since.IsZero() && f.Since.Before(now) {
				since = f.Since
			}
			e = &entry{Alert: history.Alert{ID: rand.Text(), Rule: string(f.Rule), Subject: f.Subject, Team: f.Team, Namespace: f.Namespace, Since: since}}
			m.open[k] = e
		}
		changes := added || e.Summary != f.Summary
		e.seen, e.Summary = now, f.Summary
		if e.Fired.IsZero() && now.Sub(e.Since) >= pendingFor {
			e.Fired, changes = now, true
		}
		if changes && (!e.Fired.IsZero() || pendingFor >= savedPending) {
			changed = append(changed, e.Alert)
		}
	}
	for k, e := range m.open {
		switch {
		case !complete[Rule(k.rule)]:
			e.seen = now
		case found[k]:
		case e.Fired.IsZero():
			if description, _ := Describe(Rule(k.rule)); description.For(t) >= savedPending {
				dropped = append(dropped, e.ID)
			}
			delete(m.open, k)
		case now.Sub(e.seen) >= settleTime:
			e.Resolved = now
			changed = append(changed, e.Alert)
			delete(m.open, k)
		}
	}
	return changed, dropped
}
