package console_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func TestTroubleIsOnEveryPage(t *testing.T) {
	d := &handlerstest.Backend{Trouble: "Kueue is not installed in this cluster."}
	address := handlerstest.Serve(t, d)
	for _, path := range []string{"/tasks", "/policies", "/settings", "/policies/cluster/edit", "/nowhere"} {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		if text := page.Find("#trouble").Text(); !strings.Contains(text, d.Trouble) {
			t.Errorf("%s shows %q", path, text)
		}
		if links := page.Find(`#trouble a[href="/settings"]`).Length(); links != 1 {
			t.Errorf("%s has %d links to the settings", path, links)
		}
	}
}

// A read-only console offers and opens no form, and refuses sent forms with the
// reason.
func TestReadOnly(t *testing.T) {
	d := &handlerstest.Backend{ReadOnly: "HyperPod's own task governance runs this cluster."}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies")
	if page.Find(`a[href$="/edit"], a[href$="/new"], a[href$="/delete"]`).Length() != 0 || !strings.Contains(page.Find("#trouble").Text(), d.ReadOnly) {
		t.Errorf("the page offers a form, or does not say why not: %q", page.Find("main").Text())
	}
	response, page := handlerstest.Post(t, address+handlerstest.NewURL, handlerstest.AllocationForm())
	if response.StatusCode != http.StatusForbidden || !strings.Contains(page.Find(".lead").Text(), d.ReadOnly) || len(d.Created) != 0 {
		t.Errorf("a save is answered %s: %q", response.Status, page.Find("main").Text())
	}
	if response, _ := handlerstest.Get(t, address+"/policies/cluster/edit"); response.StatusCode != http.StatusForbidden {
		t.Errorf("a form is answered %s", response.Status)
	}
}
