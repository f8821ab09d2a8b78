package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
)

// TestSubmit submits a task of each kind as a member: it is listed at once and admitted, the
// same form sent again finds it, and another form of its name is refused.
func TestSubmit(t *testing.T) {
	of := newTeam(t)
	to, err := of.submit.Team(t.Context(), of.member, of.name)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []submit.Kind{submit.Job, submit.PyTorchJob, submit.RayJob, submit.JobSet, submit.ElasticJob} {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == string(one) }) && one != submit.Job && one != submit.ElasticJob {
			continue // its operator does not run
		}
		t.Run(string(one), func(t *testing.T) {
			r := plan(t, to, 1, one == submit.ElasticJob).Request
			r.Name, r.Kind, r.TimeLimit = "of-a-"+strings.ToLower(string(one)), one, 3600
			for _, form := range []string{"once", "once"} { // the response can be lost
				done, err := of.submit.Submit(t.Context(), of.member, to, r, form)
				if err != nil || done.Kind != one || !done.Listed {
					t.Fatalf("got %+v, %v, want a %s that is listed", done, err, one)
				}
			}
			if _, err := of.submit.Submit(t.Context(), of.member, to, r, "another"); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "name: there is a "+string(one)) {
				t.Errorf("another form of its name: got %v, want an error at name", err)
			}
			if one != submit.ElasticJob { // whose controller does not run here
				of.is(t, kind{name: string(one)}, r.Name, tasks.Running, nil)
			}
			if err := of.actions.Delete(t.Context(), of.member, of.at(kind{name: string(one)}, r.Name)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
