package provider

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	signInPath     = "/signin"
	signedOutPath  = "/signed-out"
	endSessionPath = "/end_session"
)

// sessionLife is how long a browser stays signed in.
const sessionLife = 12 * time.Hour

const expiredText = "This sign-in has expired. Go back to the console and begin again."

// signIn serves the sign-in page, unless the browser is signed in.
type signIn struct {
	storage *storage
	op      *op.Provider
	cookie  string // its name; with the port, since cookies are shared by all ports of a host
	finish  func(*http.Request, string) string
}

// show serves GET /signin?id=REQUEST: the form, or the redirect of a browser that
// is signed in.
func (s *signIn) show(w http.ResponseWriter, r *http.Request) {
	req, ok := s.storage.requests.get(r.FormValue("id"))
	if !ok {
		renderMessage(w, http.StatusBadRequest, "Sign in", expiredText)
		return
	}
	if known, ok := s.known(r); ok && req.accepts(known, s.storage.memory.now()) {
		s.storage.requests.finish(req.id, known)
		http.Redirect(w, r, s.finish(r, req.id), http.StatusSeeOther)
		return
	}
	if req.silent() {
		s.storage.requests.remove(req.id)
		op.AuthRequestError(w, r, req, oidc.ErrLoginRequired(), s.op)
		return
	}
	renderSignIn(w, http.StatusOK, signInView{Request: req.id, Name: req.LoginHint, Users: s.storage.users.users()})
}

// submit serves POST /signin with id, username and password.
func (s *signIn) submit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	req, ok := s.storage.requests.get(r.PostFormValue("id"))
	if !ok {
		renderMessage(w, http.StatusBadRequest, "Sign in", expiredText)
		return
	}
	user, problem := s.authenticate(r)
	if problem != "" {
		renderSignIn(w, http.StatusUnprocessableEntity,
			signInView{Request: req.id, Name: r.PostFormValue("username"), Problem: problem, Users: s.storage.users.users()})
		return
	}
	s.storage.requests.finish(req.id, s.remember(w, r, user))
	http.Redirect(w, r, s.finish(r, req.id), http.StatusSeeOther)
}

// authenticate returns the user of the posted username and password, or the
// problem with them.
func (s *signIn) authenticate(r *http.Request) (user User, problem string) {
	name := r.PostFormValue("username")
	user, ok := s.storage.users.authenticate(name, r.PostFormValue("password"))
	switch {
	case name == "":
		return User{}, "Enter your user name and password."
	case !ok:
		return User{}, "The user name or the password is wrong."
	case user.Disabled:
		return User{}, "This user is disabled."
	}
	return user, ""
}

// known returns the session of the browser, if its user is enabled.
func (s *signIn) known(r *http.Request) (session, bool) {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return session{}, false
	}
	known, ok := s.storage.memory.session(c.Value)
	if !ok {
		return session{}, false
	}
	_, ok = s.storage.users.bySubject(known.Subject)
	return known, ok
}

// remember creates a session that replaces the browser's earlier one. The tokens
// of the earlier one stay valid: their client still uses them.
func (s *signIn) remember(w http.ResponseWriter, r *http.Request, u User) session {
	now := s.storage.memory.now()
	created := session{ID: rand.Text(), Subject: u.subject(), AuthTime: now, Expires: now.Add(sessionLife)}
	value := rand.Text()
	s.storage.memory.change(func(f *memoryFile) {
		if old, err := r.Cookie(s.cookie); err == nil {
			delete(f.Sessions, old.Value)
		}
		f.Sessions[value] = created
	})
	s.setCookie(w, value, 0)
	return created
}

// forget ends the browser's session before the library handles the sign-out.
func (s *signIn) forget(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(s.cookie); err == nil {
			if known, ok := s.storage.memory.session(c.Value); ok {
				s.storage.memory.endSession(known.ID)
			}
			s.setCookie(w, "", -1)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *signIn) setCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS []byte
	page    = template.Must(template.New("page").Parse(pageHTML))
)

// signInView is the view of the page with the form.
type signInView struct {
	Request string // ID of the authorization request
	Name    string // as typed, or the client's login_hint
	Problem string
	Users   []User
}

// messageView is the view of a page with one message.
type messageView struct{ Title, Text string }

func renderSignIn(w http.ResponseWriter, status int, v signInView) { render(w, status, "signin", v) }

func renderMessage(w http.ResponseWriter, status int, title, text string) {
	render(w, status, "message", messageView{Title: title, Text: text})
}

func render(w http.ResponseWriter, status int, name string, view any) {
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, name, view); err != nil {
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// No form-action: browsers apply it to the redirect after the form too, which
	// leads to the client.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

func serveCSS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(pageCSS)
}
