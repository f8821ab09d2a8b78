package web

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kuota.dev/kuota/web/signin"

	"github.com/labstack/echo/v4"
)

// Cookies. Over TLS their names begin with __Host-, so that no other host, and no
// page without TLS, can set them. Browsers accept that only for the path /: under a
// base path they begin with __Secure-, which other hosts of the domain can set.
const (
	sessionCookie  = "kuota"          // the session ID
	attemptCookie  = "kuota-signin-"  // plus the start of the state: a pending sign-in
	draftCookie    = "kuota-draft"    // a form submitted after the session ended
	statePrefix    = 8                // characters of the state in the cookie name
	signInTimeout  = 10 * time.Minute // from login to callback
	maxAttempts    = 4                // pending sign-ins of one browser, each in a tab
	maxCookieValue = 3800             // bytes of a value that every browser stores
	maxDraft       = 1 << 20          // bytes of a form as JSON
)

// cookieName returns the full name of a cookie.
func (s *Server) cookieName(name string) string {
	switch {
	case s.overTLS() && s.base == "":
		return "__Host-" + name
	case s.overTLS():
		return "__Secure-" + name
	}
	return name
}

func (s *Server) overTLS() bool { return s.signIn != nil && s.signIn.URL.Scheme == "https" }

// cookie returns the value of a cookie, or "" if the request has none or several.
func (s *Server) cookie(c echo.Context, name string) string {
	found := c.Request().CookiesNamed(s.cookieName(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// setCookie sets a cookie for a time; 0 deletes it.
func (s *Server) setCookie(c echo.Context, name, value string, maxAge time.Duration) {
	cookie := &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: cmp.Or(s.base, "/"), MaxAge: int(maxAge / time.Second),
		HttpOnly: true, Secure: s.overTLS(), SameSite: http.SameSiteLaxMode,
	}
	if maxAge == 0 {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}

// attempt is a pending sign-in, stored in a cookie.
type attempt struct {
	signin.Attempt
	Session string // ID of the session that it creates
	Return  string // address that the user opened
	Until   time.Time
}

func (s *Server) setAttempt(c echo.Context, a attempt) error {
	sealed, err := s.seal(attemptCookie, a)
	if err != nil {
		return err
	}
	// Too many cookies would make the header too long for any request. Older tabs
	// must start again.
	if pending := s.attempts(c); len(pending) >= maxAttempts {
		for _, name := range pending {
			s.setCookie(c, name, "", 0)
		}
	}
	s.setCookie(c, attemptCookie+a.State[:statePrefix], sealed, signInTimeout)
	return nil
}

// attempts returns the names of the cookies of pending sign-ins.
func (s *Server) attempts(c echo.Context) (names []string) {
	for _, cookie := range c.Cookies() {
		if state, ok := strings.CutPrefix(cookie.Name, s.cookieName(attemptCookie)); ok {
			names = append(names, attemptCookie+state)
		}
	}
	return names
}

// takeAttempt returns the pending sign-in with this state, and deletes its cookie.
func (s *Server) takeAttempt(c echo.Context, state string) (a attempt, ok bool) {
	if len(state) < statePrefix {
		return a, false
	}
	name := attemptCookie + state[:statePrefix]
	sealed := s.cookie(c, name)
	if sealed == "" || !s.open(attemptCookie, sealed, &a) || a.State != state || s.now().After(a.Until) {
		return attempt{}, false
	}
	s.setCookie(c, name, "", 0)
	return a, true
}

// draft is a form that was submitted after the session ended.
type draft struct {
	Path   string
	Values url.Values
	Until  time.Time
}

// setDraft stores a form in an encrypted cookie while the user signs in again. It
// returns false if the form is too large for a cookie.
func (s *Server) setDraft(c echo.Context, path string, values url.Values) bool {
	sealed, err := s.seal(draftCookie, draft{Path: path, Values: values, Until: s.now().Add(signInTimeout)})
	if err != nil || len(sealed) > maxCookieValue {
		return false
	}
	s.setCookie(c, draftCookie, sealed, signInTimeout)
	return true
}

// Draft returns the values of this address's form as submitted after the session
// ended, once; nil if there are none.
func (s *Server) Draft(c echo.Context) url.Values {
	sealed := ""
	if s.signIn != nil {
		sealed = s.cookie(c, draftCookie)
	}
	var d draft
	if sealed == "" || c.Request().Method != http.MethodGet || !s.open(draftCookie, sealed, &d) || d.Path != c.Request().URL.Path || s.now().After(d.Until) {
		return nil
	}
	if as := d.Values.Get("as"); as != "" && as != UserOf(c).Name {
		return nil // another user of the same browser
	}
	s.setCookie(c, draftCookie, "", 0)
	return d.Values
}

// seal encrypts value so that only open with the same name can read it.
func (s *Server) seal(name string, value any) (string, error) {
	packed, err := compress(value)
	if err != nil {
		return "", err
	}
	return s.signIn.Ring.Seal(name, packed)
}

// open decrypts what seal returned for the same name, into value.
func (s *Server) open(name, sealed string, value any) bool {
	packed, err := s.signIn.Ring.Open(name, sealed)
	return err == nil && decompress(packed, value)
}

// compress returns value as compressed JSON.
func compress(value any) ([]byte, error) {
	var plain, packed bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // an escaped & takes six bytes
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	if plain.Len() > maxDraft { // JSON can be several times as long as the form
		return nil, fmt.Errorf("compress form: %d bytes exceed the limit of %d", plain.Len(), maxDraft)
	}
	compressor, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := compressor.Write(plain.Bytes()); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// decompress sets value to what compress returned for it.
func decompress(packed []byte, value any) bool {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDraft))
	return err == nil && json.Unmarshal(plain, value) == nil
}
