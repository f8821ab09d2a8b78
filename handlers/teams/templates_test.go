package teams_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// A member saves the task of the form as a template, submits it later, and deletes it. What
// is refused loses nothing.
func TestTemplates(t *testing.T) {
	d := &handlerstest.Backend{}
	server := handlerstest.Serve(t, d)
	address := server + "/teams/vision/templates"
	_, page := handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	if got := page.Find("#templates").Text(); !strings.Contains(got, "No templates") {
		t.Errorf("got %q without templates", got)
	}
	form := url.Values{
		"action": {"template"}, "request-id": {"1"}, "kind": {"Job"}, "name": {"train"}, "pool": {"ml.p5.48xlarge"}, "class": {"training-priority"}, "pods": {"2"}, "image": {"example.com/a:1"}, "script": {"echo 1\n"},
	}
	response, page := post(t, address, form)
	htmlcheck.Page(t, page)
	text := page.Find("[name=text]").AttrOr("value", "")
	if response.StatusCode != http.StatusOK || page.Find("#template").AttrOr("value", "") != "train" || !strings.Contains(text, "echo 1") || len(d.SubmitBackend.Saved) != 0 {
		t.Fatalf("%s, %v was saved, and the text is %q", response.Status, d.SubmitBackend.Saved, text)
	}
	save := url.Values{"action": {"keep"}, "text": {text}, "template": {" nightly "}}
	d.SubmitBackend.Failure = &governance.Error{Kind: governance.Invalid, Message: "The template was not saved.", Fields: []governance.FieldError{{Path: "name", Message: "there is a template nightly already"}}}
	response, page = post(t, address, save)
	htmlcheck.Page(t, page)
	if got := page.Find("#template-error").Text(); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "There is a template nightly already") || page.Find("[name=text]").AttrOr("value", "") != text {
		t.Errorf("%s with %q", response.Status, got)
	}
	d.SubmitBackend.Failure = nil
	if response, _ = post(t, address, save); response.Header.Get("Location") != "/teams/vision/templates?saved=nightly" || d.SubmitBackend.Saved["nightly"] != text {
		t.Errorf("%s to %q", response.Status, response.Header.Get("Location"))
	}
	_, page = handlerstest.Get(t, address+"?saved=nightly")
	htmlcheck.Page(t, page)
	_, page = handlerstest.Get(t, server+page.Find("#template-nightly a").AttrOr("href", ""))
	if got := page.Find("#name").AttrOr("value", "") + " " + page.Find("#pods").AttrOr("value", ""); got != "train 2" || strings.TrimSpace(page.Find("#script").Text()) != "echo 1" {
		t.Errorf("the form of the template has %q", got)
	}
	if response, _ = post(t, address, url.Values{"action": {"delete"}, "template": {"nightly"}}); response.StatusCode != http.StatusSeeOther || len(d.SubmitBackend.Saved) != 0 {
		t.Errorf("%s, and %v is left", response.Status, d.SubmitBackend.Saved)
	}
	form.Set("pods", "none")
	response, page = post(t, address, form)
	htmlcheck.Page(t, page)
	if response.StatusCode != http.StatusUnprocessableEntity || page.Find("#pods-error").Length() == 0 || page.Find("#name").AttrOr("value", "") != "train" {
		t.Errorf("an invalid form answers %s", response.Status)
	}
	response, page = post(t, address, url.Values{"action": {"keep"}, "text": {"kind: Job"}, "template": {"a"}})
	if response.StatusCode != http.StatusUnprocessableEntity || page.Find("#text").Length() == 0 || len(d.SubmitBackend.Saved) != 0 {
		t.Errorf("a text without a task answers %s", response.Status)
	}
	d.SubmitBackend.Reader = true
	if response, _ = handlerstest.Get(t, address); response.StatusCode != http.StatusForbidden {
		t.Errorf("a reader gets %s", response.Status)
	}
}
