package alerts

import (
	stdcmp "cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// testThresholds let quota be idle for as short a time as is saved.
var testThresholds = func() Thresholds {
	t := Defaults
	t.QuotaIdle = savedPending
	return t
}()

// span is one alert by the simple rule of reference: from when it fired until it was
// resolved.
type span struct {
	Rule, Subject   string
	Fired, Resolved time.Time
}

// reference computes alerts from all that a rule found at each step, without states: a
// run of findings, in which settleTime without any is no end, fires once it is as long as
// the rule requires.
func reference(rule Rule, subject string, steps []time.Time, found, complete []bool) (spans []span) {
	description, _ := Describe(rule)
	pendingFor := description.For(testThresholds)
	for i := 0; i < len(steps); i++ {
		if !found[i] {
			continue
		}
		began, fired, last := steps[i], time.Time{}, steps[i]
		var resolved time.Time
		for ; i < len(steps); i++ {
			switch {
			case found[i]:
				if last = steps[i]; fired.IsZero() && last.Sub(began) >= pendingFor {
					fired = last
				}
				continue
			case !complete[i]:
				last = steps[i]
				continue
			case !fired.IsZero() && steps[i].Sub(last) < settleTime:
				continue
			case !fired.IsZero():
				resolved = steps[i]
			}
			break
		}
		if !fired.IsZero() {
			spans = append(spans, span{string(rule), subject, fired, resolved})
		}
	}
	return spans
}

// TestMachine compares the machine, which is restarted at random moments from what it
// saved, with a reference on random findings. An alert fires once for each of the
// reference's, and no restart repeats one.
func TestMachine(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		rules := []Rule{PreemptionLoop, QuotaIdle}
		saved := map[string]history.Alert{}
		m := newMachine(nil, start)
		type line struct{ found, complete []bool }
		lines := map[Rule]*line{}
		for _, rule := range rules {
			lines[rule] = &line{}
		}
		var steps []time.Time
		now := start
		restarts := r.IntN(2) == 0
		for range 60 {
			now = now.Add(time.Duration(1+r.IntN(40)) * 5 * time.Second)
			if r.IntN(3) > 0 {
				now = now.Add(-now.Sub(start) % time.Second)
			}
			steps = append(steps, now)
			complete := map[Rule]bool{}
			var findings []Finding
			for _, rule := range rules {
				l := lines[rule]
				complete[rule] = r.IntN(5) > 0
				found := r.IntN(4) > 0
				if len(l.found) > 0 && r.IntN(3) > 0 {
					found = l.found[len(l.found)-1]
				}
				if found {
					findings = append(findings, Finding{Rule: rule, Subject: "a", Summary: fmt.Sprint(r.IntN(3))})
				}
				l.found, l.complete = append(l.found, found), append(l.complete, complete[rule])
			}
			changed, dropped := m.step(now, testThresholds, complete, findings)
			for _, a := range changed {
				if before := saved[a.ID]; !before.Resolved.IsZero() {
					t.Fatalf("seed %d: alert %s changes after it was resolved", seed, a.ID)
				}
				saved[a.ID] = a
			}
			for _, id := range dropped {
				if !saved[id].Fired.IsZero() {
					t.Fatalf("seed %d: an alert that fired is dropped", seed)
				}
				delete(saved, id)
			}
			if restarts && r.IntN(6) == 0 {
				var open []history.Alert
				for _, a := range saved {
					if a.Resolved.IsZero() {
						open = append(open, a)
					}
				}
				m = newMachine(open, now)
				for _, rule := range rules { // as if it were found at the restart, if it is open
					l := lines[rule]
					if slices.ContainsFunc(open, func(a history.Alert) bool { return a.Rule == string(rule) }) {
						last := len(l.found) - 1
						l.complete[last] = l.complete[last] && l.found[last]
					}
				}
			}
		}
		var want, got []span
		for _, rule := range rules {
			l := lines[rule]
			want = append(want, reference(rule, "a", steps, l.found, l.complete)...)
		}
		for _, a := range saved {
			if !a.Fired.IsZero() {
				got = append(got, span{a.Rule, a.Subject, a.Fired, a.Resolved})
			}
		}
		order := func(a, b span) int { return stdcmp.Or(a.Fired.Compare(b.Fired), strings.Compare(a.Rule, b.Rule)) }
		slices.SortFunc(want, order)
		slices.SortFunc(got, order)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, restarts %t (-want +got):\n%s", seed, restarts, diff)
		}
	}
}
