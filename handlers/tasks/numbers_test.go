package tasks_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web"
)

// A task with a priority by number shows the number, and gets another one by the page, together with
// others, and by the API.
func TestNumbers(t *testing.T) {
	review := working(tasks.Running)
	review.PriorityClass, review.Numbers = "kuota-priority-42", true
	d := sweep()
	d.ActionsBackend.ReviewResult, d.ActionsBackend.Numbers = review, true
	address := handlerstest.Serve(t, d)
	page := address + "/tasks/ns/job/train/class"
	_, form := handlerstest.Get(t, page)
	htmlcheck.Page(t, form)
	if text := handlerstest.Text(form.Find("main")); !strings.Contains(text, "Job · priority 42") || form.Find("[name=choice]").Length() != 2 || form.Find("#number").Length() != 1 {
		t.Errorf("the page is %s", text)
	}
	many := url.Values{"do": {"class"}, "task": {"ua", "uc"}, "asked": {"true"}}
	for typed, want := range map[string]string{"100": "0 to 99", "x": "whole number"} {
		for at, values := range map[string]url.Values{page: handlerstest.ValuesIn(form, "#action-form"), address + "/tasks/many": many} {
			response, refused := handlerstest.Post(t, at, handlerstest.WithValues(values, "number", typed))
			if text := handlerstest.Text(refused.Find("#number-error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
				t.Errorf("%s at %s: got %s and %q", typed, at, response.Status, text)
			}
			htmlcheck.Page(t, refused)
		}
	}
	response, _ := handlerstest.Post(t, page, handlerstest.WithValues(handlerstest.ValuesIn(form, "#action-form"), "number", "50", "choice", "prod-priority"))
	if done := strings.Join(d.ActionsBackend.Done, ", "); response.StatusCode != http.StatusSeeOther || done != "kuota-priority-50 train u1" {
		t.Errorf("got %s, did %s", response.Status, done)
	}
	d.ActionsBackend.Done = nil
	_, reviewed := handlerstest.Post(t, address+"/tasks/many", handlerstest.WithValues(many, "number", "7"))
	if text := handlerstest.Text(reviewed.Find("main")); !strings.Contains(text, "They get the priority 7.") {
		t.Errorf("many: the review is %s", text)
	}
	response, _ = handlerstest.Post(t, address+"/tasks/many", handlerstest.ValuesIn(reviewed, "#action-form"))
	ended(t, address, response)
	if done := strings.Join(d.ActionsBackend.Done, ", "); !strings.Contains(done, "class kuota-priority-7 a ua") || !strings.Contains(done, "class kuota-priority-7 c uc") {
		t.Errorf("many: did %s", done)
	}

	post := func(class string) int {
		d.ActionsBackend.Done = nil
		response, err := http.Post(address+web.APIPrefix+"/tasks/ns/job/train/class", "application/json", strings.NewReader(`{"class": "`+class+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	for _, class := range []string{"7", "kuota-priority-7"} {
		if status, done := post(class), strings.Join(d.ActionsBackend.Done, ", "); status != http.StatusOK || done != "class kuota-priority-7 train u1" {
			t.Errorf("API with %s: got %d, did %s", class, status, done)
		}
	}
	d.ActionsBackend.ReviewResult.Numbers = false
	for _, class := range []string{"7", "100"} {
		if status := post(class); status != http.StatusUnprocessableEntity || len(d.ActionsBackend.Done) > 0 {
			t.Errorf("API with %s, without numbers: got %d, did %q", class, status, d.ActionsBackend.Done)
		}
	}
}
