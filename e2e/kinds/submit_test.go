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
			of.triesPods(t, to, r, one)
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

// triesPods checks that the manifest of a kind is accepted by a dry run, that a pod which the
// API server does not check in it is reported with its path, and that nothing is created.
func (of team) triesPods(t *testing.T, to submit.Team, r submit.Request, one submit.Kind) {
	t.Helper()
	if one == submit.ElasticJob {
		return
	}
	r.Name, r.Kind = "tried", one
	p, wrong := to.Complete(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	m, err := p.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		m.Text: "",
		strings.Replace(m.Text, "image: example.com/train:1", "image: example.com/train:1\n"+indentOf(m.Text)+"volumeMounts: [{name: missing, mountPath: /a}]", 1): "spec.containers[0].volumeMounts[0].name",
		strings.Replace(m.Text, "spec:\n", "spec:\n  noSuchField: 1\n", 1):                                                                                         "spec.noSuchField",
	} {
		source, wrong := submit.ReadSource([]byte(text))
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		p, _, wrong := to.PlanSource(source)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		err := of.submit.Try(t.Context(), of.member, p)
		if want == "" && err != nil || want != "" && (governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q of\n%s", err, want, text)
		}
	}
	if out, err := of.TryKubectl("", "get", strings.ToLower(string(one)), "tried", "-n", of.namespace); err == nil {
		t.Errorf("a dry run created %s", out)
	}
}

// indentOf returns the indentation of the image of the first container.
func indentOf(text string) string {
	before, _, _ := strings.Cut(text, "image: ")
	line := before[strings.LastIndex(before, "\n")+1:]
	return strings.Repeat(" ", len(line))
}
