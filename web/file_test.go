package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web/webtest"
)

// withFile returns a form with a file, and its content type.
func withFile(t *testing.T, content string) (body, kind string) {
	t.Helper()
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	_ = form.WriteField("a", "typed")
	part, err := form.CreateFormFile("file", "../../x.json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte(content))
	form.Close()
	return out.String(), form.FormDataContentType()
}

// A file in a form is the value of its input, and is kept like other values if the
// session has ended.
func TestFileInAForm(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	body, kind := withFile(t, "<quota> of vision")
	b := c.Browser(t).SignIn()
	if answer := b.Ask(http.MethodPost, "/form", body, "Content-Type", kind); answer.StatusCode != http.StatusOK || c.posts() != 1 {
		t.Fatalf("the answer is %s: %.200s", answer.Status, answer.Text)
	}
	if got := c.saved[0]["file"]; len(got) != 1 || got[0] != "<quota> of vision" || c.saved[0].Get("a") != "typed" {
		t.Errorf("the form is read as %v", c.saved[0])
	}
	long, longKind := withFile(t, strings.Repeat("x", 2<<20))
	if answer := b.Ask(http.MethodPost, "/form", long, "Content-Type", longKind); answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes answer %s", answer.Status)
	}
	if answer := b.Ask(http.MethodPost, "/form", body[:len(body)-40], "Content-Type", kind); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("half a form answers %s", answer.Status)
	}

	b = expired(t, c)
	answer := b.Ask(http.MethodPost, "/form", body, append([]string{"Content-Type", kind}, webtest.Navigation...)...)
	htmlcheck.Page(t, htmlcheck.Parse(t, answer.Text))
	if answer.StatusCode != http.StatusUnauthorized || b.Cookie("kuota-draft") == nil {
		t.Fatalf("the answer is %s, and nothing is kept", answer.Status)
	}
	if back := b.SignIn().Open("/form"); !strings.Contains(back.Text, "file=%3Cquota%3E+of+vision") {
		t.Errorf("it comes back as %s", back.Text)
	}
}
