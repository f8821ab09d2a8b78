package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/labstack/echo/v4"
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

// Excel reads UTF-8 only after a byte order mark.
func TestByteOrderMark(t *testing.T) {
	for query, want := range map[string]string{"": "team\nGrün\n", "?bom=1": "\ufeffteam\nGrün\n", "?bom=0": "team\nGrün\n"} {
		file, stream := httptest.NewRecorder(), httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "/x.csv"+query, nil)
		if err := console.CSVFile(echo.New().NewContext(request, file), "x", [][]string{{"team"}, {"Grün"}}); err != nil || file.Body.String() != want {
			t.Errorf("%q: got %q, %v", query, file.Body, err)
		}
		batches := [][][]string{{{"Grün"}}, nil}
		err := console.CSVStream(echo.New().NewContext(request, deadlines{stream}), "x", []string{"team"}, func() ([][]string, error) {
			next := batches[0]
			batches = batches[1:]
			return next, nil
		})
		if err != nil || stream.Body.String() != want {
			t.Errorf("%q: the stream has %q, %v", query, stream.Body, err)
		}
	}
}

// deadlines is a response that accepts deadlines.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }
