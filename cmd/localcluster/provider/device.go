package provider

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// CommandLineID is the client ID of kuota login, which has no secret.
const CommandLineID = "kuota-cli"

const devicePath = "/device"

// Limits of device authorizations (RFC 8628).
const (
	deviceLife  = 10 * time.Minute
	devicePoll  = time.Second // in whole seconds
	mostDevices = 1000        // that wait for their user at the same time
)

// commandLine is kuota login: a public client with the device flow, and without
// redirects.
type commandLine struct{ client }

func (c *commandLine) RedirectURIGlobs() []string           { return nil }
func (c *commandLine) PostLogoutRedirectURIGlobs() []string { return nil }
func (c *commandLine) ApplicationType() op.ApplicationType  { return op.ApplicationTypeNative }
func (c *commandLine) AuthMethod() oidc.AuthMethod          { return oidc.AuthMethodNone }
func (c *commandLine) ResponseTypes() []oidc.ResponseType   { return nil }

func (c *commandLine) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeDeviceCode, oidc.GrantTypeRefreshToken}
}

// device is one device authorization, from the client's request until its device
// code is exchanged.
type device struct {
	client, code string
	scopes       []string
	expires      time.Time
	session      session // zero until the user has confirmed the user code
}

// devices are the open device authorizations, in memory only.
type devices struct {
	mu     sync.Mutex
	byUser map[string]*device // by the letters of the user code
}

// letters returns a user code without its hyphen, in capitals.
func letters(userCode string) string {
	return strings.Map(func(r rune) rune {
		if r < 'A' || r > 'Z' {
			return -1
		}
		return r
	}, strings.ToUpper(userCode))
}

func (q *devices) add(userCode string, d *device, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.byUser, func(_ string, old *device) bool { return now.After(old.expires) })
	key := letters(userCode)
	switch {
	case q.byUser[key] != nil:
		return op.ErrDuplicateUserCode
	case len(q.byUser) >= mostDevices:
		return errors.New("too many terminals wait for their user; try again in a few minutes")
	}
	q.byUser[key] = d
	return nil
}

// confirm records the session that answers a user code. It reports whether the
// code was valid, which it is once.
func (q *devices) confirm(userCode string, s session, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.byUser[letters(userCode)]
	if d == nil || now.After(d.expires) || d.session.Subject != "" {
		return false
	}
	d.session = s
	return true
}

// take returns a copy of the authorization of a device code. A confirmed one is
// returned once.
func (q *devices) take(client, code string, now time.Time) (device, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, d := range q.byUser {
		if d.code != code || d.client != client || now.After(d.expires) {
			continue
		}
		if d.session.Subject != "" {
			delete(q.byUser, key)
		}
		return *d, true
	}
	return device{}, false
}

var _ op.DeviceAuthorizationStorage = (*storage)(nil)

func (s *storage) StoreDeviceAuthorization(_ context.Context, client, code, userCode string, expires time.Time, scopes []string) error {
	d := &device{client: client, code: code, scopes: scopes, expires: expires}
	return s.devices.add(userCode, d, s.memory.now())
}

// GetDeviceAuthorizatonState returns the state of a device code. An unknown or used
// code is returned as an expired one: the library would report an error as
// access_denied, as if the user had refused.
func (s *storage) GetDeviceAuthorizatonState(_ context.Context, client, code string) (*op.DeviceAuthorizationState, error) {
	d, ok := s.devices.take(client, code, s.memory.now())
	if !ok {
		return &op.DeviceAuthorizationState{}, nil
	}
	state := &op.DeviceAuthorizationState{ClientID: d.client, Scopes: slices.Clone(d.scopes), Expires: d.expires}
	if d.session.Subject == "" {
		return state, nil
	}
	if _, ok := s.users.bySubject(d.session.Subject); !ok {
		return nil, errors.New("the user was removed or is disabled")
	}
	state.Done, state.Subject, state.AMR, state.AuthTime = true, d.session.Subject, passwordUsed, d.session.AuthTime
	return state, nil
}

// showDevice serves GET /device?user_code=CODE: the form that confirms a code. With
// prompt=login it ignores the browser's session.
func (s *signIn) showDevice(w http.ResponseWriter, r *http.Request) {
	v := deviceView{Code: r.FormValue("user_code")}
	if known, ok := s.known(r); ok && r.FormValue("prompt") != oidc.PromptLogin {
		v.subject = known.Subject
	}
	s.renderDevice(w, http.StatusOK, v)
}

// submitDevice serves POST /device with user_code, and with username and password
// unless the browser's session confirms the code.
func (s *signIn) submitDevice(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	v := deviceView{Code: r.PostFormValue("user_code")}
	known, ok := s.known(r)
	if !ok || r.PostForm.Has("username") {
		var user User
		v.Name = r.PostFormValue("username")
		if user, v.Problem = s.authenticate(r); v.Problem != "" {
			s.renderDevice(w, http.StatusUnprocessableEntity, v)
			return
		}
		known = s.remember(w, r, user)
	}
	v.subject = known.Subject
	if !s.storage.devices.confirm(v.Code, known, s.storage.memory.now()) {
		v.CodeProblem = "This code is wrong, expired or already used. Compare it with the code in the terminal, or run kuota login again."
		s.renderDevice(w, http.StatusUnprocessableEntity, v)
		return
	}
	renderMessage(w, http.StatusOK, "Signed in", "You are signed in. Return to the terminal.")
}

// deviceView is the view of the page that confirms a user code.
type deviceView struct {
	signInView        // of the fields, which are shown if SignedIn is empty
	Code, CodeProblem string
	SignedIn          string // full name of the user of the browser's session
	Other             string // address of the page for another user
	subject           string // of SignedIn
}

func (s *signIn) renderDevice(w http.ResponseWriter, status int, v deviceView) {
	if u, ok := s.storage.users.bySubject(v.subject); ok {
		v.SignedIn = u.FullName
	}
	v.Other = devicePath + "?" + url.Values{"user_code": {v.Code}, "prompt": {oidc.PromptLogin}}.Encode()
	v.Users = s.storage.users.users()
	render(w, status, "device", v)
}
