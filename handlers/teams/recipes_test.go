package teams_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/submit/recipes"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// Recipes are listed with the templates of a team, and each opens the form with its values. What
// the address says too comes over them.
func TestRecipes(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/teams/vision/templates")
	htmlcheck.Page(t, page)
	for _, r := range recipes.All {
		row := page.Find(`#recipes-table a[href="/teams/vision/submit?recipe=` + r.Name + `"]`).Closest("tr")
		if text := handlerstest.Text(row); !strings.Contains(text, r.Title) || strings.Contains(text, "Not run") != (r.NotRun != "") {
			t.Errorf("%s is listed as %q", r.Name, text)
		}
		_, form := handlerstest.Get(t, address+"/teams/vision/submit?recipe="+r.Name)
		htmlcheck.Page(t, form)
		if wrong := handlerstest.Text(form.Find("#form-errors")); wrong != "" {
			t.Errorf("%s has errors: %s", r.Name, wrong)
		}
	}
	_, form := handlerstest.Get(t, address+"/teams/vision/submit?recipe=vision-model&name=mine&image=train:1")
	for input, want := range map[string]string{"name": "mine", "image": "train:1", "sizes": "1, 2, 4, 8", "accelerators": "", "pods": "1"} {
		if got := form.Find("#"+input).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", input, got, want)
		}
	}
	if script := form.Find("#script").Text(); !strings.Contains(script, "cat >train.py") || !strings.Contains(script, "import loop") {
		t.Errorf("the script is %.200s", script)
	}
	for selector, want := range map[string]string{"#scale": "8 MICRO_BATCH=8", "#env": "EPOCHS=1", "#volumes": "/data=checkpoints"} {
		if got := form.Find(selector).Text(); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", selector, got, want)
		}
	}
	if _, large := handlerstest.Get(t, address+"/teams/vision/submit?recipe=gpt-oss-20b"); large.Find("#accelerators").AttrOr("value", "") != "8" {
		t.Error("a large model has not the GPUs of a node")
	}
	response, unknown := handlerstest.Get(t, address+"/teams/vision/submit?recipe=none")
	if text := handlerstest.Text(unknown.Find("main")); response.StatusCode != http.StatusNotFound || !strings.Contains(text, "vision-model") {
		t.Errorf("an unknown recipe: %s, %s", response.Status, text)
	}
}
