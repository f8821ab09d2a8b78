package web_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/signin/signintest"
	"kuota.dev/kuota/web/webtest"

	"github.com/labstack/echo/v4"
)

// addressed registers a form that is answered at the address of its values.
func addressed(server *web.Server) {
	show := func(path string) echo.HandlerFunc {
		return func(c echo.Context) error {
			values, err := server.FormInAddress(c, path)
			if err != nil {
				return c.String(http.StatusOK, "lost")
			}
			return c.String(http.StatusOK, "shows "+values.Encode())
		}
	}
	for _, path := range []string{"/typed", "/other"} {
		server.Form(path, show(path), func(c echo.Context) error {
			values, err := web.FormValues(c)
			if err != nil {
				return err
			}
			if address, fits := server.FormAddress(c, path, path, values); fits {
				return c.Redirect(http.StatusSeeOther, address)
			}
			return c.String(http.StatusOK, "does not fit")
		})
	}
}

// typedAddress returns the address that answers a form of ada's.
func typedAddress(t *testing.T, b *webtest.Browser, form url.Values) string {
	t.Helper()
	answer := b.Post("/typed", form)
	if answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("the form is answered with %s: %s", answer.Status, answer.Text)
	}
	return answer.Header.Get("Location")
}

func TestFormAddress(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Register: addressed})
	b := c.Browser(t).SignIn()
	form := url.Values{"a": {"1", "2"}, "team": {"vision & <b>ünïcode</b>"}, "empty": {""}}
	address := typedAddress(t, b, form)
	if len(address) > 2000 || strings.Contains(address, "vision") {
		t.Errorf("the address is %s", address)
	}
	want := "shows " + form.Encode()
	for range 2 { // load and reload
		if got := b.Open(address); got.Text != want {
			t.Errorf("%s shows %q, want %q", address, got.Text, want)
		}
	}
	if got := b.At(start(t, webtest.Setup{Register: addressed, Replica: c.Console}).Console).Open(address); got.Text != want {
		t.Errorf("another replica shows %q", got.Text)
	}
	letter := map[bool]string{true: "B", false: "A"}[address[len(address)-40] == 'A']
	for name, other := range map[string]string{
		"of another form":    strings.Replace(address, "/typed", "/other", 1),
		"one letter changed": address[:len(address)-40] + letter + address[len(address)-39:],
		"cut off":            address[:len(address)-10],
		"of a user's own":    "/typed?form=a%3D1",
	} {
		if got := b.Open(other); got.Text != "lost" {
			t.Errorf("an address %s shows %q", name, got.Text)
		}
	}
	if got := b.Open("/typed"); got.Text != "shows " {
		t.Errorf("without values it shows %q", got.Text)
	}
	if got := b.Post("/typed", url.Values{"a": {noise(4000)}}); got.Text != "does not fit" {
		t.Errorf("a long form is answered with %s: %.100s", got.Status, got.Text)
	}
}

// The address of a review that is opened after the session ended shows its values
// once its reader has signed in.
func TestFormAddressAfterSigningIn(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{Register: addressed})
	form := url.Values{"a": {noise(700)}} // close to the size limit
	address := typedAddress(t, c.Browser(t).SignIn(), form)
	if got := c.Browser(t).Open(address); got.Text != "shows "+form.Encode() {
		t.Errorf("after signing in %s shows %.200q", got.Request.URL, got.Text)
	}
	c.Provider.Change(func(p *signintest.Behavior) {
		p.Claims = map[string]any{"sub": "5678", "email": "bob@example.com"}
	})
	if got := c.Browser(t).Open(address); got.Text != "lost" {
		t.Errorf("another user is shown %q", got.Text)
	}
}

// Without sign-in there is no key, and one user.
func TestFormAddressWithoutSignIn(t *testing.T) {
	t.Parallel()
	server, err := web.New(web.Options{
		Listener: listen(t, "127.0.0.1:0"), User: web.User{Name: "ada", Local: true}, Log: slog.New(slog.DiscardHandler),
		Chrome: func(echo.Context) views.Chrome { return views.Chrome{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	addressed(server)
	address, _ := run(t, server)
	response, text := do(t, http.MethodPost, "http://"+address+"/typed", "a=1", "Content-Type", "application/x-www-form-urlencoded")
	if text != "shows a=1" || !response.Request.URL.Query().Has("form") {
		t.Errorf("%s shows %q", response.Request.URL, text)
	}
	for _, form := range []string{"AAAA", "%FF", "e30", "====="} {
		if _, text := do(t, http.MethodGet, "http://"+address+"/typed?form="+form, ""); text != "lost" {
			t.Errorf("?form=%s shows %q", form, text)
		}
	}
}
