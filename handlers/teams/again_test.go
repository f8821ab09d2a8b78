package teams_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// A task that is submitted again fills the form. What the form cannot express leads to the
// page with its manifest, and a task that cannot be submitted there has its reasons.
func TestSubmitAgain(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/again?kind=Job&name=train&uid=1"
	response, page := handlerstest.Get(t, address)
	if response.StatusCode != http.StatusNotFound || !strings.Contains(page.Find("main").Text(), "There is no Job train.") {
		t.Errorf("a deleted task answers %s", response.Status)
	}
	team, err := d.SubmitBackend.Team(t.Context(), governance.User{}, "vision")
	if err != nil {
		t.Fatal(err)
	}
	plan, wrong := team.Complete(submit.Request{Name: "train-2", Pool: "ml.p5.48xlarge", Pods: 3, Class: "training-priority", Image: "example.com/a:1", Script: "echo again\n"})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	manifest, err := plan.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	d.SubmitBackend.Manifest = manifest.Text
	response, page = handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	for name, want := range map[string]string{"#name": "train-2", "#pods": "3", "#image": "example.com/a:1"} {
		if got := page.Find(name).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	_, fewer := handlerstest.Get(t, address+"&pods=2")
	if got := fewer.Find("#pods").AttrOr("value", ""); got != "2" {
		t.Errorf("with pods=2: got %q pods", got)
	}
	if got := page.Find("#script").Text(); response.StatusCode != http.StatusOK || strings.TrimSpace(got) != "echo again" {
		t.Errorf("%s, and the script is %q", response.Status, got)
	}
	if got := page.Find("[name=request-id]").AttrOr("value", ""); got == "" {
		t.Error("the form has no ID: a second one with other values would count as the same task")
	}

	d.SubmitBackend.Manifest = strings.Replace(manifest.Text, "restartPolicy:", "hostname: here\n      restartPolicy:", 1)
	response, page = handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	if got := page.Find("#manifest-missed").Text(); response.StatusCode != http.StatusOK || !strings.Contains(got, "spec.template.spec.hostname") || !strings.Contains(page.Find("#text").Text(), "hostname: here") {
		t.Errorf("%s, and the form misses %q", response.Status, got)
	}
	_, fewer = handlerstest.Get(t, address+"&pods=1")
	if got := fewer.Find("#text").Text(); !strings.Contains(got, "completions: 1\n  parallelism: 1\n") || !strings.Contains(got, "echo again") {
		t.Errorf("with pods=1 the manifest that no form can express is %s", got)
	}
	d.SubmitBackend.Manifest = strings.Replace(manifest.Text, "training-priority", "none", 1)
	response, page = handlerstest.Get(t, address)
	if got := page.Find("#manifest-wrong").Text(); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "there is no priority class none") {
		t.Errorf("%s, and wrong is %q", response.Status, got)
	}
}
