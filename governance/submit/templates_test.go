package submit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/submit"
)

// A member saves a task with its script as a template, which the members of the team see,
// submits it twice, and deletes it.
func TestTemplates(t *testing.T) {
	t.Parallel()
	w := setup(t, 8)
	plan := w.withScript(t, "nightly", "echo nightly\n")
	manifest, err := plan.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	invalid := func(name, text, want string) {
		t.Helper()
		if err := w.SaveTemplate(t.Context(), w.member, plan.Team, name, text); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
	invalid("", manifest.Text, "give the template a name")
	invalid("Not A Name", manifest.Text, "lower-case letters")
	invalid("large", strings.Repeat("#", 600<<10), "more than 512 KiB")
	if err := w.SaveTemplate(t.Context(), w.member, plan.Team, "nightly", manifest.Text); err != nil {
		t.Fatal(err)
	}
	invalid("nightly", manifest.Text, "there is a template nightly already")
	found, err := w.Templates(t.Context(), w.member, plan.Team)
	if err != nil || len(found) != 1 || found[0].Name != "nightly" || found[0].Kind != "Job" || found[0].Created.IsZero() {
		t.Errorf("got %+v (%v)", found, err)
	}
	eve := governance.User{Name: clustertest.Name("eve")}
	if found, err := w.Templates(t.Context(), eve, plan.Team); err != nil || len(found) != 0 {
		t.Errorf("another person sees %+v (%v)", found, err)
	}
	if _, err := w.FromTemplate(t.Context(), eve, plan.Team, "nightly"); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("another person reads the template: %v", err)
	}
	if err := w.SaveTemplate(t.Context(), eve, plan.Team, "eve", manifest.Text); governance.KindOf(err) != governance.Forbidden {
		t.Errorf("another person saves a template: %v", err)
	}
	for _, want := range []string{"nightly", "nightly-2"} {
		text, err := w.FromTemplate(t.Context(), w.member, plan.Team, "nightly")
		if err != nil {
			t.Fatal(err)
		}
		script, rest := submit.CutScript(text)
		object, _ := submit.ReadSource([]byte(rest))
		if script == nil || object == nil || object.GetName() != want || script.Name != want+"-script" {
			t.Fatalf("want %s with its script, got\n%s", want, text)
		}
		again, changed, wrong := plan.Team.PlanSource(object)
		if len(changed)+len(wrong) > 0 {
			t.Fatal(changed, wrong)
		}
		if again, wrong = again.WithScript(script); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		if _, err := w.SubmitPlan(t.Context(), w.member, again, "form-"+want); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.FromTemplate(t.Context(), w.member, plan.Team, "none"); governance.KindOf(err) != governance.NotFound {
		t.Errorf("a template that does not exist: %v", err)
	}
	for range 2 { // the answer to the first was lost
		if err := w.DeleteTemplate(t.Context(), w.member, plan.Team, "nightly"); err != nil {
			t.Error(err)
		}
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if found, err := w.Templates(ctx, w.member, plan.Team); err != nil || len(found) != 0 {
			return fmt.Errorf("got %+v (%v)", found, err)
		}
		return nil
	})
	for _, want := range []string{"action=create", "action=delete", "kuota-template-nightly"} {
		if !strings.Contains(auditLog.String(), want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}
