package provider

import (
	"crypto/rand"
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

// sessionLife is how long a browser is known without asking again.
const sessionLife = 12 * time.Hour

const noLongerOpen = "This sign-in is no longer open. Go back to where you came from and begin again."

// signIn asks who somebody is, unless the browser is known already.
type signIn struct {
	storage *storage
	op      *op.Provider
	cookie  string // its name; it carries the port, since cookies do not keep ports apart
	finish  func(*http.Request, string) string
}

// show is GET /signin?id=REQUEST: the form, or the answer where none is needed.
func (s *signIn) show(w http.ResponseWriter, r *http.Request) {
	req, ok := s.storage.requests.get(r.FormValue("id"))
	if !ok {
		renderMessage(w, http.StatusBadRequest, "Sign in", noLongerOpen)
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

// submit is POST /signin with id, username and password.
func (s *signIn) submit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	req, ok := s.storage.requests.get(r.PostFormValue("id"))
	if !ok {
		renderMessage(w, http.StatusBadRequest, "Sign in", noLongerOpen)
		return
	}
	name := r.PostFormValue("username")
	user, ok := s.storage.users.authenticate(name, r.PostFormValue("password"))
	problem := ""
	switch {
	case !ok:
		problem = "The user name or the password is wrong."
	case user.Disabled:
		problem = "This user is disabled."
	}
	if problem != "" {
		renderSignIn(w, http.StatusUnprocessableEntity,
			signInView{Request: req.id, Name: name, Problem: problem, Users: s.storage.users.users()})
		return
	}
	s.storage.requests.finish(req.id, s.remember(w, r, user))
	http.Redirect(w, r, s.finish(r, req.id), http.StatusSeeOther)
}

// known is the sign-in of this browser, as long as its user is there.
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

// remember begins a session, in the place of the browser's earlier one. The
// earlier one's tokens stay good: their client still uses them.
func (s *signIn) remember(w http.ResponseWriter, r *http.Request, u User) session {
	now := s.storage.memory.now()
	begun := session{ID: rand.Text(), Subject: u.subject(), AuthTime: now, Expires: now.Add(sessionLife)}
	value := rand.Text()
	s.storage.memory.change(func(f *memoryFile) {
		if old, err := r.Cookie(s.cookie); err == nil {
			delete(f.Sessions, old.Value)
		}
		f.Sessions[value] = begun
	})
	s.setCookie(w, value, 0)
	return begun
}

// forget ends the browser's session before the protocol's own part of signing out.
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
