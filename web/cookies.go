package web

import (
	"bytes"
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

// What browsers keep. Over TLS the names begin with __Host-, so that no other
// host, and no page without TLS, can set them.
const (
	sessionCookie  = "kuota"          // the id of the session
	attemptCookie  = "kuota-signin-"  // and the start of a state: a sign-in under way
	draftCookie    = "kuota-draft"    // a form that was sent after the session ended
	statePrefix    = 8                // how much of the state names the cookie
	signInTimeout  = 10 * time.Minute // how long a sign-in may take
	maxAttempts    = 4                // sign-ins under way at once, in as many tabs
	maxCookieValue = 3800             // bytes of a value that browsers keep for certain
	maxDraft       = 1 << 20          // bytes of a form, written down to be sealed
)

// cookieName is the full name of a cookie.
func (s *Server) cookieName(name string) string {
	if s.overTLS() {
		return "__Host-" + name
	}
	return name
}

func (s *Server) overTLS() bool { return s.signIn != nil && s.signIn.URL.Scheme == "https" }

// cookie is the value of a cookie; empty when there is none, or more than one.
func (s *Server) cookie(c echo.Context, name string) string {
	found := c.Request().CookiesNamed(s.cookieName(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// setCookie has the browser keep a value; for no time at all, it forgets it.
func (s *Server) setCookie(c echo.Context, name, value string, keep time.Duration) {
	cookie := &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: "/", MaxAge: int(keep / time.Second),
		HttpOnly: true, Secure: s.overTLS(), SameSite: http.SameSiteLaxMode,
	}
	if keep == 0 {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}

// attempt is a sign-in under way.
type attempt struct {
	signin.Attempt
	Session string // id of the session that it makes
	Return  string // where the person wanted to go
	Until   time.Time
}

func (s *Server) setAttempt(c echo.Context, a attempt) error {
	sealed, err := s.seal(attemptCookie, a)
	if err != nil {
		return err
	}
	// Whoever opens many tabs without signing in begins anew in the last, rather
	// than be locked out by a header that is too long.
	if begun := s.attempts(c); len(begun) >= maxAttempts {
		for _, name := range begun {
			s.setCookie(c, name, "", 0)
		}
	}
	s.setCookie(c, attemptCookie+a.State[:statePrefix], sealed, signInTimeout)
	return nil
}

// attempts are the names of the cookies of sign-ins under way.
func (s *Server) attempts(c echo.Context) (names []string) {
	for _, cookie := range c.Cookies() {
		if state, ok := strings.CutPrefix(cookie.Name, s.cookieName(attemptCookie)); ok {
			names = append(names, attemptCookie+state)
		}
	}
	return names
}

// takeAttempt returns the sign-in that an answer with this state belongs to, and
// has the browser forget it.
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

// draft is a form that could not be saved because its sender was signed out.
type draft struct {
	Path   string
	Values url.Values
	Until  time.Time
}

// keepDraft has the browser keep a form, sealed, while its sender signs in
// again. It returns false where the form is too long for that.
func (s *Server) setDraft(c echo.Context, path string, values url.Values) bool {
	sealed, err := s.seal(draftCookie, draft{Path: path, Values: values, Until: s.now().Add(signInTimeout)})
	if err != nil || len(sealed) > maxCookieValue {
		return false
	}
	s.setCookie(c, draftCookie, sealed, signInTimeout)
	return true
}

// Draft returns, once, what the sender of this address's form had typed when
// the session ended; nil for nothing.
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
		return nil // another person at the same browser
	}
	s.setCookie(c, draftCookie, "", 0)
	return d.Values
}

// seal makes a text that only this console reads, for the place called name.
func (s *Server) seal(name string, value any) (string, error) {
	packed, err := compress(value)
	if err != nil {
		return "", err
	}
	return s.signIn.Ring.Seal(name, packed)
}

// open reads what seal made under the same name.
func (s *Server) open(name, sealed string, value any) bool {
	packed, err := s.signIn.Ring.Open(name, sealed)
	return err == nil && decompress(packed, value)
}

func compress(value any) ([]byte, error) {
	var plain, packed bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // an escaped & is six bytes
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	if plain.Len() > maxDraft { // JSON may be several times as long as the form
		return nil, fmt.Errorf("%d bytes are more than decompress reads", plain.Len())
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

// decompress reads what compress made.
func decompress(packed []byte, value any) bool {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDraft))
	return err == nil && json.Unmarshal(plain, value) == nil
}
